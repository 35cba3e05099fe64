// Uploads a file in parts to presigned URLs, several parts at a time. It retries parts
// when the network or the server fails, and can pause.

import { call } from "./follow.js";

const partSize = 5 * 1024 * 1024;
const maxParts = 1000;
const attempts = 6;
const blockedAttempts = 3; // if a CORS rule probably forbids the upload

/** Splits a file into equal parts of at least 5 MiB. */
export function cut(size) {
  const count = Math.min(Math.max(Math.floor(size / partSize), 1), maxParts); // buckets refuse smaller parts
  return { count, length: Math.ceil(size / count) };
}

class Stopped extends Error {}

/** The bucket does not permit uploads from this page. Only the operator can change that. */
export class UploadBlocked extends Error {}

/**
 * Buckets that accepted an upload from this page. Later failures there are not due to a
 * missing CORS rule, which scripts cannot tell from a network failure.
 */
const allowedOrigins = new Set();

/** Returns a response header, or "". Reading one that CORS hides logs a console error. */
function header(request, name) {
  const start = `${name.toLowerCase()}:`;
  const line = request.getAllResponseHeaders().split("\r\n").find((l) => l.toLowerCase().startsWith(start));
  return line?.slice(start.length).trim() ?? "";
}

/** Returns the error message of a response: JSON from the service, XML from a bucket. */
function reason(request) {
  try { return JSON.parse(request.responseText).detail; } catch { /* not from the service */ }
  return new DOMParser().parseFromString(request.responseText, "application/xml").querySelector("Error > Message")?.textContent;
}

/** Limits the number of parts that are sent at once, over all files. */
class Lanes {
  constructor(n) { this.free = n; this.waiting = []; }
  async take() {
    if (this.free > 0) { this.free--; return; }
    await new Promise((go) => this.waiting.push(go));
  }
  give() {
    const next = this.waiting.shift();
    if (next) next(); else this.free++;
  }
}

const lanes = new Lanes(4);

// ---- Uploads that a reload has interrupted ----
//
// The sessions and the ETags of the sent parts are kept, not the content: the file must be chosen
// again, and is recognized by its name, size and time.

const storageKey = "filewright.uploads";
const keptFor = 12 * 3600 * 1000;
const account = document.getElementById("try")?.dataset.account ?? "";
const fingerprint = (file) => `${account}|${file.name}|${file.size}|${file.lastModified}`;

function load() {
  try {
    const all = JSON.parse(localStorage.getItem(storageKey)) ?? {};
    for (const [id, one] of Object.entries(all)) if (!(Date.now() - one.at < keptFor)) delete all[id];
    return all;
  } catch { return {}; }
}

function store(id, one) {
  const all = load();
  if (one) all[id] = one; else delete all[id];
  try { localStorage.setItem(storageKey, JSON.stringify(all)); } catch { /* without storage there is no resuming */ }
}

/** The interrupted uploads of this account: their name, and the share of parts that were sent. */
export function interrupted() {
  return Object.entries(load()).filter(([id]) => id.startsWith(`${account}|`)).map(([id, one]) => ({
    name: one.request.file_name,
    percent: Math.floor(100 * Object.keys(one.etags).length / one.request.parts),
    discard: () => store(id, null),
  }));
}

export class Upload {
  /** Calls changed whenever the state or progress changes. */
  constructor(file, changed) {
    this.file = file;
    this.changed = changed;
    this.state = "waiting"; // sending, paused, retrying, done, failed
    this.sent = 0;
    this.note = "";
    this.requests = new Set();
    this.resume = null;
    this.cancelled = false;
    this.loaded = [];
  }

  get percent() {
    if (this.state === "done") return 100;
    return this.file.size ? Math.min(99, Math.floor(100 * this.sent / this.file.size)) : 0;
  }

  set(state, note = "") {
    this.state = state;
    this.note = note;
    this.changed(this);
  }

  /** Starts no more parts. Those that are being sent arrive, so nothing is sent twice. */
  pause() {
    if (this.state === "done" || this.state === "failed" || this.resume) return;
    this.held = new Promise((go) => { this.resume = go; });
    this.set("paused");
  }

  continue() {
    const go = this.resume;
    if (!go) return;
    this.resume = null;
    this.held = null;
    this.set("sending");
    go();
  }

  cancel() {
    this.cancelled = true;
    for (const request of this.requests) request.abort();
    this.continue();
    this.wake?.();
  }

  /** Sends the file and resolves with its file key. */
  async run() {
    try {
      const { count, length } = cut(this.file.size);
      this.request = { file_name: this.file.name, size: this.file.size, mime_type: this.file.type || "application/octet-stream", parts: count };
      this.id = fingerprint(this.file);
      this.set("sending");
      const before = load()[this.id];
      this.resumed = before !== undefined && before.request.parts === count;
      try {
        await this.send(count, length, this.resumed ? before : null);
      } catch (error) {
        const stale = this.resumed && error.status >= 400 && error.status < 500 && error.status !== 401 && error.status !== 429;
        if (!stale) throw error;
        for (const request of this.requests) request.abort();
        this.resumed = false;
        await this.send(count, length, null); // the old session has expired
      }
      store(this.id, null);
      this.set("done");
      return this.session.file_key;
    } catch (error) {
      this.failed = error;
      for (const request of this.requests) request.abort();
      if (this.cancelled) store(this.id, null);
      this.set("failed", this.cancelled ? "Cancelled" : error.message);
      throw error;
    }
  }

  async send(count, length, before) {
    this.session = before?.session ?? await this.again(() => call("/initiate-upload", this.request));
    this.kept = { at: Date.now(), request: this.request, session: this.session, etags: before?.etags ?? {} };
    if (count > 1) store(this.id, this.kept);
    this.loaded = new Array(count).fill(0);
    this.parts = await Promise.all(this.session.presigned_urls.map((url, i) => this.part(url, i, this.file.slice(i * length, (i + 1) * length))));
    this.completion = { file_key: this.session.file_key, object_name: this.session.object_name, upload_id: this.session.upload_id, parts: this.parts };
    await this.again(() => call("/complete-upload", this.completion));
  }

  async part(url, i, blob) {
    const known = this.kept.etags[i];
    if (known) {
      this.loaded[i] = blob.size;
      this.sent = this.loaded.reduce((a, b) => a + b, 0);
      return { part_number: i + 1, etag: known };
    }
    return this.again(async () => {
      await lanes.take();
      try {
        if (this.cancelled || this.failed) throw new Stopped("Cancelled");
        if (this.held) throw new DOMException("paused", "AbortError");
        const etag = await this.put(url, i, blob);
        this.kept.etags[i] = etag;
        if (this.loaded.length > 1 && !this.cancelled) store(this.id, this.kept);
        return { part_number: i + 1, etag };
      } finally {
        lanes.give();
      }
    });
  }

  put(url, i, blob) {
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest(); // fetch does not report upload progress
      const { origin } = new URL(url, location.href);
      const own = origin === location.origin;
      this.requests.add(request);
      const progress = (n) => {
        this.loaded[i] = n;
        this.sent = this.loaded.reduce((a, b) => a + b, 0);
        this.changed(this);
      };
      const fail = (error, status) => {
        error.status = status;
        error.retryAfter = Number(header(request, "Retry-After")) || 0;
        progress(0);
        reject(error);
      };
      request.open("PUT", url);
      request.upload.onprogress = (event) => progress(Math.min(event.loaded, blob.size));
      request.onloadend = () => this.requests.delete(request);
      request.onabort = () => { progress(0); reject(new DOMException("paused", "AbortError")); };
      request.onerror = () => {
        const blocked = !own && !allowedOrigins.has(origin) && navigator.onLine;
        fail(blocked ? new UploadBlocked(`The bucket at ${origin} does not respond to this page.`) : new Error("The connection was lost."), 0);
      };
      request.onload = () => {
        if (!own) allowedOrigins.add(origin);
        if (request.status === 200) {
          const etag = header(request, "ETag").replaceAll('"', "");
          if (!etag) return fail(new UploadBlocked(`The bucket at ${origin} does not expose ETags to this page.`), request.status);
          progress(blob.size);
          return resolve(etag);
        }
        fail(new Error(reason(request) ?? `The ${own ? "server" : "bucket"} responded with status ${request.status}.`), request.status);
      };
      request.send(blob);
    });
  }

  /** Retries temporary failures after 0.5, 1, 2 … seconds. */
  async again(work) {
    for (let n = 1; ; n++) {
      if (this.held) await this.held;
      if (this.cancelled) throw new Stopped("Cancelled");
      try {
        const result = await work();
        if (this.state === "retrying") this.set("sending");
        return result;
      } catch (error) {
        if (this.cancelled) throw new Stopped("Cancelled");
        if (error instanceof Stopped || this.failed) throw error;
        if (error.name === "AbortError") { n = 0; continue; } // paused
        const temporary = !error.status || error.status === 408 || error.status === 429 || error.status >= 500;
        if (!temporary || n >= (error instanceof UploadBlocked ? blockedAttempts : attempts)) throw error;
        const seconds = Math.max(0.5 * 2 ** (n - 1) * (0.75 + Math.random() / 2), error.retryAfter ?? 0);
        this.set("retrying", `${error.message} Retrying in ${Math.ceil(seconds)} s.`);
        await new Promise((go) => {
          const timer = setTimeout(go, seconds * 1000);
          this.wake = () => { clearTimeout(timer); go(); };
          if (!navigator.onLine) addEventListener("online", this.wake, { once: true });
        });
      }
    }
  }
}
