// Inbox: keys that go from row to row. Every form works without it.
// @ts-check

const rows = () => /** @type {HTMLElement[]} */ ([...document.querySelectorAll("[data-row]")]);
const current = () => rows().findIndex((row) => row.contains(document.activeElement));
/** @param {HTMLElement | undefined} row */
const enter = (row) => row?.querySelector("a")?.focus();

// The row to be at once the list is drawn anew, and the boxes that were ticked.
let next = -1;
/** @type {Set<string>} */
let ticked = new Set();

document.addEventListener("change", (event) => {
  const box = event.target;
  if (!(box instanceof HTMLInputElement) || box.name !== "id") return;
  if (box.checked) ticked.add(box.value);
  else ticked.delete(box.value);
});

document.addEventListener("fresh", () => {
  const boxes = /** @type {HTMLInputElement[]} */ ([...document.querySelectorAll("[data-row] input[name=id]")]);
  for (const box of boxes) box.checked = ticked.has(box.value);
  ticked = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
  if (next < 0) return;
  enter(rows()[Math.min(next, rows().length - 1)]);
  next = -1;
});

document.addEventListener("keydown", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.ctrlKey || event.metaKey || event.altKey || localStorage.getItem("keys") === "off") return;
  if (target.closest("input:not([type=checkbox]), textarea, select, dialog[open]")) return;
  const position = current();
  if (event.key === "j") enter(rows()[position + 1]);
  else if (event.key === "k") enter(rows()[Math.max(0, position - 1)]);
  else if (event.key === "e" && position >= 0) {
    next = position;
    /** @type {HTMLElement | null} */ (rows()[position].querySelector("[data-done]"))?.click();
  } else return;
  event.preventDefault();
});
