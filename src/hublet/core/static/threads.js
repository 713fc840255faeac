// Threads: preview, names, attachments. Every form works without it.
// @ts-check

/** @param {string} id */
const byId = (id) => document.getElementById(id);

/** @param {HTMLElement} editor @param {string} path @param {BodyInit} body @param {string} [type] */
function send(editor, path, body, type) {
  const headers = { "Form-Token": editor.dataset.token ?? "", ...(type && { "Content-Type": type }) };
  return fetch(editor.dataset.editor + path, { method: "POST", body, headers });
}

/** @param {HTMLTextAreaElement} area @param {string} text */
function insert(area, text) {
  area.focus();
  area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
}

// ---- preview, quote ----
document.addEventListener("click", async (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  const quote = target.closest("[data-quote]");
  const area = byId("comment-text");
  if (quote instanceof HTMLElement && area instanceof HTMLTextAreaElement) {
    event.preventDefault();
    quote.closest("details")?.removeAttribute("open");
    insert(area, (quote.dataset.quote ?? "").replace(/^/gm, "> ") + "\n\n");
    return;
  }
  const button = target.closest("button[name=preview]");
  if (!(button instanceof HTMLButtonElement)) return;
  const editor = /** @type {HTMLElement | null} */ (button.form?.querySelector("[data-editor]"));
  const typed = editor?.querySelector("textarea");
  const drawn = /** @type {HTMLElement | null} */ (editor?.querySelector(".drawn"));
  if (!editor || !typed || !drawn) return;
  event.preventDefault();
  const isWriting = !typed.hidden;
  if (isWriting) {
    const response = await send(editor, "/preview", new URLSearchParams({ text: typed.value }));
    if (!response.ok) return button.form?.requestSubmit(button);
    drawn.innerHTML = await response.text();
  }
  typed.hidden = isWriting;
  drawn.hidden = !isWriting;
  button.textContent = isWriting ? "Write" : "Preview";
});

// ---- names ----
/** @param {HTMLElement} editor */
const closeNames = (editor) => editor.querySelector(".names")?.remove();

/** The name that is being typed, without its `@`. @param {HTMLTextAreaElement} area */
const beginning = (area) =>
  /(?:^|[\s(])@([A-Za-z0-9-]{1,42})$/.exec(area.value.slice(0, area.selectionStart))?.[1] ?? "";

document.addEventListener("input", async (event) => {
  const area = event.target;
  if (!(area instanceof HTMLTextAreaElement)) return;
  const editor = /** @type {HTMLElement | null} */ (area.closest("[data-editor]"));
  if (!editor) return;
  const begun = beginning(area);
  if (!begun) return closeNames(editor);
  const response = await fetch(`${editor.dataset.editor}/mentions?q=${encodeURIComponent(begun)}`);
  const html = response.ok ? await response.text() : "";
  // Somebody may have typed on meanwhile, and the answer to that may have come first.
  if (beginning(area) !== begun) return;
  closeNames(editor);
  if (!html) return;
  const list = document.createElement("ul");
  list.className = "names";
  list.innerHTML = html;
  list.addEventListener("click", (chosen) => {
    const end = area.selectionStart;
    const name = /** @type {HTMLElement} */ (chosen.target).textContent;
    area.setRangeText(`${name} `, end - beginning(area).length, end, "end");
    closeNames(editor);
    area.focus();
  });
  editor.append(list);
});
document.addEventListener("keydown", (event) => {
  const editor = /** @type {HTMLElement} */ (event.target).closest("[data-editor]");
  const list = editor?.querySelector(".names");
  if (!(editor instanceof HTMLElement) || !list) return;
  const buttons = [...list.querySelectorAll("button")];
  const at = buttons.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape") closeNames(editor);
  if (!step) return;
  event.preventDefault();
  (buttons[at + step] ?? editor.querySelector("textarea"))?.focus();
});

// ---- attachments ----
/** @param {HTMLTextAreaElement} area @param {Iterable<File>} files */
async function attach(area, files) {
  const editor = /** @type {HTMLElement} */ (area.closest("[data-editor]"));
  for (const file of files) {
    const name = file.name.replace(/[[\]\n]/g, "");
    const mark = `[${name} is on its way…]`;
    insert(area, mark);
    const response = await send(editor, "/attachments", file, file.type || "application/octet-stream");
    const link = response.ok ? `${file.type.startsWith("image/") ? "!" : ""}[${name}](${await response.text()})` : "";
    area.value = area.value.replace(mark, () => link);
    if (!response.ok) {
      const sentence = `${name} was not taken: pictures, sounds and PDFs up to 10 MB, videos up to 50 MB.`;
      document.dispatchEvent(new CustomEvent("problem", { detail: sentence }));
    }
  }
}
for (const kind of ["dragover", "dragleave", "drop", "paste"]) {
  document.addEventListener(kind, (event) => {
    const area = event.target;
    const editor = area instanceof HTMLTextAreaElement ? area.closest("[data-editor]") : null;
    if (!editor || !(area instanceof HTMLTextAreaElement)) return;
    editor.classList.toggle("drop", kind === "dragover");
    const carried = event instanceof DragEvent ? event.dataTransfer : /** @type {ClipboardEvent} */ (event).clipboardData;
    if (kind === "dragover" && carried?.types.includes("Files")) event.preventDefault();
    if (!carried?.files.length || kind.startsWith("drag")) return;
    event.preventDefault();
    attach(area, [...carried.files]);
  });
}

// A link to a comment of a long thread that this page does not show.
if (byId("cut") && /^#[0-9a-f]{24}$/.test(location.hash) && !byId(location.hash.slice(1))) {
  location.replace(`?entries=all${location.hash}`);
}
