"use strict";

// Old links to sections of the API reference, and to errors, lead to /docs.
if (location.pathname === "/docs" && location.hash.length > 1) {
  const id = decodeURIComponent(location.hash.slice(1));
  const element = document.getElementById(id);
  if (!element) location.replace("/docs/api" + location.hash);
  else if (/^(file-)?(error|warning)-/.test(id)) location.replace(element.querySelector("a").href);
}

// The list of pages is open where there is room.
const wide = matchMedia("(min-width: 64rem)");
const pages = document.querySelector(".side details");
const fit = () => { pages.open = wide.matches; };
wide.addEventListener("change", fit);
fit();

// Tabs: each heading in .tabs is the name of one. The choice is kept for all pages.
const chosen = () => { try { return localStorage.getItem("language"); } catch { return null; } };
const groups = [];
document.querySelectorAll(".tabs").forEach((box, n) => {
  const list = document.createElement("div");
  list.className = "tablist";
  list.setAttribute("role", "tablist");
  list.setAttribute("aria-label", "Language");
  const tabs = [];
  let panel;
  for (const child of [...box.children]) {
    if (/^H[2-6]$/.test(child.tagName)) {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("role", "tab");
      button.id = `tab-${n}-${tabs.length}`;
      button.textContent = child.textContent;
      panel = document.createElement("div");
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", button.id);
      panel.id = child.id;
      child.remove();
      button.setAttribute("aria-controls", panel.id);
      list.append(button);
      box.append(panel);
      tabs.push({ button, panel, name: button.textContent });
    } else if (panel) panel.append(child);
  }
  box.prepend(list);
  const select = (tab) => {
    for (const t of tabs) {
      t.panel.hidden = t !== tab;
      t.button.setAttribute("aria-selected", String(t === tab));
      t.button.tabIndex = t === tab ? 0 : -1;
    }
  };
  const selectName = (name) => { const tab = tabs.find((t) => t.name === name); if (tab) select(tab); };
  groups.push(selectName);
  const choose = (tab) => {
    try { localStorage.setItem("language", tab.name); } catch { /* private mode */ }
    for (const other of groups) other(tab.name);
    select(tab);
  };
  tabs.forEach((tab, i) => {
    tab.button.addEventListener("click", () => choose(tab));
    tab.button.addEventListener("keydown", (e) => {
      const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: tabs.length - 1 }[e.key];
      if (to === undefined) return;
      e.preventDefault();
      const next = tabs[(to + tabs.length) % tabs.length];
      choose(next);
      next.button.focus();
    });
  });
  select(tabs[0]);
  selectName(chosen());
  const show = () => { const tab = tabs.find((t) => t.panel.id === decodeURIComponent(location.hash.slice(1))); if (tab) select(tab); };
  addEventListener("hashchange", show);
  show();
});

// Copy buttons. Of a console they copy the commands without prompts and output.
const commands = (text) => {
  const lines = text.split("\n");
  if (!lines.some((l) => l.startsWith("$ "))) return text;
  const kept = [];
  let more = false;
  for (const line of lines) {
    if (line.startsWith("$ ") || more) {
      kept.push(line.replace(/^\$ /, "").replace(/\s{2,}#.*$/, ""));
      more = line.endsWith("\\");
    }
  }
  return kept.join("\n") + "\n";
};
const write = async (text) => {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea"); // pages without HTTPS have no clipboard API
  area.value = text;
  document.body.append(area);
  area.select();
  const good = document.execCommand("copy");
  area.remove();
  if (!good) throw new Error("not copied");
};
document.querySelectorAll(".code").forEach((box) => {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await write(commands(box.querySelector("code").textContent));
      button.textContent = "Copied";
    } catch {
      button.textContent = "Press Ctrl+C";
      getSelection().selectAllChildren(box.querySelector("code"));
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  box.append(button);
});

// Search: every word must be in a section. Titles count more than text.
const search = document.querySelector(".search");
const input = document.getElementById("search");
const results = document.getElementById("results");
const found = document.getElementById("found");
const list = results.querySelector("ul");
search.hidden = false;
let index;
const load = () => index ??= fetch("/docs/search.json").then((r) => { if (!r.ok) throw new Error(r.statusText); return r.json(); })
  .then((all) => all.map((e) => ({ ...e, s: e.s ?? "", t: e.t ?? "", title: `${e.p} ${e.s ?? ""}`.toLowerCase(), all: `${e.p} ${e.s ?? ""} ${e.t ?? ""}`.toLowerCase() })));
const score = (e, words) => {
  let sum = e.s.toLowerCase() === words.join(" ") ? 50 : 0;
  for (const w of words) {
    const at = e.all.indexOf(w);
    if (at < 0) return 0;
    const start = (text) => text.startsWith(w) || text.includes(" " + w) || text.includes("_" + w);
    sum += 1 + (start(e.all) ? 2 : 0) + (e.title.includes(w) ? 6 : 0) + (start(e.title) ? 6 : 0) + (e.s.toLowerCase() === w ? 20 : 0) + (!e.s && e.title.trim() === w ? 20 : 0);
  }
  return sum;
};
const excerpt = (e, words) => {
  const text = e.t;
  const at = Math.max(0, Math.min(...words.map((w) => { const i = text.toLowerCase().indexOf(w); return i < 0 ? Infinity : i; }).concat(text.length)) - 40);
  return (at > 0 ? "…" : "") + text.slice(at, at + 120) + (text.length > at + 120 ? "…" : "");
};
let turn = 0;
const update = async () => {
  const mine = ++turn;
  const words = input.value.toLowerCase().split(/\s+/).map((w) => w.replace(/^\/+/, "")).filter(Boolean);
  if (!words.length) { results.hidden = true; return; }
  let all;
  try { all = await load(); } catch { index = undefined; found.textContent = "The search is not available. Check the connection."; list.replaceChildren(); results.hidden = false; return; }
  if (mine !== turn) return;
  const best = all.map((e) => [score(e, words), e]).filter(([n]) => n > 0).sort((a, b) => b[0] - a[0]).slice(0, 12);
  found.textContent = best.length ? `${best.length === 12 ? "Best 12 results" : best.length === 1 ? "1 result" : best.length + " results"}` : "Nothing found. Try another word.";
  list.replaceChildren(...best.map(([, e]) => {
    const a = document.createElement("a");
    a.href = e.u;
    const title = document.createElement("strong");
    title.textContent = e.s || e.p;
    const where = document.createElement("span");
    where.textContent = (e.s ? e.p + " · " : "") + excerpt(e, words);
    a.append(title, where);
    const item = document.createElement("li");
    item.append(a);
    return item;
  }));
  results.hidden = false;
};
input.addEventListener("input", update);
input.addEventListener("focus", () => { load().catch(() => { index = undefined; }); if (input.value) update(); });
const close = () => { results.hidden = true; };
document.addEventListener("click", (e) => { if (!search.contains(e.target) || e.target.closest("#results a")) close(); });
search.addEventListener("keydown", (e) => {
  const links = [...list.querySelectorAll("a")];
  const i = links.indexOf(document.activeElement);
  if (e.key === "Escape") { close(); input.focus(); }
  else if (e.key === "ArrowDown" && links.length) { e.preventDefault(); links[Math.min(i + 1, links.length - 1)].focus(); }
  else if (e.key === "ArrowUp" && i >= 0) { e.preventDefault(); (links[i - 1] ?? input).focus(); }
  else if (e.key === "Enter" && i < 0 && links.length) { e.preventDefault(); links[0].click(); }
});
document.addEventListener("keydown", (e) => {
  if (e.key === "/" && !e.ctrlKey && !e.metaKey && !e.altKey && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) {
    e.preventDefault();
    input.focus();
  }
});
