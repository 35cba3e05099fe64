// Shared by all pages: copy buttons, theme switch, live regions, text previews.

export const prefix = "/dashboard/";

/** Announces a text to screen readers. */
export function announce(text) {
  const box = document.getElementById("announce");
  box.textContent = "";
  requestAnimationFrame(() => { box.textContent = text; });
}

/** Copies a text and shows the outcome on the button. */
export async function copy(text, button) {
  const label = button.querySelector("span:last-of-type") ?? button;
  const before = button.dataset.label ??= label.textContent;
  let good = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    good = copyBySelection(text); // without HTTPS there is no clipboard
  }
  label.textContent = good ? "Copied" : "Copy failed";
  announce(good ? "Copied" : "Copy failed");
  clearTimeout(button.timer);
  button.timer = setTimeout(() => { label.textContent = before; }, 2000);
}

function copyBySelection(text) {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "sr";
  document.body.append(area);
  area.select();
  const good = document.execCommand("copy");
  area.remove();
  return good;
}

function setUpCopying(root) {
  for (const button of root.querySelectorAll("[data-copy], [data-copy-code]")) {
    button.hidden = false;
    button.classList.add("copies");
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy], [data-copy-code]");
  if (!button) return;
  const text = button.hasAttribute("data-copy") ? button.dataset.copy : button.parentElement.querySelector("pre").textContent;
  copy(text, button);
});

// ---- Themes ----

for (const form of document.querySelectorAll("form[data-themes]")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const theme = event.submitter?.value ?? "";
    try {
      const body = new URLSearchParams({ theme });
      const response = await fetch(form.action, { method: "POST", body, headers: { Accept: "application/json" } });
      if (!response.ok) throw new Error(response.statusText);
    } catch {
      announce("The theme could not be saved");
      return;
    }
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    for (const button of document.querySelectorAll("form[data-themes] button")) {
      button.setAttribute("aria-pressed", String(button.value === theme));
    }
  });
}

// ---- Live regions ----

// What the server sent, before scripts changed it.
for (const live of document.querySelectorAll("[data-live]")) live.source = live.innerHTML;

// A click needs the same element from press to release, so no region is replaced in between.
let released = Promise.resolve();
addEventListener("pointerdown", () => {
  released = new Promise((done) => {
    const end = () => setTimeout(done); // after the click
    addEventListener("pointerup", end, { once: true });
    addEventListener("pointercancel", end, { once: true });
    setTimeout(done, 10000); // the release may be outside of the window
  });
}, true);

/** Reloads the page in the background and replaces the live regions that have changed. */
export async function refresh() {
  const response = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (response.redirected && new URL(response.url).pathname !== location.pathname) {
    location.reload(); // the session has ended
    return;
  }
  if (!response.ok) throw new Error(String(response.status));
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  await released;
  for (const old of document.querySelectorAll("[data-live]")) {
    const now = fresh.getElementById(old.id);
    if (!now || now.innerHTML === (old.source ??= old.innerHTML)) continue;
    if (old.querySelector("details[open], .pick input:checked")) continue; // the user is about to act here
    const focus = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    old.source = now.innerHTML;
    for (const { name, value } of now.attributes) old.setAttribute(name, value);
    old.replaceChildren(...now.childNodes);
    if (focus) [...old.querySelectorAll("a")].find((a) => a.getAttribute("href") === focus)?.focus();
    setUp(old);
  }
}

/** Calls work every few seconds while the page is visible, until work returns false. */
export function poll(seconds, work) {
  let timer;
  const next = () => { timer = setTimeout(run, seconds * 1000); };
  const run = async () => {
    if (document.hidden) { next(); return; }
    let go = true;
    try { go = await work(); } catch { /* the next call may succeed */ }
    if (go !== false) next();
  };
  next();
  return () => clearTimeout(timer);
}

if (document.querySelector('[data-poll="true"]')) {
  poll(1.5, async () => {
    await refresh();
    return document.querySelector('[data-poll="true"]') !== null;
  });
}

// ---- Previews of text ----

const maxText = 64 * 1024;

/** Shows the start of a text file in an element. */
export async function showText(pre, url) {
  try {
    const response = await fetch(url, { headers: { Range: `bytes=0-${maxText - 1}` } });
    if (!response.ok && response.status !== 416) throw new Error();
    const text = response.status === 416 ? "" : await response.text();
    pre.textContent = text.slice(0, maxText) || "(empty)";
    const total = Number(response.headers.get("Content-Range")?.split("/")[1] ?? 0);
    if (total > maxText) pre.textContent += "\n…";
  } catch {
    pre.textContent = "The text cannot be shown.";
  }
}

// ---- Dates ----

// The server writes UTC. The exact times, which the pointer shows, and those of settings are in the
// time zone and the language of the reader.
const zoneKey = "filewright.timezone";
const languageKey = "filewright.dates";
const languages = ["en-GB", "en-US", "ar", "bg", "cs", "da", "de", "el", "es", "fi", "fr", "he", "hi", "hu", "id", "it", "ja", "ko", "nb", "nl", "pl", "pt-BR", "pt-PT", "ro", "ru", "sv", "th", "tr", "uk", "vi", "zh-CN", "zh-TW"];

// exactly returns a date as the reader wants it.
function exactly(date) {
  const timeZone = localStorage.getItem(zoneKey) || undefined;
  const language = localStorage.getItem(languageKey) || navigator.language;
  try {
    return date.toLocaleString(language, { dateStyle: "medium", timeStyle: "long", timeZone });
  } catch { // a browser that does not know the zone or the language
    localStorage.removeItem(zoneKey);
    localStorage.removeItem(languageKey);
    return date.toLocaleString();
  }
}

export function localTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) time.title = exactly(new Date(time.dateTime));
}

// preference connects a selection of the settings with its value in this browser.
function preference(select, key, saved) {
  const show = () => {
    localTimes(document);
    document.getElementById("dates-now").textContent = `Now: ${exactly(new Date())}`;
  };
  select.value = localStorage.getItem(key) ?? "";
  select.addEventListener("change", () => {
    if (select.value) localStorage.setItem(key, select.value); else localStorage.removeItem(key);
    show();
    announce(saved);
  });
  show();
}

const zone = document.getElementById("timezone");
if (zone) {
  zone.options[0].textContent = `System (${Intl.DateTimeFormat().resolvedOptions().timeZone})`;
  for (const name of ["UTC", ...Intl.supportedValuesOf?.("timeZone") ?? []]) if (name !== "UTC" || zone.options.length === 1) zone.add(new Option(name.replaceAll("_", " "), name));
  const language = document.getElementById("date-language");
  language.options[0].textContent = `Browser (${navigator.language})`;
  for (const tag of languages) language.add(new Option(new Intl.DisplayNames(tag, { type: "language" }).of(tag), tag));
  for (const option of [...language.options].slice(1)) option.lang = option.value;
  preference(zone, zoneKey, "Time zone saved");
  preference(language, languageKey, "Language of dates saved");
  zone.closest("section").hidden = false;
}

export function setUp(root) {
  localTimes(root);
  setUpCopying(root);
  for (const pre of root.querySelectorAll("pre[data-text]")) showText(pre, pre.dataset.text);
}

setUp(document);
document.querySelector(".nav a[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

// At most one confirmation is open. Escape or a click elsewhere closes it.
document.addEventListener("click", (event) => {
  for (const ask of document.querySelectorAll("details.ask[open]")) {
    if (!ask.contains(event.target)) ask.open = false;
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const ask = document.querySelector("details.ask[open]");
  if (!ask) return;
  ask.open = false;
  ask.querySelector("summary").focus();
});
