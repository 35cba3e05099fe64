// Follows the status of an operation through server-sent events, or through long
// polling where events do not get through.

const api = "/api/v1";

/** Unwraps a response of the API, whatever its envelope. */
export async function answer(response) {
  let body = {};
  try { body = await response.json(); } catch { /* not JSON: the status code is enough */ }
  if (!response.ok) {
    const ended = response.status === 401; // pages send no key, so their session has ended
    const error = new Error(ended ? "Your session has ended. Log in again to continue." : body.detail ?? body.message ?? `The server responded with status ${response.status}.`);
    error.ended = ended;
    error.status = response.status;
    error.code = body.error;
    error.param = body.param;
    error.allowed = body.allowed;
    error.retryAfter = Number(response.headers.get("Retry-After")) || 0;
    throw error;
  }
  return body.data ?? body;
}

/** Calls the API with a JSON body. */
export async function call(path, body, { method = "POST", signal, headers = {} } = {}) {
  const response = await fetch(api + path, {
    method, signal,
    headers: body === undefined ? headers : { "Content-Type": "application/json", ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  return answer(response);
}

const final = (status) => status === "completed" || status === "failed";

/** Calls changed with every status of an operation and resolves with the final one. */
export function follow(id, changed, signal) {
  const path = `/status/${encodeURIComponent(id)}`;
  return new Promise((resolve, reject) => {
    let over = false;
    const end = (f, value) => {
      if (over) return;
      over = true;
      source?.close();
      f(value);
    };
    const take = (status) => {
      if (over) return;
      changed(status);
      if (final(status.operation_status)) end(resolve, status);
    };
    let failures = 0;
    let source = new EventSource(`${api}${path}/events`);
    signal?.addEventListener("abort", () => end(reject, signal.reason), { once: true });
    addEventListener("pagehide", () => source?.close(), { once: true });
    source.addEventListener("status", (event) => {
      failures = 0;
      const body = JSON.parse(event.data);
      take(body.data ?? body);
    });
    source.onerror = () => {
      if (over) return;
      failures++;
      if (source.readyState !== EventSource.CLOSED && failures < 3) return; // the browser reconnects
      source.close();
      longPoll();
    };
    async function longPoll() {
      for (let wait = 1; !over;) {
        try {
          take(await call(`${path}?wait=25s`, undefined, { method: "GET", signal }));
          wait = 1;
          await new Promise((done) => setTimeout(done, 250)); // in case the server does not wait
        } catch (error) {
          if (error.status && error.status < 500 && error.status !== 429) return end(reject, error);
          wait = Math.min(wait * 2, 30);
          await new Promise((done) => setTimeout(done, 1000 * Math.max(wait, error.retryAfter ?? 0)));
        }
      }
    }
  });
}
