// The list of operations: counts the selected ones, selects all, and applies the filters as soon as
// one changes.

const bar = document.querySelector("[data-bulk]");
const form = document.getElementById("selected");
const boxes = () => [...form.querySelectorAll("input[name=id]")];

if (bar) {
  const count = bar.querySelector(".count");
  const all = document.createElement("input");
  all.type = "checkbox";
  const label = document.createElement("label");
  label.className = "check";
  const text = document.createElement("span");
  text.textContent = "Select all";
  label.append(all, text);
  bar.prepend(label);
  const hint = count.textContent;
  const show = () => {
    const n = boxes().filter((box) => box.checked).length;
    count.textContent = n ? `${n} selected` : hint;
    all.checked = n > 0 && n === boxes().length;
    all.indeterminate = n > 0 && n < boxes().length;
    for (const button of bar.querySelectorAll("button")) button.disabled = n === 0;
    bar.querySelector("summary").toggleAttribute("inert", n === 0);
    bar.querySelector("summary").classList.toggle("off", n === 0);
  };
  all.addEventListener("change", () => {
    for (const box of boxes()) box.checked = all.checked;
    show();
  });
  form.addEventListener("change", show);
  addEventListener("pageshow", show);
  show();
}

const filters = document.querySelector("form.filters");
filters?.addEventListener("change", (event) => {
  if (event.target.matches("select") || event.target.type === "date" && event.target.validity.valid) filters.requestSubmit();
});
filters?.addEventListener("submit", () => {
  for (const field of filters.elements) if (field.name && field.value === "") field.disabled = true; // short addresses
  setTimeout(() => { for (const field of filters.elements) field.disabled = false; });
});
