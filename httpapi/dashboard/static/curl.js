// Renders API calls as curl commands.

/** Quotes a text for a POSIX shell. */
export function quote(text) {
  return /^[A-Za-z0-9_./:=@%+,-]+$/.test(text) ? text : `'${String(text).replaceAll("'", `'\\''`)}'`;
}

const key = '-H "Authorization: Bearer $KEY"';

function post(path, body) {
  return `curl -sS "$API/api/v1/${path}" ${key} \\\n  -H "Content-Type: application/json" \\\n  -d ${quote(JSON.stringify(body))}`;
}

/** Masks passwords: users copy and paste these commands. */
function hidden(parameters, secrets) {
  return Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, secrets.has(name) ? "…" : value]));
}

export const address = () => `API=${quote(location.origin)}\nKEY=fw_…   # one of your API keys`;
export const ask = (ext, action) => post("supported-operation", action ? { ext, action } : { ext });
export const initiate = (request) => post("initiate-upload", request);

export const fetch = (url) => post("import", { url });

export function put(file, urls, length) {
  if (urls.length === 1) return `curl -sS -T ${quote(file.name)} -D - ${quote(urls[0])}`;
  // curl -T from a pipe sends no Content-Length, which buckets require.
  const lines = urls.slice(0, 3).map((url, i) => `tail -c +${i * length + 1} ${quote(file.name)} | head -c ${length} |\n  curl -sS -X PUT -H Content-Type: --data-binary @- -D - ${quote(url)}`);
  if (urls.length > 3) lines.push(`# … and so on, ${urls.length} parts in total`);
  return lines.join("\n");
}

/** The whole run in one request. */
export function oneCall(action, files, parameters, secrets) {
  const fields = [...files.map((name) => `file=@${/[,;"]/.test(name) ? `"${name.replace(/["\\]/g, "\\$&")}"` : name}`)].map((text) => `-F ${quote(text)}`);
  for (const [name, value] of Object.entries(hidden(parameters, secrets))) fields.push(`--form-string ${quote(`${name}=${typeof value === "object" ? JSON.stringify(value) : value}`)}`);
  return `curl -sS -OJ "$API/api/v1/run/${action}" ${key} \\\n  ${fields.join(" \\\n  ")}`;
}

export const complete = (request) => post("complete-upload", request);
export const start = (request, secrets) => post("do", { ...request, parameters: hidden(request.parameters, secrets) });
export const status = (id) => `curl -sS "$API/api/v1/status/${id}?wait=30s" ${key}\n\n# or follow every change\ncurl -sSN "$API/api/v1/status/${id}/events" ${key}`;

export function download(file) {
  const link = /^https?:/.test(file.download_link) ? quote(file.download_link) : `"$API${file.download_link}"`;
  return `curl -sSL ${link} -o ${quote(file.file_name)}`;
}
