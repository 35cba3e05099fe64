/**
 * A client for a Filewright server. It has no dependencies and runs in Node 20 or later and in browsers.
 *
 *     const files = new Filewright({ baseUrl: "https://files.example.com", key: process.env.API_KEY });
 *     const fileKey = await files.upload(await openAsBlob("report.docx"), { name: "report.docx" });
 *     const operation = await files.run({ action: "convert", file_keys: [fileKey], parameters: { convert_to: "pdf" } });
 *     const response = await files.download(operation.files_data[0]!);
 */
import type { components } from "./api.js";

export type Schemas = components["schemas"];
/** A request of an operation: an action, the keys of its files, and its parameters. */
export type OperationRequest = Schemas["Do"];
/** The state of an operation. */
export type Operation = Schemas["OperationStatus"];
/** The state of one file of an operation. */
export type OperationFile = Schemas["FileStatus"];
/** What a server can do with the files of an extension. */
export type Support = Schemas["SupportedOperation"];
type Problem = Schemas["Problem"];

export interface Options {
  /** Address of the server, such as https://files.example.com. */
  baseUrl: string;
  /** API key. */
  key?: string | undefined;
  /** Sends the requests; by default the global fetch. */
  fetch?: typeof fetch;
  /** Size in bytes of the parts of an upload; 16 MiB by default. */
  partSize?: number;
  /** Number of parts that are sent at the same time; 4 by default. */
  parallel?: number;
  /** How often a request is sent if the connection breaks or the server is unavailable; 5 by default. */
  attempts?: number;
}

/** An error response of the server (RFC 9457). */
export class FilewrightError extends Error {
  override readonly name = "FilewrightError";
  /** HTTP status. */
  readonly status: number;
  /** Stable name, such as unsupported_operation. */
  readonly slug: string;
  /** The member of the request that caused the error. */
  readonly param: string | undefined;
  /** Valid values of that member, if they are finite. */
  readonly allowed: readonly string[] | undefined;
  /** For the operator of the server. */
  readonly requestId: string | undefined;
  /** Seconds after which to try again, if the server said so. */
  readonly retryAfter: number | undefined;

  constructor(status: number, problem: Partial<Problem>, retryAfter?: number) {
    super(problem.message ?? `the server answered ${status}`);
    this.status = status;
    this.slug = problem.error ?? "";
    this.param = problem.param;
    this.allowed = problem.allowed;
    this.requestId = problem.request_id;
    this.retryAfter = retryAfter;
  }

  /** Whether the same request may succeed later. */
  get temporary(): boolean {
    return (this.status === 429 && this.slug !== "quota_exceeded") || [502, 503, 504].includes(this.status);
  }
}

/** A file of a finished operation failed. */
export class FileError extends Error {
  override readonly name = "FileError";
  /** Stable name, such as corrupt_input. */
  readonly code: string;
  readonly operation: Operation;

  constructor(operation: Operation) {
    const file = operation.files_data.find((f) => f.status === "failed");
    super([file?.file_name, file?.error_message ?? "the operation failed"].filter(Boolean).join(": "));
    this.code = file?.error_code ?? "";
    this.operation = operation;
  }
}

/**
 * A started upload. Stored as JSON, it can be continued by another process with send. It contains
 * signed URLs, so treat it as a secret.
 */
export interface Upload {
  file_key: string;
  object_name: string;
  upload_id: string;
  presigned_urls: string[];
  size: number;
  mime_type: string;
  /** ETags of the sent parts, "" for the others. */
  etags: string[];
}

export interface UploadOptions {
  /** Name with its extension; by default that of a File. */
  name?: string;
  /** By default the type of the Blob, or application/octet-stream. */
  mimeType?: string;
  /** Called after each finished part. */
  progress?: (sent: number, total: number) => void;
  signal?: AbortSignal;
}

export interface WaitOptions {
  /** Called with each state. */
  progress?: (operation: Operation) => void;
  signal?: AbortSignal;
}

const largestPart = 5 * 2 ** 30;

export class Filewright {
  readonly #base: string;
  readonly #options: Options;

  constructor(options: Options) {
    this.#base = options.baseUrl.replace(/\/+$/, "");
    this.#options = options;
  }

  /**
   * Uploads a file and returns its file key. In browsers, pass a File; in Node, a Blob from
   * fs.openAsBlob, which is read while it is sent. A stream is read into memory first.
   */
  async upload(content: Blob | ArrayBuffer | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>>, options: UploadOptions = {}): Promise<string> {
    const blob =
      content instanceof Blob ? content : content instanceof ReadableStream ? await new Response(content).blob() : new Blob([content]);
    const name = options.name ?? ("name" in blob && typeof blob.name === "string" ? blob.name : undefined);
    if (!name) throw new TypeError("an upload needs the name of the file, with its extension");
    const upload = await this.begin(name, blob.size, options.mimeType ?? blob.type, options.signal);
    await this.send(upload, blob, options);
    return upload.file_key;
  }

  /** Starts an upload of size bytes. */
  async begin(name: string, size: number, mimeType = "", signal?: AbortSignal): Promise<Upload> {
    mimeType ||= "application/octet-stream";
    let partSize = Math.min(this.#options.partSize ?? 16 * 2 ** 20, largestPart);
    while (size / partSize > 10_000) partSize *= 2;
    const parts = Math.max(1, Math.ceil(size / partSize));
    const body: Schemas["InitiateUpload"] = { file_name: name, size, mime_type: mimeType, parts };
    const session = await this.#json<Schemas["UploadSession"]>("POST", "/api/v1/initiate-upload", { body, signal, repeat: true });
    const { file_key, object_name, upload_id, presigned_urls } = session;
    return { file_key, object_name, upload_id, presigned_urls, size, mime_type: mimeType, etags: presigned_urls.map(() => "") };
  }

  /**
   * Sends the missing parts of an upload, several at the same time, and completes it. It updates
   * upload.etags, so the upload can be continued after an error.
   */
  async send(upload: Upload, content: Blob, options: Pick<UploadOptions, "progress" | "signal"> = {}): Promise<void> {
    if (content.size !== upload.size) throw new RangeError(`the upload has ${upload.size} bytes, the content ${content.size}`);
    const step = Math.ceil(upload.size / upload.presigned_urls.length);
    const part = (i: number) => content.slice(i * step, Math.min((i + 1) * step, upload.size));
    const missing = upload.etags.flatMap((tag, i) => (tag ? [] : [i]));
    const stop = new AbortController();
    const signal = options.signal ? AbortSignal.any([options.signal, stop.signal]) : stop.signal;
    const worker = async () => {
      for (let i = missing.shift(); i !== undefined && !signal.aborted; i = missing.shift()) {
        const body = part(i);
        const response = await this.#send("PUT", upload.presigned_urls[i]!, {
          raw: body, headers: { "Content-Type": upload.mime_type }, signal, repeat: true, anonymous: true,
        });
        await response.arrayBuffer();
        const etag = response.headers.get("ETag")?.replaceAll('"', "");
        if (!etag) throw new Error("the server returned no ETag; in a browser, it must permit the origin of the page");
        upload.etags[i] = etag;
        const sent = upload.etags.reduce((n, tag, j) => n + (tag ? part(j).size : 0), 0);
        options.progress?.(sent, upload.size);
      }
    };
    try {
      await Promise.all(Array.from({ length: Math.min(this.#options.parallel ?? 4, missing.length) }, worker));
    } catch (error) {
      stop.abort(error);
      throw error;
    }
    signal.throwIfAborted();
    const { file_key, object_name, upload_id } = upload;
    const body: Schemas["CompleteUpload"] = {
      file_key, object_name, upload_id, parts: upload.etags.map((etag, i) => ({ etag, part_number: i + 1 })),
    };
    await this.#json("POST", "/api/v1/complete-upload", { body, signal: options.signal, repeat: true });
  }

  /** Starts an operation and returns its id. A repetition with the same idempotencyKey returns the same operation. */
  async start(request: OperationRequest, options: { idempotencyKey?: string; signal?: AbortSignal } = {}): Promise<string> {
    const headers = { "Idempotency-Key": options.idempotencyKey ?? crypto.randomUUID() };
    const created = await this.#json<Schemas["OperationCreated"]>("POST", "/api/v1/do", {
      body: request, headers, signal: options.signal, repeat: true,
    });
    return created.main_task_id;
  }

  /** Returns the state of an operation. */
  status(id: string, signal?: AbortSignal): Promise<Operation> {
    return this.#json("GET", `/api/v1/status/${encodeURIComponent(id)}`, { signal });
  }

  /** Waits until an operation is completed or failed, and returns its last state. */
  async wait(id: string, options: WaitOptions = {}): Promise<Operation> {
    for (;;) {
      const operation = await this.#json<Operation>("GET", `/api/v1/status/${encodeURIComponent(id)}?wait=30s`, { signal: options.signal });
      options.progress?.(operation);
      if (operation.operation_status === "completed" || operation.operation_status === "failed") return operation;
    }
  }

  /** Starts an operation and waits for it. It throws a FileError if a file failed. */
  async run(request: OperationRequest, options: WaitOptions & { idempotencyKey?: string } = {}): Promise<Operation> {
    const operation = await this.wait(await this.start(request, options), options);
    if (operation.operation_status === "failed" || operation.files_data.some((f) => f.status === "failed")) throw new FileError(operation);
    return operation;
  }

  /**
   * Downloads a result. The response has the bytes as body (a stream), blob(), arrayBuffer() or text().
   * offset continues a download after that many bytes.
   */
  async download(file: OperationFile | string, options: { offset?: number; signal?: AbortSignal } = {}): Promise<Response> {
    const link = typeof file === "string" ? file : file.download_link;
    if (!link) throw new Error("the file has no result to download");
    const url = /^https?:/.test(link) ? link : this.#base + (link.startsWith("/") ? link : `/v1/download/${link}`);
    const headers: Record<string, string> = options.offset ? { Range: `bytes=${options.offset}-` } : {};
    const anonymous = new URL(url, this.#base).origin !== new URL(this.#base).origin; // other hosts do not get the key
    const response = await this.#send("GET", url, { headers, signal: options.signal, repeat: true, anonymous });
    if (options.offset && response.status !== 206) throw new Error("the server does not continue downloads");
    return response;
  }

  /** Cancels an operation. Finished results remain. */
  cancel(id: string): Promise<Operation> {
    return this.#json("DELETE", `/api/v1/status/${encodeURIComponent(id)}`);
  }

  /** Deletes an upload or a result. */
  async delete(fileKey: string): Promise<void> {
    await this.#json("DELETE", `/api/v1/files/${encodeURIComponent(fileKey)}`);
  }

  /** Asks whether the server supports an action for files with an extension; without an action, which ones it supports. */
  supported(ext: string, action?: string, parameters?: Record<string, unknown>): Promise<Support> {
    return this.#json("POST", "/api/v1/supported-operation", { body: { ext, action, parameters }, repeat: true });
  }

  async #json<T>(method: string, path: string, request: JSONRequest = {}): Promise<T> {
    const headers = { ...request.headers, ...(request.body === undefined ? {} : { "Content-Type": "application/json" }) };
    const raw = request.body === undefined ? undefined : JSON.stringify(request.body);
    const response = await this.#send(method, this.#base + path, { ...request, headers, raw });
    return (await response.json()) as T;
  }

  async #send(method: string, url: string, request: RawRequest): Promise<Response> {
    const headers = new Headers(request.headers);
    if (this.#options.key && !request.anonymous) headers.set("Authorization", `Bearer ${this.#options.key}`);
    const repeat = request.repeat || method !== "POST";
    for (let attempt = 1, delay = 200; ; attempt++, delay = Math.min(2 * delay, 10_000)) {
      let wait = delay * (0.5 + Math.random());
      try {
        const init: RequestInit = { method, headers, body: request.raw ?? null, signal: request.signal ?? null };
        const response = await (this.#options.fetch ?? fetch)(url, init);
        if (response.ok) return response;
        const problem = (await response.json().catch(() => ({}))) as Partial<Problem>;
        const after = Number(response.headers.get("Retry-After")) || undefined;
        throw new FilewrightError(response.status, problem, after);
      } catch (error) {
        request.signal?.throwIfAborted();
        const answered = error instanceof FilewrightError;
        if (attempt >= (this.#options.attempts ?? 5) || (answered ? !error.temporary : !repeat)) throw error;
        if (answered && error.retryAfter) wait = error.retryAfter * 1000;
      }
      await new Promise<void>((resolve, reject) => {
        const timer = setTimeout(resolve, wait);
        request.signal?.addEventListener("abort", () => { clearTimeout(timer); reject(request.signal?.reason); }, { once: true });
      });
    }
  }
}

interface RequestOptions {
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
  /** Whether the request may be sent twice. */
  repeat?: boolean;
}
interface JSONRequest extends RequestOptions {
  body?: unknown;
}
interface RawRequest extends RequestOptions {
  raw?: Blob | string | undefined;
  /** Sends no API key. */
  anonymous?: boolean;
}
