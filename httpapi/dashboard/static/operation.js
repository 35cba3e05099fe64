// The page of an operation: updates the progress, and reloads the live regions when a
// state changes.

import { announce, refresh } from "./app.js";
import { follow } from "./follow.js";

const box = document.querySelector("[data-follow]");

function key(status) {
  const steps = (status.steps ?? []).map((step) => step.status);
  return [...steps, ...status.files_data.map((file) => `${file.input_file_key} ${file.status}`)].join();
}

if (box.dataset.final === "false") {
  let last = null;
  let pending = Promise.resolve();
  const again = () => { pending = pending.then(refresh).catch(() => {}); };
  follow(box.dataset.follow, (status) => {
    const overall = document.getElementById("overall");
    if (overall) overall.value = status.progress;
    const rows = document.querySelectorAll("#files tr[data-part]");
    if (rows.length === status.files_data.length) {
      status.files_data.forEach((file, i) => {
        const bar = rows[i].querySelector("progress");
        if (file.status !== "running") return;
        bar.value = file.progress;
        bar.nextElementSibling.textContent = `${file.progress} %`;
      });
    }
    document.querySelectorAll("#steps tr[data-step]").forEach((row, i) => {
      const step = status.steps?.[i];
      if (step?.status !== "running") return;
      const bar = row.querySelector("progress");
      bar.value = step.progress;
      bar.nextElementSibling.textContent = `${step.progress} %`;
    });
    const now = status.operation_status + key(status);
    if (last !== null && last !== now) again();
    last = now;
  }).then((status) => {
    for (const open of document.querySelectorAll("#cancel details[open]")) open.open = false; // it is too late to cancel
    again();
    announce(status.operation_status === "completed" ? "Operation completed" : "Operation failed");
  }).catch(() => {});
}
