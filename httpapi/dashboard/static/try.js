// The "Try it" page: choose files and an action, upload, follow the status, show the
// results, and show every call as curl.

import { announce, showText } from "./app.js";
import { call, follow } from "./follow.js";
import { UploadBlocked, Upload, cut } from "./upload.js";
import * as curl from "./curl.js";

const $ = (id) => document.getElementById(id);
const box = $("try");
const kinds = JSON.parse(box.dataset.kinds);
const families = JSON.parse(box.dataset.families);

/** Creates an element. Texts are always set as text nodes: file names are untrusted. */
function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name in node && name !== "list" && name !== "form") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((c) => c !== null && c !== undefined));
  return node;
}

function icon(name) {
  return $("icons").content.querySelector(`[data-icon="${name}"]`).firstElementChild.cloneNode(true);
}

function bytes(n) {
  if (n < 1000) return `${n} B`;
  let unit = "";
  for (unit of ["kB", "MB", "GB", "TB"]) {
    n /= 1000;
    if (n < 999.5) break;
  }
  return `${n < 9.95 ? n.toFixed(1) : Math.round(n)} ${unit}`;
}

function extension(name) {
  const parts = name.toLowerCase().split(".");
  if (parts.length < 2) return "unknown";
  if (parts.length > 2 && parts.at(-2) === "tar") return `tar.${parts.at(-1)}`;
  return parts.at(-1) || "unknown";
}

const kindOf = (name) => kinds[extension(name)] ?? "";

function badge(name) {
  const ext = extension(name);
  return el("span", { className: `ext ${families[ext] ?? ""}`, ariaHidden: "true" }, ext.length <= 4 && ext !== "unknown" ? ext : "file");
}

const titles = {
  convert: "Convert",
  compress: "Compress",
  merge: "Merge",
  metadata: "Metadata",
  zip: "Zip",
  lock: "Lock",
  unlock: "Unlock",
  reset_password: "Change password",
  extract_pages: "Extract pages",
  split: "Split",
  rotate: "Rotate",
  thumbnail: "Thumbnail",
  page_numbers: "Number pages",
  watermark: "Add watermark",
  flatten: "Flatten",
  fill_form: "Fill in form",
  bookmarks: "Set bookmarks",
  attach: "Attach file",
  screenshot: "Screenshot",
  extract: "Extract files",
  ocr: "Recognize text",
  inspect: "Inspect",
};
const order = Object.keys(titles);
const words = (name) => { const w = name.replaceAll("_", " "); return w[0].toUpperCase() + w.slice(1); };
/** Labels of parameters whose name in words would not be clear. */
const labels = {
  bom: "Byte order mark",
  crf: "Quality factor (CRF)",
  dpi: "Resolution (DPI)",
  fit_to: "Fit sheets to",
  footer: "Footer (HTML)",
  fps: "Frames per second",
  header: "Header (HTML)",
  javascript: "Run scripts",
  media: "Page style",
  media_features: "Media features (JSON)",
  output_delimiter: "Delimiter of the result",
  output_encoding: "Encoding of the result",
  pdfa: "PDF/A",
  pdfua: "PDF/UA",
  shape: "JSON shape",
  tagged: "Tags for screen readers",
  update_indexes: "Update table of contents",
  wait_delay: "Wait (seconds)",
  wait_for_expression: "Wait for expression",
  wait_for_selector: "Wait for element (CSS)",
};
/** The label of a parameter. CSV has a header that is no HTML. */
const label = (name, d) => name === "header" && d?.type === "boolean" ? "First row is a header" : labels[name] ?? words(name);
const title = (action) => titles[action] ?? words(action);

// ---- Files ----

let files = []; // { file, ext, row, sub, bar, remove, upload }
let busy = false;

/** Adds files that are uploaded later, or the upload of one that the server already has. */
function add(list, upload = null) {
  if (busy) return;
  for (const file of list) {
    const item = { file, ext: extension(file.name), upload };
    item.sub = el("div", { className: "file-sub" }, bytes(file.size));
    item.bar = el("progress", { max: 100, value: 0, hidden: true, ariaLabel: `Upload of ${file.name}` });
    item.remove = el("button", { type: "button", className: "button ghost square", title: "Remove" }, icon("x"), el("span", { className: "sr" }, `Remove ${file.name}`));
    item.remove.onclick = () => {
      const at = files.indexOf(item);
      files.splice(at, 1);
      item.row.remove();
      announce(`${file.name} removed`);
      (files[at]?.remove ?? files[at - 1]?.remove ?? $("input")).focus();
      filesChanged();
    };
    item.row = el("li", {}, badge(file.name), el("div", {}, el("div", { className: "file-name" }, file.name), item.sub), item.remove, item.bar);
    files.push(item);
    $("files").append(item.row);
  }
  if (list.length) announce(list.length === 1 ? `${list[0].name} added` : `${list.length} files added`);
  filesChanged();
}

$("input").addEventListener("change", (event) => {
  add([...event.target.files]);
  event.target.value = "";
});

// The server reads a file from a URL.
$("import")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const url = $("url").value.trim();
  if (busy || !url) return;
  $("import-problem").replaceChildren();
  $("fetch").disabled = true;
  announce("Importing");
  try {
    let file = await call("/import", { url });
    do file = await call(`/files/${encodeURIComponent(file.file_key)}?wait=30s`, undefined, { method: "GET" });
    while (file.state === "importing");
    if (file.state === "failed") throw new Error(file.error_message);
    const nothing = () => {};
    add([{ name: file.file_name, size: file.size, type: file.mime_type }], { url, state: "done", session: file, pause: nothing, continue: nothing, cancel: nothing });
    $("url").value = "";
  } catch (error) {
    $("import-problem").replaceChildren(el("div", { className: "note bad" }, icon("alert"), el("div", {}, error.message)));
  } finally {
    $("fetch").disabled = false;
  }
});

// Files can be dropped anywhere on the page.
for (const type of ["dragenter", "dragover"]) {
  addEventListener(type, (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = busy ? "none" : "copy";
    $("drop").classList.toggle("over", !busy);
  });
}
addEventListener("dragleave", (event) => { if (!event.relatedTarget) $("drop").classList.remove("over"); });
addEventListener("drop", (event) => {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  $("drop").classList.remove("over");
  // A directory has no readable content.
  const entries = [...event.dataTransfer.items].filter((i) => i.kind === "file" && i.webkitGetAsEntry?.()?.isDirectory !== true);
  add(entries.map((i) => i.getAsFile()).filter(Boolean));
});

// ---- Actions ----

const asked = new Map();

/** Calls supported-operation, once for each combination. */
function supported(ext, action) {
  const question = `${ext}\n${action ?? ""}`;
  if (!asked.has(question)) {
    const promise = call("/supported-operation", action ? { ext, action } : { ext });
    promise.catch(() => asked.delete(question));
    asked.set(question, promise);
  }
  return asked.get(question);
}

const exts = () => [...new Set(files.map((f) => f.ext))];
let round = 0; // the latest change wins
let action = "";

async function filesChanged() {
  const mine = ++round;
  loading(true);
  $("drop").classList.toggle("small", files.length > 0);
  clearResult();
  if (files.length === 0) {
    $("step-action").classList.add("waiting");
    $("form").hidden = true;
    $("action-empty").hidden = false;
    $("action-empty").textContent = "Choose files to see the available actions.";
    showCalls();
    return;
  }
  let answers;
  try {
    answers = await Promise.all(exts().map((ext) => supported(ext)));
  } catch (error) {
    if (mine === round) showMessage($("action-empty"), error.message);
    return;
  }
  if (mine !== round) return;
  let actions = answers[0].available_actions ?? [];
  for (const answer of answers.slice(1)) actions = actions.filter((a) => answer.available_actions?.includes(a));
  actions.sort((a, b) => (order.indexOf(a) + 1 || 99) - (order.indexOf(b) + 1 || 99));
  if (actions.length === 0) {
    $("form").hidden = true;
    showMessage($("action-empty"), files.length > 1 ? "No action supports all of these files." : `This server does not support “${files[0].ext}” files.`);
    return;
  }
  $("step-action").classList.remove("waiting");
  $("action-empty").hidden = true;
  $("form").hidden = false;
  if (!actions.includes(action)) action = actions[0];
  $("actions").replaceChildren(...actions.map((a) => chip("action", a, title(a), a === action, () => { action = a; actionChanged(); })));
  await actionChanged();
}

function showMessage(node, text) {
  node.hidden = false;
  node.textContent = text;
  announce(text);
}

function chip(name, value, text, checked, changed) {
  const input = el("input", { type: "radio", name, value, checked });
  input.addEventListener("change", changed);
  return el("label", { className: "chip" }, input, el("span", {}, text));
}

let described = {}; // parameters that all files support
let secrets = new Set();
const given = new Map(); // entered values by name, also of other actions
const extras = new Map(); // files of parameters by name, each { file, sub, bar, upload }
const isFile = (name) => described[name]?.format === "file-key";

/** The files of the parameters in the form. */
const chosenExtras = () => [...extras].filter(([name]) => isFile(name) && $(`p-${name}`)).map(([, extra]) => extra);

/** Disables the start button until the parameters of the action are known. */
function loading(on) {
  $("start").disabled = on;
  $("form").setAttribute("aria-busy", String(on));
}

async function actionChanged() {
  const mine = ++round;
  loading(true);
  clearResult();
  $("problem").replaceChildren();
  let answers;
  try {
    answers = await Promise.all(exts().map((ext) => supported(ext, action)));
  } catch (error) {
    if (mine === round) problem(error.message);
    return;
  }
  if (mine !== round) return;
  described = { ...answers[0].parameters };
  for (const answer of answers.slice(1)) {
    for (const [name, one] of Object.entries(described)) {
      const other = answer.parameters?.[name];
      if (other === undefined) delete described[name];
      else if (Array.isArray(one) && Array.isArray(other)) described[name] = one.filter((v) => other.includes(v));
    }
  }
  // A file may keep its format if a parameter changes it.
  const [own, ...others] = new Set(exts());
  if (described.convert_to && others.length === 0 && answers.every((a) => a.same_format)) described.convert_to = [...described.convert_to, own];
  secrets = new Set(Object.entries(described).filter(([, d]) => d.format === "password").map(([name]) => name));
  await showParameters(mine);
}

let fitting = null; // names of the parameters that apply to the target

async function showParameters(mine) {
  const target = described.convert_to ? choice("convert_to") : "";
  const query = new URLSearchParams({ action, convert_to: target });
  for (const ext of exts()) query.append("ext", ext);
  try {
    const response = await fetch(`/dashboard/try/parameters?${query}`, { headers: { Accept: "application/json" } });
    fitting = response.ok ? new Set((await response.json()).parameters) : null;
  } catch {
    fitting = null;
  }
  if (mine !== round) return;
  loading(false);
  const main = [];
  const more = [];
  for (const [name, d] of Object.entries(described)) {
    if (fitting && !fitting.has(name)) continue;
    if (name === "convert_to") main.unshift(choices(name, "Output format", d, (v) => v));
    else if (name === "compression_value") main.push(choices(name, "Compression level", d, (v) => words(v.replace(/_compression$/, ""))));
    else if (!Array.isArray(d) && (d.required || d.format === "file-key" || name === "text")) main.push(field(name, d));
    else more.push(field(name, d));
  }
  const open = $("parameters").querySelector("details")?.open;
  const focused = document.activeElement?.closest("#parameters") ? document.activeElement : null;
  const again = focused && [focused.name, focused.value];
  $("parameters").replaceChildren(...main);
  if (more.length) {
    const grid = el("div", { className: "fields" }, ...more);
    $("parameters").append(el("details", { className: "fold", open: open ?? false }, el("summary", {}, "More"), grid));
  }
  if (again) [...$("form").elements].find((e) => e.name === again[0] && (e.type !== "radio" || e.value === again[1]))?.focus();
  showCalls();
}

/** The selected value: the previous choice if it is offered, else the most common one. */
function choice(name) {
  const values = described[name];
  const before = given.get(name);
  if (values.includes(before)) return before;
  const own = new Set(exts());
  const wanted = { convert_to: ["pdf", "jpg", "mp4", "mp3"], compression_value: ["recommended_compression"] }[name] ?? [];
  return wanted.find((v) => values.includes(v) && !own.has(v)) ?? values.find((v) => !own.has(v)) ?? values[0];
}

function choices(name, legend, values, text) {
  const chosen = choice(name);
  const chips = values.map((v) => chip(name, v, text(v), v === chosen, () => {
    given.set(name, v);
    if (name === "convert_to") { clearResult(); loading(true); showParameters(++round); } else showCalls();
  }));
  return el("fieldset", {}, el("legend", {}, legend), el("div", { className: "chips" }, ...chips));
}

/** A field for a second file, such as the picture of a watermark. */
function fileField(name, d) {
  const id = `p-${name}`;
  const input = el("input", { id, name, type: "file", accept: (d["x-file-formats"] ?? []).filter((f) => f !== "*").map((f) => `.${f}`).join(","), required: Boolean(d.required) });
  input.setAttribute("aria-describedby", `${id}-hint`);
  const place = el("div", { className: "file-sub" });
  const show = () => place.replaceChildren(...extras.has(name) ? [extras.get(name).sub, extras.get(name).bar] : []);
  if (extras.has(name)) {
    const kept = new DataTransfer();
    kept.items.add(extras.get(name).file);
    input.files = kept.files;
  }
  show();
  input.addEventListener("change", () => {
    const [file] = input.files;
    if (file) extras.set(name, { file, upload: null, sub: el("span", {}, bytes(file.size)), bar: el("progress", { max: 100, value: 0, hidden: true, ariaLabel: `Upload of ${file.name}` }) });
    else extras.delete(name);
    input.removeAttribute("aria-invalid");
    show();
    showCalls();
  });
  return el("div", { className: "field" },
    el("label", { htmlFor: id }, words(name.replace(/_key$/, "")), d.required ? "" : el("span", { className: "muted" }, " (optional)")),
    input, place, el("span", { className: "hint", id: `${id}-hint` }, d.description ?? ""));
}

function field(name, d) {
  if (d.format === "file-key") return fileField(name, d);
  const id = `p-${name}`;
  const caption = el("label", { htmlFor: id }, label(name, d), !Array.isArray(d) && d.required ? "" : el("span", { className: "muted" }, " (optional)"));
  let input;
  if (Array.isArray(d)) {
    input = el("select", { id, name }, el("option", { value: "" }, "Default"), ...d.map((v) => el("option", { value: v }, v)));
  } else if (d.enum) {
    const first = d.required ? [] : [el("option", { value: "" }, "Default")];
    input = el("select", { id, name }, ...first, ...d.enum.map((v) => el("option", { value: v }, v)));
  } else if (d.type === "boolean") {
    input = el("select", { id, name }, el("option", { value: "" }, `Default (${d.default ? "yes" : "no"})`), el("option", { value: "true" }, "Yes"), el("option", { value: "false" }, "No"));
  } else if (d.type === "integer" || d.type === "number") {
    input = el("input", { id, name, type: "number", step: d.type === "integer" ? "1" : "any", placeholder: d.default ?? "" });
    if (d.minimum !== undefined) input.min = d.minimum;
    if (d.maximum !== undefined) input.max = d.maximum;
  } else {
    input = el("input", { id, name, type: d.format === "password" ? "password" : "text", placeholder: d.default ?? (d.type === "object" ? '{"name": "value"}' : ""), spellcheck: false });
    input.autocomplete = d.format === "password" ? "new-password" : "off";
  }
  if (!Array.isArray(d)) {
    input.required = Boolean(d.required);
    if (d.description) input.setAttribute("aria-describedby", `${id}-hint`);
  }
  if (given.has(name) && !secrets.has(name)) input.value = given.get(name);
  input.addEventListener("input", () => { given.set(name, input.value); input.removeAttribute("aria-invalid"); showCalls(); });
  const hint = !Array.isArray(d) && d.description ? el("span", { className: "hint", id: `${id}-hint` }, d.description) : null;
  return el("div", { className: "field" }, caption, input, hint);
}

/** Returns the JSON object in a text, or null. */
function json(text) {
  try {
    const v = JSON.parse(text);
    return v && typeof v === "object" && !Array.isArray(v) ? v : null;
  } catch { return null; }
}

/** Returns the parameters of the request. */
function parameters() {
  const out = {};
  for (const input of $("form").elements) {
    if (!input.name || input.name === "action" || input.value === "" || input.type === "radio" && !input.checked) continue;
    const d = described[input.name];
    if (d === undefined) continue;
    if (input.type === "file") out[input.name] = extras.get(input.name)?.upload?.session?.file_key ?? "<file_key>";
    else if (Array.isArray(d) || d.type === "string") out[input.name] = input.value;
    else if (d.type === "boolean") out[input.name] = input.value === "true";
    else if (d.type === "object") out[input.name] = json(input.value) ?? input.value;
    else if (Array.isArray(d.type)) out[input.name] = input.value.split(",").map((v) => v.trim());
    else out[input.name] = Number(input.value);
  }
  return out;
}

/** Returns the first invalid field and a message, or null. */
function wrong() {
  for (const input of $("form").querySelectorAll("#parameters input, #parameters select")) {
    const d = described[input.name];
    let text = "";
    if (input.validity.valueMissing) text = `${label(input.name, d)} is required.`;
    else if (!input.validity.valid) text = `${label(input.name, d)}: ${input.validationMessage}`;
    else if (d?.type === "object" && input.value && !json(input.value)) text = `${label(input.name, d)} must be a JSON object, such as {"name": "value"}.`;
    else if (d?.pattern && input.value) {
      try {
        if (!new RegExp(d.pattern, "u").test(input.value)) text = `${label(input.name, d)}: invalid format. ${d.description ?? ""}`;
      } catch { /* the server validates it */ }
    }
    if (text) return [input, text];
  }
  return null;
}

function problem(text, input) {
  $("problem").replaceChildren(el("div", { className: "note bad" }, icon("alert"), el("div", {}, text)));
  if (!input) return;
  const fold = input.closest("details");
  if (fold) fold.open = true;
  input.setAttribute("aria-invalid", "true");
  input.focus();
}

// ---- Running ----

let operation = null; // { request, id, status }
let stopping = null; // an AbortController during an upload

$("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (busy) return;
  $("problem").replaceChildren();
  const bad = wrong();
  if (bad) {
    problem(bad[1], bad[0]);
    return;
  }
  const request = { action, parameters: parameters() };
  setBusy(true);
  clearResult();
  try {
    // Validate before uploading.
    for (const ext of exts()) {
      const answer = await call("/supported-operation", { ext, action, parameters: request.parameters });
      if (!answer.supported) {
        setBusy(false);
        problem(answer.reason ? `${answer.reason[0].toUpperCase()}${answer.reason.slice(1)}.` : "This server does not support the operation.");
        return;
      }
    }
    await upload();
    request.parameters = parameters(); // now with the keys of their files
    await run(request);
  } catch (error) {
    failed(error);
  } finally {
    setBusy(false);
  }
});

function setBusy(on) {
  busy = on;
  $("fields").disabled = on;
  $("input").disabled = on;
  $("start").disabled = on;
  for (const f of files) f.remove.disabled = on;
  $("cancel").hidden = !on;
  $("pause").hidden = true;
  if (!on) stopping = null;
}

function state(text, kind) {
  $("step-result").classList.remove("waiting");
  $("result-empty").hidden = true;
  $("progress").hidden = false;
  $("state").replaceChildren(el("span", { className: `badge ${kind}` }, text));
  $("overall").className = kind;
}

function clearResult() {
  if (operation === null && $("progress").hidden) return;
  operation = null;
  $("step-result").classList.add("waiting");
  $("result-empty").hidden = false;
  $("progress").hidden = true;
  $("operation").hidden = true;
  $("failures").replaceChildren();
  $("results").replaceChildren();
  for (const f of files) f.bar.hidden = f.upload?.state !== "done";
}

async function upload() {
  const every = [...files, ...chosenExtras()];
  const waiting = every.filter((f) => f.upload?.state !== "done");
  if (waiting.length === 0) return;
  stopping = new AbortController();
  $("pause").hidden = false;
  state("Uploading", "running");
  announce("Uploading");
  const show = () => {
    const size = every.reduce((sum, f) => sum + f.file.size, 0) || 1;
    const sent = every.reduce((sum, f) => sum + (f.upload?.state === "done" ? f.file.size : f.upload?.sent ?? 0), 0);
    $("overall").value = Math.floor(100 * sent / size);
  };
  const work = waiting.map((f) => {
    f.bar.hidden = false;
    f.upload = new Upload(f.file, (u) => {
      f.bar.value = u.percent;
      f.bar.className = { done: "completed", failed: "failed" }[u.state] ?? "";
      const note = { waiting: "waiting", sending: `${u.percent} %`, paused: "paused", retrying: u.note, done: "uploaded", failed: u.note }[u.state];
      const text = `${bytes(f.file.size)} · ${note}`;
      if (f.sub.textContent !== text) f.sub.textContent = text;
      show();
    });
    return f.upload.run();
  });
  stopping.signal.addEventListener("abort", () => { for (const f of waiting) f.upload.cancel(); });
  const ends = await Promise.allSettled(work);
  $("pause").hidden = true;
  showCalls();
  const bad = ends.find((end) => end.status === "rejected");
  if (bad) throw bad.reason;
}

$("pause").addEventListener("click", () => {
  const every = [...files, ...chosenExtras()];
  const paused = every.some((f) => f.upload?.state === "paused");
  for (const f of every) if (paused) f.upload?.continue(); else f.upload?.pause();
  $("pause").lastElementChild.textContent = paused ? "Pause" : "Resume";
  state(paused ? "Uploading" : "Paused", paused ? "running" : "pending");
  announce(paused ? "Uploading" : "Paused");
});

$("cancel").addEventListener("click", async () => {
  if (operation?.id) {
    try {
      await call(`/status/${encodeURIComponent(operation.id)}`, undefined, { method: "DELETE" });
    } catch (error) {
      problem(error.message);
    }
    return;
  }
  stopping?.abort(new Error("Cancelled"));
});

function idempotencyKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");
}

async function run(request) {
  request = { action: request.action, file_keys: files.map((f) => f.upload.session.file_key), parameters: request.parameters };
  operation = { request };
  state("Queued", "queued");
  $("overall").value = 0;
  const key = { "Idempotency-Key": idempotencyKey() };
  let accepted;
  for (let n = 0; ; n++) {
    try {
      accepted = await call("/do", request, { headers: key });
      break;
    } catch (error) {
      const temporary = !error.status || error.status === 429 && error.code !== "quota_exceeded" || error.status >= 500;
      if (!temporary || n === 4) throw error;
      await new Promise((go) => setTimeout(go, 1000 * Math.max(2 ** n / 2, error.retryAfter ?? 0)));
    }
  }
  operation.id = accepted.main_task_id;
  $("operation").href = `/dashboard/operations/${encodeURIComponent(operation.id)}`;
  $("operation").hidden = false;
  showCalls();
  const end = await follow(operation.id, (status) => {
    operation.status = status;
    $("overall").value = status.progress;
    if (status.operation_status === "running") state("Running", "running");
  });
  finished(end);
}

function finished(status) {
  const good = status.files_data.filter((f) => f.status === "completed");
  const bad = status.files_data.filter((f) => f.status === "failed");
  $("overall").value = 100;
  state(status.operation_status === "completed" ? "Completed" : "Failed", status.operation_status);
  $("failures").replaceChildren(...bad.map((f) => el("div", { className: "note bad" }, icon("alert"),
    el("div", { className: "break" }, el("b", {}, f.file_name ?? "File"), el("br"), f.error_message ?? "", " ", el("code", {}, f.error_code ?? "")))));
  $("results").replaceChildren(...good.map(result));
  for (const pre of $("results").querySelectorAll("pre[data-text]")) showText(pre, pre.dataset.text);
  showCalls();
  announce(good.length ? `${good.length === 1 ? `${good[0].file_name} is` : `${good.length} results are`} ready` : "Operation failed");
  $("step-result").scrollIntoView({ block: "nearest" });
}

function failed(error) {
  state(error.message === "Cancelled" ? "Cancelled" : "Failed", "failed");
  $("failures").replaceChildren(el("div", { className: "note bad" }, icon("alert"), el("div", { className: "break" },
    error.message === "Cancelled" ? "The upload was cancelled." : error.message, error.code ? " " : null, error.code ? el("code", {}, error.code) : null)));
  if (error instanceof UploadBlocked) $("failures").append(...corsInstructions());
  announce(error.message);
  $("step-result").scrollIntoView({ block: "nearest" });
}

/** Instructions for the operator: how to permit uploads from this page to the bucket. */
function corsInstructions() {
  const rule = [`  "AllowedOrigins": [${JSON.stringify(location.origin)}],`, '  "AllowedMethods": ["PUT"],', '  "AllowedHeaders": ["*"],', '  "ExposeHeaders": ["ETag"],', '  "MaxAgeSeconds": 3600'];
  return [
    el("p", {}, "Your browser uploads directly to the bucket. It must be able to reach the bucket, through HTTPS if this page uses HTTPS, and the bucket must permit uploads from this page. The operator permits them with this CORS rule (",
      el("code", {}, "aws s3api put-bucket-cors"), ", which replaces existing rules):"),
    code("CORS rule of the bucket", `{"CORSRules": [{\n${rule.join("\n")}\n}]}`),
  ];
}

function result(file) {
  const address = `/dashboard/files/${encodeURIComponent(file.file_key)}`;
  const name = file.file_name;
  const views = {
    image: () => el("img", { src: address, alt: name }),
    pdf: () => el("iframe", { src: `${address}#toolbar=0&navpanes=0&view=FitH`, title: name }),
    audio: () => el("audio", { src: address, controls: true, preload: "metadata", ariaLabel: name }),
    video: () => el("video", { src: address, controls: true, preload: "metadata", ariaLabel: name }),
    text: () => el("pre", { tabIndex: 0, ariaLabel: name, "data-text": address }),
  };
  return el("li", { className: "result" },
    el("div", { className: "view" }, views[kindOf(name)]?.() ?? icon("file")),
    el("div", { className: "about" }, el("div", {}, el("b", {}, name), el("span", {}, bytes(file.size ?? 0)),
        ...(file.warnings ?? []).map((w) => el("span", { className: "warning", title: w.code }, w.message))),
      el("a", { className: "button primary", href: file.download_link, download: name }, icon("download"), el("span", {}, "Download"), el("span", { className: "sr" }, ` ${name}`))));
}

// ---- As curl ----

function showCalls() {
  const steps = [];
  const step = (name, text) => steps.push([name, text]);
  const first = files[0];
  if (!first) {
    $("calls").replaceChildren(el("p", { className: "muted" }, "Choose a file to see each API call as a curl command."));
    return;
  }
  const session = first.upload?.session;
  const size = cut(first.file.size);
  step("Set the address and your key", curl.address());
  const imported = first.upload?.url;
  const single = box.dataset.singleCall === "true" && !files.some((f) => f.upload?.url);
  if (single) {
    const request = operation?.request ?? { action, parameters: parameters() };
    step("Do everything in one call …", curl.oneCall(request.action, files.map((f) => f.file.name), request.parameters, secrets));
  }
  step(single ? "… or step by step: list the supported actions" : "List the supported actions", `${curl.ask(first.ext)}\n${curl.ask(first.ext, action)}`);
  if (imported) {
    step("Import the file", curl.fetch(imported));
  } else {
    step("Start the upload", curl.initiate(first.upload?.request ?? { file_name: first.file.name, size: first.file.size, mime_type: first.file.type || "application/octet-stream", parts: size.count }));
    step("Upload the parts; each response has an ETag", curl.put(first.file, session?.presigned_urls ?? new Array(size.count).fill("…").map((_, i) => `<presigned_urls[${i}]>`), size.length));
    step("Complete the upload", curl.complete(first.upload?.completion ?? { file_key: "<file_key>", object_name: "<object_name>", upload_id: "<upload_id>", parts: [{ part_number: 1, etag: "<ETag>" }] }));
  }
  step("Start the operation", curl.start(operation?.request ?? { action, file_keys: files.map((f) => f.upload?.session?.file_key ?? "<file_key>"), parameters: parameters() }, secrets));
  step("Get the status", curl.status(operation?.id ?? "<main_task_id>"));
  const result = operation?.status?.files_data.find((f) => f.download_link);
  step("Download the result", curl.download(result ?? { download_link: "/v1/download/<result_file_key>", file_name: "result" }));
  $("calls").replaceChildren(...steps.map(([name, text], i) => {
    return el("section", { ariaLabel: name }, el("h3", {}, `${i + 1}. ${name} `, name === "Start the upload" && files.length > 1 ? el("small", {}, "for each file; shown for the first") : null), code(name, text));
  }));
}

/** Creates a code block with a copy button. */
function code(name, text) {
  const pre = el("pre", { tabIndex: 0, ariaLabel: name }, el("code", {}, text));
  const button = el("button", { type: "button", className: "button compact", "data-copy-code": "" }, icon("copy"), el("span", {}, "Copy"));
  return el("div", { className: "code has-copy" }, pre, button);
}
