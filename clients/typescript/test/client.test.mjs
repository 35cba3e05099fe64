// Tests against a real server; TestTypeScript in clients_test.go starts it.
import assert from "node:assert/strict";
import { createHmac, randomBytes } from "node:crypto";
import { createReadStream, openAsBlob } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, before, test } from "node:test";

const { Filewright, FilewrightError, FileError } = await import(join(process.env.DIST, "index.js"));
const { InvalidSignature, verifyWebhook } = await import(join(process.env.DIST, "webhooks.js"));
const options = { baseUrl: process.env.BASE_URL + "/", key: process.env.API_KEY };
const files = new Filewright(options);
let dir;
before(async () => { dir = await mkdtemp(join(tmpdir(), "filewright-")); });
after(() => rm(dir, { recursive: true }));

test("a file of several parts", async () => {
  const content = "a,b\n" + "1,2\n".repeat(700_000);
  await writeFile(join(dir, "table.csv"), content);
  const sent = [];
  const small = new Filewright({ ...options, partSize: 1 << 20 });
  const key = await small.upload(await openAsBlob(join(dir, "table.csv")), {
    name: "table.csv", mimeType: "text/csv", progress: (n, total) => { sent.push(n); assert.equal(total, content.length); },
  });
  assert.equal(sent.length, 3);
  assert.equal(sent.at(-1), content.length);
  const states = [];
  const operation = await small.run({ action: "convert", file_keys: [key], parameters: { convert_to: "tsv" }, notes: { order: "7" } },
    { progress: (o) => states.push(o.operation_status) });
  assert.equal(states.at(-1), "completed");
  assert.deepEqual(operation.notes, { order: "7" });
  const [file] = operation.files_data;
  assert.equal(file.file_name, "table.tsv");
  const whole = await (await files.download(file)).text();
  assert.equal(whole, content.replaceAll(",", "\t"));
  const rest = await (await files.download(file.file_key, { offset: 10 })).text();
  assert.equal(rest, whole.slice(10));
  await files.delete(file.file_key);
  await assert.rejects(files.download(file), (e) => e instanceof FilewrightError && [401, 404, 410].includes(e.status));
});

test("a stream of Node", async () => {
  await writeFile(join(dir, "note.md"), "# Hello\n");
  const key = await files.upload(Readable.toWeb(createReadStream(join(dir, "note.md"))), { name: "note.md" });
  const { files_data: [file] } = await files.run({ action: "convert", file_keys: [key], parameters: { convert_to: "html" } });
  assert.match(await (await files.download(file)).text(), /Hello<\/h1>/);
});

test("an upload continues after an error", async () => {
  const content = new Blob([randomBytes(1 << 20).toString("hex")]);
  let puts = 0;
  const failing = new Filewright({
    ...options, partSize: 1 << 19, parallel: 1, attempts: 1,
    fetch: (url, init) => (init.method === "PUT" && ++puts > 2 ? Promise.reject(new TypeError("connection lost")) : fetch(url, init)),
  });
  const upload = await failing.begin("data.txt", content.size);
  await assert.rejects(failing.send(upload, content), /connection lost/);
  const stored = JSON.parse(JSON.stringify(upload));
  assert.equal(stored.etags.filter(Boolean).length, 2);
  await files.send(stored, content);
  const key = stored.file_key;
  assert.equal((await files.run({ action: "zip", file_keys: [key] })).operation_status, "completed");
});

test("a request is repeated after a broken connection", async () => {
  let calls = 0;
  const flaky = new Filewright({
    ...options, fetch: (url, init) => (++calls % 2 ? Promise.reject(new TypeError("connection lost")) : fetch(url, init)),
  });
  const key = await flaky.upload(new TextEncoder().encode("hello"), { name: "a.txt" });
  assert.equal((await flaky.run({ action: "zip", file_keys: [key] })).operation_status, "completed");
});

test("errors", async () => {
  const key = await files.upload(new Blob(["not a PDF"]), { name: "a.pdf" });
  await assert.rejects(files.start({ action: "convert", file_keys: [key], parameters: { convert_to: "nothing" } }), (e) => {
    assert.ok(e instanceof FilewrightError);
    assert.deepEqual([e.status, e.slug, e.param], [400, "unsupported_operation", "parameters.convert_to"]);
    assert.ok(e.allowed.includes("png"));
    return true;
  });
  await assert.rejects(files.run({ action: "compress", file_keys: [key] }), (e) => e instanceof FileError && e.code !== "" && /^a\.pdf: /.test(e.message));
  await assert.rejects(new Filewright({ ...options, key: "wrong" }).status("x"), (e) => e.slug === "unauthorized");
  assert.deepEqual((await files.supported("pdf")).available_actions.includes("split"), true);
  const aborted = AbortSignal.abort();
  await assert.rejects(files.upload(new Blob(["x"]), { name: "a.txt", signal: aborted }), { name: "AbortError" });
});

test("a webhook of the server", async () => {
  const requests = [];
  const server = createServer((request, response) => {
    const chunks = [];
    request.on("data", (c) => chunks.push(c)).on("end", () => {
      requests.push({ headers: request.headers, body: Buffer.concat(chunks) });
      response.writeHead(204).end();
      arrived?.();
    });
  });
  let arrived;
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const response = await fetch(`${process.env.BASE_URL}/api/v1/admin/accounts/self/webhooks`, {
    method: "POST", headers: { Authorization: `Bearer ${options.key}`, "Content-Type": "application/json" },
    body: JSON.stringify({ url: `http://127.0.0.1:${server.address().port}/`, events: ["operation.completed"] }),
  });
  const { secret, id } = await response.json();
  assert.match(secret, /^whsec_/);
  const key = await files.upload(new Blob(["hello"]), { name: "a.txt" });
  const operation = await files.run({ action: "zip", file_keys: [key] });
  // Other tests have operations of the same account.
  const own = (r) => JSON.parse(r.body).payload.main_task.id === operation.main_task_id;
  let request;
  while (!(request = requests.find(own))) await new Promise((resolve) => { arrived = resolve; });
  const event = await verifyWebhook(secret, request.headers, request.body);
  assert.equal(event.type, "operation.completed");
  assert.equal(event.payload.main_task.id, operation.main_task_id);
  const other = "whsec_" + randomBytes(32).toString("base64");
  await verifyWebhook([other, secret], request.headers, request.body.toString());
  await assert.rejects(verifyWebhook(other, request.headers, request.body), InvalidSignature);
  await assert.rejects(verifyWebhook(secret, request.headers, request.body + " "), InvalidSignature);
  await fetch(`${process.env.BASE_URL}/api/v1/admin/accounts/self/webhooks/${id}`, { method: "DELETE", headers: { Authorization: `Bearer ${options.key}` } });
  server.close();
});

test("old and incomplete webhooks", async () => {
  const secret = "whsec_" + randomBytes(32).toString("base64");
  const sign = (time) => ({
    "webhook-id": "msg_1", "webhook-timestamp": String(time),
    "webhook-signature": "v1,AAAA v1," + createHmac("sha256", Buffer.from(secret.slice(6), "base64")).update(`msg_1.${time}.{}`).digest("base64"),
  });
  const now = Math.floor(Date.now() / 1000);
  assert.deepEqual(await verifyWebhook(secret, sign(now), "{}"), {});
  assert.deepEqual(await verifyWebhook(secret, new Headers(sign(now)), "{}"), {});
  await assert.rejects(verifyWebhook(secret, sign(now - 1000), "{}"), /too old/);
  await assert.rejects(verifyWebhook(secret, {}, "{}"), /missing/);
});
