// The "Try it" page: choose files and an action, upload, follow the status, show the
// results, and show every call as curl.

import { announce } from "./app.js";
import { call, follow } from "./follow.js";
import { UploadBlocked, Upload, cut, interrupted } from "./upload.js";
import * as curl from "./curl.js";
import { languages, program } from "./code.js";
import { viewer } from "./preview.js";

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
  angle: "Angle (degrees)",
  audio_bitrate: "Audio bit rate",
  bom: "Byte order mark",
  crf: "Quality factor (CRF)",
  deep: "Look into content",
  density: "Pixels per inch",
  dpi: "Resolution (DPI)",
  every: "Pages in each part",
  facturx: "Factur-X profile",
  facturx_document: "Factur-X document type",
  facturx_version: "Factur-X version",
  fit_to: "Fit sheets to",
  footer: "Footer (HTML)",
  fps: "Frames per second",
  convert_to: "Output format",
  header: "Header (HTML)",
  height: "Height (pixels)",
  image_lossless: "Keep pictures lossless",
  image_quality: "Quality of pictures",
  image_resolution: "Resolution of pictures (DPI)",
  interval: "Interval (seconds)",
  margin: "Margins",
  mute: "Remove sound",
  ocr_language: "Language of the text",
  page_size: "Paper size",
  print_background: "Print backgrounds",
  sample_rate: "Sample rate (Hz)",
  strip_metadata: "Remove metadata",
  video_bitrate: "Video bit rate",
  video_height: "Height of the video (pixels)",
  width: "Width (pixels)",
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

const maxFiles = Number(box.dataset.maxFiles);
const maxSize = Number(box.dataset.maxSize);

/** Returns those of the files that the server accepts, and shows why it refuses the others. */
function accepted(list) {
  const large = maxSize > 0 ? list.filter((f) => f.size > maxSize) : [];
  let good = list.filter((f) => !large.includes(f));
  const problems = large.map((f) => `${f.name} is larger than ${bytes(maxSize)}, the limit of this server.`);
  const free = Math.max(0, maxFiles - files.length);
  if (good.length > free) {
    problems.push(`An operation can have at most ${maxFiles} files. ${good.length - free} of the ${good.length} files were not added.`);
    good = good.slice(0, free);
  }
  $("files-problem").replaceChildren(...problems.map((text) => el("div", { className: "note bad" }, icon("alert"), el("div", { className: "break" }, text))));
  return good;
}

/** Adds files that are uploaded later, or the upload of one that the server already has. */
function add(list, upload = null) {
  if (busy) return;
  list = accepted(list);
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

for (const id of ["input", "folder"]) {
  $(id).addEventListener("change", (event) => {
    add([...event.target.files].filter((f) => !f.name.startsWith("."))); // .DS_Store and the like
    event.target.value = "";
  });
}

addEventListener("paste", (event) => {
  const list = [...event.clipboardData?.files ?? []];
  if (list.length === 0 || event.target.matches?.("input:not([type=file]), textarea")) return;
  event.preventDefault();
  add(list);
});

/** Returns all files of a dropped entry, which may be a directory. */
async function filesOf(entry) {
  if (entry.isFile) return [await new Promise((go, fail) => entry.file(go, fail))];
  const reader = entry.createReader();
  const all = [];
  for (;;) { // a call returns at most 100 entries
    const some = await new Promise((go, fail) => reader.readEntries(go, fail));
    if (some.length === 0 || all.length > maxFiles) return all;
    for (const one of some) if (!one.name.startsWith(".")) all.push(...await filesOf(one));
  }
}

/** Adds a file that the server already has. */
function addStored(file, more) {
  const nothing = () => {};
  add([{ name: file.file_name, size: file.size, type: file.mime_type }], { state: "done", session: file, pause: nothing, continue: nothing, cancel: nothing, ...more });
}

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
    addStored(file, { url });
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
addEventListener("drop", async (event) => {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  $("drop").classList.remove("over");
  // The items are gone after the first await.
  const items = [...event.dataTransfer.items].filter((i) => i.kind === "file").map((i) => i.webkitGetAsEntry?.() ?? i.getAsFile());
  const list = [];
  for (const item of items) list.push(...item instanceof File ? [item] : item ? await filesOf(item).catch(() => []) : []);
  add(list);
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
    if (mine === round) showMessage($("action-empty"), error.message, error.ended);
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

function showMessage(node, text, ended = false) {
  node.hidden = false;
  node.replaceChildren(text, ...ended ? [" ", el("a", { href: "/dashboard/login?next=try" }, "Log in")] : []);
  announce(text);
}

function chip(name, value, text, checked, changed) {
  const input = el("input", { type: "radio", name, value, checked });
  input.addEventListener("change", changed);
  return el("label", { className: "chip" }, input, el("span", {}, text));
}

let described = {}; // parameters that all files support
let offers = new Map(); // targets by extension, if the files of each may have one of their own
let separate = false; // each type of file has its own target
let shared = false; // there are targets for all types
const chosenTargets = new Map(); // by extension
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
  offers = new Map();
  shared = Boolean(described.convert_to?.length);
  if (action === "convert" && others.length > 0 && answers.every((a) => a.parameters?.convert_to?.length)) {
    exts().forEach((ext, i) => offers.set(ext, [...answers[i].parameters.convert_to, ...answers[i].same_format ? [ext] : []]));
  }
  if (offers.size === 0) separate = false;
  else if (!shared) separate = true;
  secrets = new Set(Object.entries(described).filter(([, d]) => d.format === "password").map(([name]) => name));
  await showParameters(mine);
}

let fitting = null; // names of the parameters that apply to the target

async function showParameters(mine) {
  const target = described.convert_to && !separate ? choice("convert_to") : "";
  const ask = async (target, list) => {
    const query = new URLSearchParams({ action, convert_to: target });
    for (const ext of list) query.append("ext", ext);
    const response = await fetch(`/dashboard/try/parameters?${query}`, { headers: { Accept: "application/json" } });
    if (!response.ok) throw new Error(response.statusText);
    return (await response.json()).parameters;
  };
  try {
    const [first, ...rest] = await Promise.all(separate ? exts().map((ext) => ask(targetOf(ext), [ext])) : [ask(target, exts())]);
    fitting = new Set(first.filter((name) => rest.every((list) => list.includes(name))));
  } catch {
    fitting = null;
  }
  if (mine !== round) return;
  loading(false);
  const main = offers.size && shared ? [modes()] : [];
  if (separate) main.push(typeTargets());
  const more = [];
  for (const [name, d] of Object.entries(described)) {
    if (fitting && !fitting.has(name)) continue;
    if (name === "convert_to") main.push(...separate ? [] : [targets(d)]);
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

/** Targets by how often people want them, by the family of the source. */
const ranks = {
  video: ["mp4", "webm", "mov", "mkv", "gif", "mp3", "m4a", "wav"],
  audio: ["mp3", "wav", "flac", "m4a", "ogg", "opus", "aac"],
  image: ["jpg", "png", "webp", "pdf", "avif", "gif", "tiff", "svg"],
  pdf: ["docx", "jpg", "png", "txt", "xlsx", "pptx", "html", "md"],
  other: ["pdf", "docx", "xlsx", "csv", "txt", "html", "png", "jpg", "mp3", "mp4"],
};
const groups = { document: "Documents", sheet: "Spreadsheets", slides: "Presentations", image: "Pictures", video: "Video", audio: "Audio", archive: "Archives" };

/** The rank of a target for files of an extension: smaller is more common. */
function rank(target, ext) {
  const list = ranks[ext] ?? ranks[families[ext]] ?? ranks.other;
  return (list.indexOf(target) + 1 || ranks.other.indexOf(target) + 51 || 51) + (families[target] === families[ext] ? 0 : 0.5);
}

const ranked = (values, ext = exts()[0] ?? "") => values.map((v, i) => [v, rank(v, ext), i]).sort((x, y) => x[1] - y[1] || x[2] - y[2]).map(([v]) => v);

/** The selected value: the previous choice if it is offered, else the most common one. */
function choice(name) {
  const values = described[name];
  const before = given.get(name);
  if (values.includes(before)) return before;
  const own = new Set(exts());
  if (name === "convert_to") {
    const list = ranked(values);
    return list.find((v) => !own.has(v)) ?? list[0];
  }
  return values.find((v) => v === "recommended_compression") ?? values.find((v) => !own.has(v)) ?? values[0];
}

/** The target of the files of an extension. */
function targetOf(ext) {
  const values = offers.get(ext);
  const before = chosenTargets.get(ext);
  if (values.includes(before)) return before;
  const list = ranked(values, ext);
  return list.find((v) => v !== ext) ?? list[0];
}

function targetsChanged() {
  clearResult();
  loading(true);
  showParameters(++round);
}

/** The choice between a target for all files and one for each type. */
function modes() {
  const mode = (value, text, on) => chip("mode", value, text, separate === on, () => { separate = on; targetsChanged(); });
  return el("fieldset", {}, el("legend", {}, "Output"), el("div", { className: "chips" }, mode("same", "One format for all files", false), mode("each", "A format for each type", true)));
}

/** The targets in groups by family, in a given order. */
function grouped(list) {
  const by = new Map();
  for (const v of list) {
    const group = groups[families[v]] ?? "Other";
    if (!by.has(group)) by.set(group, []);
    by.get(group).push(v);
  }
  return [...by];
}

/** A target for each type of the chosen files. */
function typeTargets() {
  return el("fieldset", {}, el("legend", {}, "Output formats"), el("div", { className: "fields narrow" }, ...exts().map((ext, i) => {
    const n = files.filter((f) => f.ext === ext).length;
    const options = grouped(ranked(offers.get(ext), ext)).map(([name, some]) => el("optgroup", { label: name }, ...some.map((v) => el("option", { value: v }, v.toUpperCase()))));
    const select = el("select", { id: `target-${i}`, name: `target-${i}` }, ...options);
    select.value = targetOf(ext);
    select.addEventListener("change", () => { chosenTargets.set(ext, select.value); targetsChanged(); });
    return el("div", { className: "field" }, el("label", { htmlFor: `target-${i}` }, `${ext.toUpperCase()}, ${n === 1 ? "1 file" : `${n} files`}`), select);
  })));
}

/** The requests that the form stands for: files of different targets need one each. */
function requests() {
  const common = parameters();
  if (!separate) return [{ action, files, parameters: common }];
  const by = new Map();
  for (const f of files) {
    const to = targetOf(f.ext);
    if (!by.has(to)) by.set(to, { action, files: [], parameters: { convert_to: to, ...common } });
    by.get(to).files.push(f);
  }
  return [...by.values()];
}

/** The targets in groups, the most common first. */
function targets(values) {
  const chosen = choice("convert_to");
  const one = (v) => chip("convert_to", v, v.toUpperCase(), v === chosen, () => {
    given.set("convert_to", v);
    targetsChanged();
  });
  const list = ranked(values);
  if (list.length <= 8) return el("fieldset", {}, el("legend", {}, "Output format"), el("div", { className: "chips" }, ...list.map(one)));
  const rows = grouped(list).map(([name, some]) => el("div", { className: "target-group", role: "group", ariaLabel: name }, el("span", { className: "group-name", ariaHidden: "true" }, name), el("div", { className: "chips" }, ...some.map(one))));
  return el("fieldset", {}, el("legend", {}, "Output format"), el("div", { className: "target-groups" }, ...rows));
}

function choices(name, legend, values, text) {
  const chosen = choice(name);
  const chips = values.map((v) => chip(name, v, text(v), v === chosen, () => {
    given.set(name, v);
    showCalls();
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
    el("label", { htmlFor: id }, label(name.replace(/_key$/, ""), d), d.required ? "" : el("span", { className: "muted" }, " (optional)")),
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

let operation = null; // the first of operations
let operations = []; // { request, names, id, status }
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
  setBusy(true);
  clearResult();
  try {
    // Validate before uploading.
    for (const ext of exts()) {
      const one = requests().find((r) => r.files.some((f) => f.ext === ext));
      const answer = await call("/supported-operation", { ext, action, parameters: one.parameters });
      if (!answer.supported) {
        setBusy(false);
        problem(answer.reason ? `${answer.reason[0].toUpperCase()}${answer.reason.slice(1)}.` : "This server does not support the operation.");
        return;
      }
    }
    await upload();
    await run(requests()); // now with the keys of the files
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
  operations = [];
  $("step-result").classList.add("waiting");
  $("result-empty").hidden = false;
  $("progress").hidden = true;
  $("operation").hidden = true;
  $("failures").replaceChildren();
  $("results").replaceChildren();
  $("all-results").hidden = true;
  $("rate").textContent = "";
  for (const f of files) f.bar.hidden = f.upload?.state !== "done";
}

function remaining(seconds) {
  if (seconds < 60) return `${Math.ceil(seconds)} s`;
  return seconds < 3600 ? `${Math.ceil(seconds / 60)} min` : `${Math.ceil(seconds / 3600)} h`;
}

async function upload() {
  const every = [...files, ...chosenExtras()];
  const waiting = every.filter((f) => f.upload?.state !== "done");
  if (waiting.length === 0) return;
  stopping = new AbortController();
  $("pause").hidden = false;
  state("Uploading", "running");
  announce("Uploading");
  const seen = []; // [time, bytes]
  const show = () => {
    const size = every.reduce((sum, f) => sum + f.file.size, 0) || 1;
    const sent = every.reduce((sum, f) => sum + (f.upload?.state === "done" ? f.file.size : f.upload?.sent ?? 0), 0);
    $("overall").value = Math.floor(100 * sent / size);
    // The speed is that of the last seconds; what was sent before this run does not count.
    const now = performance.now();
    seen.push([now, sent]);
    while (seen.length > 2 && now - seen[0][0] > 5000) seen.shift();
    const speed = 1000 * (sent - seen[0][1]) / Math.max(1, now - seen[0][0]);
    const left = speed > 0 && now - seen[0][0] > 500 ? ` · ${bytes(speed)}/s · ${remaining((size - sent) / speed)} left` : "";
    $("rate").textContent = `${bytes(sent)} of ${bytes(size)}${left}`;
  };
  $("interrupted").replaceChildren();
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
  $("rate").textContent = "";
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
  const started = operations.filter((o) => o.id);
  for (const o of started) {
    try {
      await call(`/status/${encodeURIComponent(o.id)}`, undefined, { method: "DELETE" });
    } catch (error) {
      problem(error.message);
    }
  }
  if (started.length) return;
  stopping?.abort(new Error("Cancelled"));
});

function idempotencyKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");
}

/** Starts an operation. */
async function start(request) {
  const key = { "Idempotency-Key": idempotencyKey() };
  for (let n = 0; ; n++) {
    try {
      return (await call("/do", request, { headers: key })).main_task_id;
    } catch (error) {
      const temporary = !error.status || error.status === 429 && error.code !== "quota_exceeded" || error.status >= 500;
      if (!temporary || n === 4) throw error;
      await new Promise((go) => setTimeout(go, 1000 * Math.max(2 ** n / 2, error.retryAfter ?? 0)));
    }
  }
}

/** Runs the operations that the form stands for, and follows them. */
async function run(list) {
  operations = list.map((r) => ({ request: { action: r.action, file_keys: r.files.map((f) => f.upload.session.file_key), parameters: r.parameters }, names: r.files.map((f) => f.file.name) }));
  [operation] = operations;
  state("Queued", "queued");
  $("overall").value = 0;
  let refused = null; // why an operation did not start
  for (const o of operations) {
    try {
      o.id = await start(o.request);
    } catch (error) {
      refused = error;
      break;
    }
  }
  if (!operation.id) throw refused;
  const started = operations.filter((o) => o.id);
  $("operation").href = started.length > 1 ? "/dashboard/operations" : `/dashboard/operations/${encodeURIComponent(operation.id)}`;
  $("operation").textContent = started.length > 1 ? "Operations" : "Operation details";
  $("operation").hidden = false;
  showCalls();
  const total = started.reduce((sum, o) => sum + o.names.length, 0);
  const ends = await Promise.all(started.map((o) => follow(o.id, (status) => {
    o.status = status;
    $("overall").value = started.reduce((sum, one) => sum + (one.status?.progress ?? 0) * one.names.length, 0) / total;
    if (status.operation_status === "running") state("Running", "running");
  })));
  finished({ operation_status: ends.every((end) => end.operation_status === "failed") ? "failed" : "completed", files_data: ends.flatMap((end) => end.files_data) });
  if (refused) {
    state("Partly failed", "partial");
    $("failures").append(el("div", { className: "note bad" }, icon("alert"), el("div", { className: "break" }, "Some files were not processed: ", refused.message)));
    announce("Some files were not processed");
  }
}

/** Downloads the results of several operations. */
$("all-results").addEventListener("click", (event) => {
  if (operations.length < 2) return;
  event.preventDefault();
  const ids = operations.filter((o) => o.id).map((o) => el("input", { type: "hidden", name: "id", value: o.id }));
  const form = el("form", { method: "post", action: "/dashboard/operations/selected", hidden: true }, el("input", { type: "hidden", name: "what", value: "download" }), ...ids);
  document.body.append(form);
  form.submit();
  form.remove();
});

function finished(status) {
  const good = status.files_data.filter((f) => f.status === "completed");
  const bad = status.files_data.filter((f) => f.status === "failed");
  $("overall").value = 100;
  const warned = good.some((f) => f.warnings?.length);
  const cancelled = status.operation_status === "failed" && bad.length > 0 && bad.every((f) => f.error_code === "cancelled");
  if (status.operation_status === "failed") state(cancelled ? "Cancelled" : "Failed", cancelled ? "cancelled" : "failed");
  else if (bad.length) state("Partly failed", "partial");
  else state(warned ? "Completed with warnings" : "Completed", warned ? "completed warn" : "completed");
  $("failures").replaceChildren(...bad.map((f) => el("div", { className: "note bad" }, icon("alert"),
    el("div", { className: "break" }, el("b", {}, f.file_name ?? "File"), el("br"), f.error_message ?? "", " ", el("code", {}, f.error_code ?? "")))));
  $("results").replaceChildren(...good.map((f) => result(f, good.length === 1)));
  $("all-results").hidden = good.length < 2;
  $("all-results").href = `/api/v1/operations/${encodeURIComponent(operation.id)}/download`;
  showCalls();
  announce(good.length ? `${good.length === 1 ? `${good[0].file_name} is` : `${good.length} results are`} ready` : "Operation failed");
  $("step-result").scrollIntoView({ block: "nearest" });
}

function failed(error) {
  state(error.message === "Cancelled" ? "Cancelled" : "Failed", "failed");
  $("failures").replaceChildren(el("div", { className: "note bad" }, icon("alert"), el("div", { className: "break" },
    error.message === "Cancelled" ? "The upload was cancelled." : error.message, error.code && !error.ended ? " " : null, error.code && !error.ended ? el("code", {}, error.code) : null,
    error.ended ? el("p", {}, el("a", { href: `/dashboard/login?next=${encodeURIComponent(`try${location.search}`)}` }, "Log in")) : null)));
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

/** A result: its viewer if it is the only one, else a tile that opens it. */
function result(file, only) {
  const address = `/dashboard/files/${encodeURIComponent(file.file_key)}`;
  const name = file.file_name;
  const kind = kindOf(name);
  let view;
  if (!kind) view = el("div", { className: "view" }, badge(name));
  else if (only) view = el("div", { className: "view" }, comparison(file, address) ?? viewer(kind, address, name));
  else {
    const picture = kind === "image" && file.size <= 5e6;
    view = el("a", { className: "view", href: address, target: "_blank", "data-preview": kind, "data-name": name },
      picture ? el("img", { src: address, alt: "", loading: "lazy", decoding: "async" }) : badge(name),
      el("span", { className: "view-label" }, "Preview", el("span", { className: "sr" }, ` ${name}`)));
  }
  return el("li", { className: "result" }, view,
    el("div", { className: "about" }, el("div", {}, el("b", {}, name), el("span", {}, bytes(file.size ?? 0), saved(file)),
        ...(file.warnings ?? []).map((w) => el("span", { className: "warning", title: w.code }, w.message))),
      el("a", { className: "button primary", href: file.download_link, download: name }, icon("download"), el("span", {}, "Download"), el("span", { className: "sr" }, ` ${name}`))));
}

const inputOf = (file) => files.find((f) => f.upload?.session?.file_key === file.input_file_key);

/** How much smaller or larger the result of compress is. */
function saved(file) {
  const before = inputOf(file)?.file.size;
  if (operation?.request.action !== "compress" || !before) return "";
  const percent = Math.round(100 * (1 - file.size / before));
  return percent > 0 ? ` · ${percent} % smaller than ${bytes(before)}` : ` · not smaller than ${bytes(before)}`;
}

/** The compressed picture over the original, with a slider between them. */
function comparison(file, address) {
  const input = inputOf(file);
  if (operation?.request.action !== "compress" || kindOf(file.file_name) !== "image" || !input || kindOf(input.file.name) !== "image") return null;
  const after = el("img", { src: address, alt: `${file.file_name}, compressed` });
  const before = el("img", { className: "before", src: `/dashboard/files/${encodeURIComponent(file.input_file_key)}`, alt: `${input.file.name}, original` });
  const slider = el("input", { type: "range", min: 0, max: 100, value: 50, ariaLabel: "Boundary between the original and the compressed picture" });
  const cover = el("div", { className: "compare" }, after, before, el("span", { className: "compare-label left" }, "Original"), el("span", { className: "compare-label right" }, "Compressed"), slider);
  const move = () => cover.style.setProperty("--at", `${slider.value}%`);
  slider.addEventListener("input", move);
  move();
  return cover;
}

// ---- As curl ----

let language = "curl";

if (box.dataset.singleCall === "true") {
  for (const input of $("languages").querySelectorAll("input")) {
    input.addEventListener("change", () => { language = input.value; showCalls(); });
  }
}

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
    const calls = operations.length ? operations.map((o) => [o.names, o.request]) : requests().map((r) => [r.files.map((f) => f.file.name), r]);
    if (language !== "curl") {
      $("calls").replaceChildren(...calls.map(([names, r], i) => code(`One call in ${languages[language]}${i ? `, ${i + 1}` : ""}`, program(language, r.action, names, r.parameters, secrets))));
      return;
    }
    step(calls.length > 1 ? "Do everything in one call for each format …" : "Do everything in one call …", calls.map(([names, r]) => curl.oneCall(r.action, names, r.parameters, secrets)).join("\n"));
  }
  step(single ? "… or step by step: list the supported actions" : "List the supported actions", `${curl.ask(first.ext)}\n${curl.ask(first.ext, action)}`);
  if (imported) {
    step("Import the file", curl.fetch(imported));
  } else {
    step("Start the upload", curl.initiate(first.upload?.request ?? { file_name: first.file.name, size: first.file.size, mime_type: first.file.type || "application/octet-stream", parts: size.count }));
    step("Upload the parts; each response has an ETag", curl.put(first.file, session?.presigned_urls ?? new Array(size.count).fill("…").map((_, i) => `<presigned_urls[${i}]>`), size.length));
    step("Complete the upload", curl.complete(first.upload?.completion ?? { file_key: "<file_key>", object_name: "<object_name>", upload_id: "<upload_id>", parts: [{ part_number: 1, etag: "<ETag>" }] }));
  }
  const started = operations.length ? operations.map((o) => o.request) : requests().map((r) => ({ action, file_keys: r.files.map((f) => f.upload?.session?.file_key ?? "<file_key>"), parameters: r.parameters }));
  step(started.length > 1 ? "Start an operation for each format" : "Start the operation", started.map((r) => curl.start(r, secrets)).join("\n"));
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

// Uploads that a reload has interrupted continue when their file is chosen again.
function showInterrupted() {
  $("interrupted").replaceChildren(...interrupted().map((one) => {
    const discard = el("button", { type: "button", className: "button compact" }, "Discard", el("span", { className: "sr" }, ` ${one.name}`));
    discard.onclick = () => { one.discard(); showInterrupted(); $("input").focus(); };
    return el("div", { className: "note" }, icon("refresh"), el("div", { className: "row-apart" }, el("span", { className: "break" }, `The upload of ${one.name} was interrupted at ${one.percent} %. Choose the file again to continue it.`), discard));
  }));
}

showInterrupted();

// An operation to run again with changes.
if (box.dataset.from) {
  const from = JSON.parse(box.dataset.from);
  action = from.action;
  for (const [name, v] of Object.entries(from.parameters ?? {})) given.set(name, typeof v === "object" ? Array.isArray(v) ? v.join(",") : JSON.stringify(v) : String(v));
  if (from.files.length === 0) showMessage($("action-empty"), "The files of this operation have expired. Choose them again.");
  for (const file of from.files) addStored(file);
}
