// The whole flow with a client that @hey-api/openapi-ts generated.
import { client } from "./hey-api/client.gen.js";
import { completeUpload, createOperation, download, initiateUpload, operationStatus } from "./hey-api/index.js";

const [baseUrl, key] = process.argv.slice(2) as [string, string];
client.setConfig({ baseUrl, headers: { Authorization: `Bearer ${key}` } });
const content = new TextEncoder().encode("# Hello\n");

const session = await initiateUpload({ body: { file_name: "hello.md", size: content.length, mime_type: "text/markdown" } });
if (!session.data) throw new Error(session.error.message);
const put = await fetch(session.data.presigned_urls[0]!, { method: "PUT", body: content });
const etag = put.headers.get("ETag")!.replaceAll('"', "");
const { file_key, object_name, upload_id } = session.data;
await completeUpload({ body: { file_key, object_name, upload_id, parts: [{ part_number: 1, etag }] }, throwOnError: true });
const created = await createOperation({
  body: { action: "convert", file_keys: [file_key], parameters: { convert_to: "html" } },
  throwOnError: true,
});
const status = await operationStatus({ path: { main_task_id: created.data.main_task_id }, query: { wait: "60s" }, throwOnError: true });
const file = status.data.files_data[0];
if (file?.status !== "completed") throw new Error(`${file?.error_code}: ${file?.error_message}`);
const result = await download({ path: { file_key: file.file_key }, parseAs: "text", throwOnError: true });
if (!String(result.data).includes("Hello</h1>")) throw new Error(`the result is ${String(result.data)}`);
console.log("flow completed");
