// The whole flow with a client that openapi-typescript generated: upload, do, status, download.
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const [baseUrl, key] = process.argv.slice(2) as [string, string];
const api = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });
const content = new TextEncoder().encode("# Hello\n");

const session = await api.POST("/api/v1/initiate-upload", {
  body: { file_name: "hello.md", size: content.length, mime_type: "text/markdown" },
});
if (!session.data) throw new Error(session.error.message);
const put = await fetch(session.data.presigned_urls[0]!, { method: "PUT", body: content });
const complete = await api.POST("/api/v1/complete-upload", {
  body: {
    file_key: session.data.file_key,
    object_name: session.data.object_name,
    upload_id: session.data.upload_id,
    parts: [{ part_number: 1, etag: put.headers.get("ETag")!.replaceAll('"', "") }],
  },
});
if (complete.error) throw new Error(complete.error.message);

const supported = await api.POST("/api/v1/supported-operation", { body: { ext: "md", action: "convert" } });
if (!supported.data?.supported) throw new Error("convert is not supported");

const created = await api.POST("/api/v1/do", {
  body: { action: "convert", file_keys: [session.data.file_key], parameters: { convert_to: "html" } },
});
if (!created.data) throw new Error(`${created.error.error}: ${created.error.message}`);
const status = await api.GET("/api/v1/status/{main_task_id}", {
  params: { path: { main_task_id: created.data.main_task_id }, query: { wait: "60s" } },
});
const file = status.data?.files_data[0];
if (file?.status !== "completed") throw new Error(`${file?.error_code}: ${file?.error_message}`);
const result = await api.GET("/v1/download/{file_key}", { params: { path: { file_key: file.file_key } }, parseAs: "text" });
if (!String(result.data).includes("Hello</h1>")) throw new Error(`the result is ${String(result.data)}`);

const wrong = await api.POST("/api/v1/do", {
  // @ts-expect-error: there is no such format
  body: { action: "convert", file_keys: [session.data.file_key], parameters: { convert_to: "nothing" } },
});
if (wrong.error?.error !== "unsupported_operation" || !wrong.error.allowed?.includes("html")) throw new Error(JSON.stringify(wrong.error));

// @ts-expect-error: convert needs parameters
const incomplete: paths["/api/v1/do"]["post"]["requestBody"]["content"]["application/json"] = { action: "convert", file_keys: [] };
void incomplete;
console.log("flow completed");
