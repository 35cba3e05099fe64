// Uploads a file in parts to presigned URLs, several parts at a time. Every part is
// tried again when the network or the server fails; the whole can be paused.

import { call } from "./follow.js";

const partSize = 5 * 1024 * 1024;
const mostParts = 1000;
const attempts = 6;
const fewAttempts = 3; // at what a CORS rule probably forbids

/** How a file is cut: equal parts of 5 MiB or more. */
export function cut(size) {
  const count = Math.min(Math.max(Math.floor(size / partSize), 1), mostParts); // smaller parts do not go straight to a bucket
  return { count, length: Math.ceil(size / count) };
}

class Stopped extends Error {}

/** A bucket that does not let this page send parts. Mending that is for whoever runs the server. */
export class Unwelcome extends Error {}

/**
 * Buckets that let this page send. What fails there afterwards is not for want of a CORS
 * rule; browsers do not tell scripts that from a network that fails.
 */
const welcome = new Set();

/** A header that this page may read: asking for another one is an error in the console. */
function header(request, name) {
  const start = `${name.toLowerCase()}:`;
  const line = request.getAllResponseHeaders().split("\r\n").find((l) => l.toLowerCase().startsWith(start));
  return line?.slice(start.length).trim() ?? "";
}

/** What an answer says went wrong: in JSON by the service, in XML by a bucket. */
function reason(request) {
  try { return JSON.parse(request.responseText).detail; } catch { /* not of the service */ }
  return new DOMParser().parseFromString(request.responseText, "application/xml").querySelector("Error > Message")?.textContent;
}

/** Lets a bounded number of parts be sent at a time, of all files together. */
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

export class Upload {
  /** changed is called whenever there is something new to show. */
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

  pause() {
    if (this.state === "done" || this.state === "failed" || this.resume) return;
    this.held = new Promise((go) => { this.resume = go; });
    for (const request of this.requests) request.abort();
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

  /** Sends the file and resolves with what the API said. */
  async run() {
    try {
      const { count, length } = cut(this.file.size);
      this.request = { file_name: this.file.name, size: this.file.size, mime_type: this.file.type || "application/octet-stream", parts: count };
      this.set("sending");
      this.begun = await this.again(() => call("/initiate-upload", this.request));
      this.loaded = new Array(count).fill(0);
      this.parts = await Promise.all(this.begun.presigned_urls.map((url, i) => this.part(url, i, this.file.slice(i * length, (i + 1) * length))));
      this.completion = { file_key: this.begun.file_key, object_name: this.begun.object_name, upload_id: this.begun.upload_id, parts: this.parts };
      await this.again(() => call("/complete-upload", this.completion));
      this.set("done");
      return this.begun.file_key;
    } catch (error) {
      this.failed = error;
      for (const request of this.requests) request.abort();
      this.set("failed", this.cancelled ? "Cancelled" : error.message);
      throw error;
    }
  }

  async part(url, i, blob) {
    return this.again(async () => {
      await lanes.take();
      try {
        if (this.cancelled || this.failed) throw new Stopped("Cancelled");
        if (this.held) throw new DOMException("paused", "AbortError");
        return { part_number: i + 1, etag: await this.put(url, i, blob) };
      } finally {
        lanes.give();
      }
    });
  }

  put(url, i, blob) {
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest(); // fetch tells nothing of the progress of an upload
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
        const unwelcome = !own && !welcome.has(origin) && navigator.onLine;
        fail(unwelcome ? new Unwelcome(`The bucket at ${origin} does not answer this page.`) : new Error("The connection was lost."), 0);
      };
      request.onload = () => {
        if (!own) welcome.add(origin);
        if (request.status === 200) {
          const etag = header(request, "ETag").replaceAll('"', "");
          if (!etag) return fail(new Unwelcome(`The bucket at ${origin} does not show this page the ETags of what was sent.`), request.status);
          progress(blob.size);
          return resolve(etag);
        }
        fail(new Error(reason(request) ?? `The ${own ? "server" : "bucket"} answered ${request.status}.`), request.status);
      };
      request.send(blob);
    });
  }

  /** Repeats what fails for a reason that may pass: 0.5, 1, 2 … seconds later. */
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
        const passing = !error.status || error.status === 408 || error.status === 429 || error.status >= 500;
        if (!passing || n >= (error instanceof Unwelcome ? fewAttempts : attempts)) throw error;
        const seconds = Math.max(0.5 * 2 ** (n - 1) * (0.75 + Math.random() / 2), error.retryAfter ?? 0);
        this.set("retrying", `${error.message} Trying again in ${Math.ceil(seconds)} s.`);
        await new Promise((go) => {
          const timer = setTimeout(go, seconds * 1000);
          this.wake = () => { clearTimeout(timer); go(); };
          if (!navigator.onLine) addEventListener("online", this.wake, { once: true });
        });
      }
    }
  }
}
