// Shows queued and running operations live, through server-sent events or by polling.

import { prefix, poll, refresh } from "./app.js";

const sign = document.getElementById("live");

function live(on) {
  if (!sign) return;
  sign.firstElementChild.classList.toggle("off", !on);
  sign.lastElementChild.textContent = on ? "Live" : "Not live";
}

let known = null; // IDs and states on the page

function show(operations) {
  for (const op of operations) {
    const row = document.querySelector(`#active [data-operation="${CSS.escape(op.id)}"]`);
    const bar = row?.querySelector("progress");
    if (!bar) continue;
    bar.value = op.progress;
    bar.nextElementSibling.textContent = `${op.progress} %`;
  }
  const now = operations.map((op) => `${op.id} ${op.state}`).sort().join();
  if (known !== null && known !== now) refresh().catch(() => { known = null; });
  known = now;
}

let stop = null;

function ask() {
  live(false);
  stop ??= poll(3, () => refresh().then(() => true));
}

function listen() {
  let failures = 0;
  const source = new EventSource(`${prefix}events`);
  source.onopen = () => {
    failures = 0;
    live(true);
    stop?.();
    stop = null;
    // Changes may have happened between loading the page and opening the stream.
    refresh().catch(() => {});
  };
  source.onmessage = (event) => show(JSON.parse(event.data));
  source.onerror = () => {
    live(false);
    failures++;
    if (source.readyState === EventSource.CLOSED || failures > 2) {
      source.close();
      ask();
      setTimeout(listen, 30000);
    }
  };
  // A page in the back-forward cache must not hold a connection.
  addEventListener("pagehide", () => source.close(), { once: true });
}

addEventListener("pageshow", (event) => { if (event.persisted) listen(); });
listen();
