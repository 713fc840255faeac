// Threads: preview, names, attachments, and what others do meanwhile. Every form works without it.
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

/** @param {string} text */
function complain(text) {
  const place = byId("thread-problem");
  const note = document.createElement("p");
  note.className = "notice bad";
  note.setAttribute("role", "alert");
  note.textContent = text;
  place?.replaceChildren(note);
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
  closeNames(editor);
  // Somebody may have typed on meanwhile.
  if (!html || beginning(area) !== begun) return;
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
    if (!response.ok) complain(`${name} was not taken: pictures, sounds and PDFs up to 10 MB, videos up to 50 MB.`);
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

// ---- what others do meanwhile ----
/** @type {Map<string, string>} What the server said last, by element. */
const shown = new Map();

/** @param {Element} part */
const isBusy = (part) => part.contains(document.activeElement) || !!part.querySelector("textarea, details[open]");

/** @param {Element} old @param {Element} part */
function renew(old, part) {
  const html = part.outerHTML.replace(/value="[0-9a-f]{64,}"|<time.*?<\/time>/g, "");
  if (shown.get(part.id) === html || isBusy(old)) return;
  shown.set(part.id, html);
  old.replaceWith(part);
  part.dispatchEvent(new Event("fresh", { bubbles: true }));
}

/** @param {string} html */
function apply(html) {
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  const timeline = byId("timeline");
  for (const part of [...fresh.content.children]) {
    const old = byId(part.id);
    if (old && part.id !== "timeline") renew(old, part);
  }
  for (const entry of [...(fresh.content.getElementById("timeline")?.children ?? [])]) {
    const old = byId(entry.id);
    if (old) renew(old, entry);
    else timeline?.append(entry), entry.dispatchEvent(new Event("fresh", { bubbles: true }));
  }
}

async function refresh() {
  const response = await fetch(location.href, { headers: { Fragment: "live" } });
  if (!response.ok) return;
  const before = byId("timeline")?.childElementCount ?? 0;
  apply(await response.text());
  const more = (byId("timeline")?.childElementCount ?? 0) - before;
  const status = byId("thread-status");
  if (status && more > 0) status.textContent = `${more} new in this thread`;
}

document.addEventListener("submit", async (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  const by = /** @type {HTMLButtonElement | null} */ (event.submitter);
  if (!form.matches("[data-live]") || by?.name === "preview") return;
  event.preventDefault();
  const body = new URLSearchParams();
  for (const [field, value] of new FormData(form, by)) body.append(field, String(value));
  by?.setAttribute("aria-busy", "true");
  const response = await fetch(form.action, { method: "POST", body, headers: { Fragment: "live" } }).catch(() => null);
  by?.removeAttribute("aria-busy");
  if (!response || response.redirected || !response.headers.get("Vary")?.includes("Fragment")) {
    return complain(response?.redirected ? "You are signed out. Sign in in another window, then send it again." : "That did not work; please try again.");
  }
  by?.closest("details")?.removeAttribute("open");
  by?.blur();
  if (response.ok) {
    for (const area of form.querySelectorAll("textarea")) (area.value = ""), (area.hidden = false);
    form.querySelector(".drawn")?.setAttribute("hidden", "");
    form.querySelector("[data-once]")?.remove();
  }
  apply(await response.text());
});

const place = /** @type {HTMLElement | null} */ (document.querySelector("[data-thread]"));
/** @type {EventSource | null} */
let stream = null;
let since = place?.dataset.version ?? "0";
let leaving = 0;

function listen() {
  stream = new EventSource(`${place?.dataset.thread}?since=${since}`);
  stream.addEventListener("changed", (event) => {
    since = event.lastEventId;
    refresh();
  });
}
if (place) {
  listen();
  document.addEventListener("visibilitychange", () => {
    clearTimeout(leaving);
    if (document.hidden) leaving = setTimeout(() => (stream = (stream?.close(), null)), 30000);
    else if (!stream) listen();
  });
}
// A link to a comment of a long thread that this page does not show.
if (byId("cut") && /^#[0-9a-f]{24}$/.test(location.hash) && !byId(location.hash.slice(1))) {
  location.replace(`?entries=all${location.hash}`);
}
