// Shows a result in a dialog when its thumbnail is clicked.

import { showText } from "./app.js";

let dialog = null;

function make(tag, props) { return Object.assign(document.createElement(tag), props); }

/** The viewer of a file of a kind. */
export function viewer(kind, address, name) {
  switch (kind) {
    case "image": return make("img", { src: address, alt: name });
    case "pdf": return make("iframe", { src: `${address}#view=FitH`, title: name });
    case "audio":
    case "video": {
      const media = make(kind, { src: address, controls: true, preload: "metadata" });
      media.setAttribute("aria-label", name);
      return media;
    }
  }
  const pre = make("pre", { tabIndex: 0 });
  pre.setAttribute("aria-label", name);
  showText(pre, address);
  return pre;
}

/** Opens the dialog with a file. */
export function preview(kind, address, name) {
  if (!dialog) {
    dialog = make("dialog", { className: "preview" });
    const close = make("button", { type: "button", className: "button", textContent: "Close" });
    close.addEventListener("click", () => dialog.close());
    const head = make("div", { className: "row-apart" });
    // The focus is on the title: the Enter that opens the dialog must not press its button.
    head.append(make("h2", { id: "preview-title", tabIndex: -1, autofocus: true }), close);
    dialog.append(head, make("div", { className: "preview-body" }));
    dialog.setAttribute("aria-labelledby", "preview-title");
    dialog.addEventListener("close", () => dialog.querySelector(".preview-body").replaceChildren()); // stops sound
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    document.body.append(dialog);
  }
  dialog.querySelector("h2").textContent = name;
  dialog.querySelector(".preview-body").replaceChildren(viewer(kind, address, name));
  dialog.showModal();
}

// Where there is no thumbnail, the type of the file below it is shown.
const thumbnails = ".thumb > img, .view > .ext ~ img";
document.addEventListener("error", (event) => { if (event.target.matches?.(thumbnails)) event.target.remove(); }, true);
for (const img of document.querySelectorAll(thumbnails)) if (img.complete && !img.naturalWidth) img.remove();

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-preview]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  preview(link.dataset.preview, link.getAttribute("href"), link.dataset.name);
});
