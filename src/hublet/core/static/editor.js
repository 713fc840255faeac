// Forms that change files: preview, files that are dropped, progress. Every form works without it.
// @ts-check

// ---- the text of a file ----
const edit = /** @type {HTMLFormElement | null} */ (document.querySelector("form[data-edit]"));
if (edit) {
  const area = /** @type {HTMLTextAreaElement} */ (edit.elements.namedItem("text"));
  const path = /** @type {HTMLInputElement} */ (edit.elements.namedItem("path"));
  const button = /** @type {HTMLButtonElement | null} */ (edit.querySelector("[name=preview]"));
  const drawn = /** @type {HTMLElement} */ (edit.querySelector("#preview"));
  const before = area.value;
  let isSent = false;
  const offerPreview = () => button && (button.hidden = !/\.(md|markdown)$/i.test(path.value));
  path.addEventListener("input", offerPreview);
  offerPreview();
  button?.addEventListener("click", async (event) => {
    event.preventDefault();
    const isWriting = !area.hidden;
    if (isWriting) {
      button.setAttribute("aria-busy", "true");
      const body = new FormData(edit, button);
      const response = await fetch(edit.action, { method: "POST", body, headers: { Fragment: "preview" } }).catch(() => null);
      button.removeAttribute("aria-busy");
      if (!response?.ok || !response.headers.get("Vary")?.includes("Fragment")) return;
      const fresh = document.createElement("template");
      fresh.innerHTML = await response.text();
      drawn.innerHTML = fresh.content.firstElementChild?.innerHTML ?? "";
    }
    area.hidden = isWriting;
    drawn.hidden = !isWriting;
    button.textContent = isWriting ? "Write" : "Preview";
  });
  // What was typed is not lost by a click beside the button.
  edit.addEventListener("submit", () => (isSent = true));
  addEventListener("beforeunload", (event) => {
    if (!isSent && area.value !== before) event.preventDefault();
  });
}

// ---- files to upload ----
/** @typedef {{ file: File, path: string, item: HTMLElement, bar: HTMLProgressElement, state: HTMLElement }} Chosen */
const place = /** @type {HTMLElement | null} */ (document.querySelector("[data-upload]"));
const form = place?.closest("form");
if (place && form) {
  const largest = Number(place.dataset.largest);
  const list = /** @type {HTMLElement} */ (place.querySelector(".uploads"));
  const zone = /** @type {HTMLElement} */ (place.querySelector(".drop-zone"));
  const submit = /** @type {HTMLButtonElement} */ (form.querySelector("button.main"));
  /** @type {Map<string, Chosen>} */
  const chosen = new Map();

  /** @param {number} size */
  const sizeText = (size) => {
    const unit = Math.max(0, Math.min(4, Math.floor(Math.log10(Math.max(size, 1)) / 3)));
    return `${Number((size / 1000 ** unit).toPrecision(3))} ${["B", "kB", "MB", "GB", "TB"][unit]}`;
  };
  /** @param {string} text */
  const complain = (text) => {
    const note = document.createElement("p");
    note.className = "notice bad";
    note.setAttribute("role", "alert");
    note.textContent = text;
    document.getElementById("problem")?.replaceChildren(note);
    note.scrollIntoView({ block: "nearest" });
  };
  /** @param {File} file @param {string} path */
  const add = (file, path) => {
    if (file.size > largest) return complain(`${path} is larger than ${sizeText(largest)}.`);
    chosen.get(path)?.item.remove();
    const item = document.createElement("li");
    const name = document.createElement("span");
    name.className = "ell mono";
    name.textContent = path;
    const state = document.createElement("span");
    state.className = "quiet small num";
    state.textContent = sizeText(file.size);
    const bar = document.createElement("progress");
    bar.max = 1;
    bar.value = 0;
    bar.setAttribute("aria-label", `Progress of ${path}`);
    const drop = document.createElement("button");
    drop.type = "button";
    drop.className = "btn s";
    drop.textContent = "Remove";
    drop.setAttribute("aria-label", `Remove ${path}`);
    drop.addEventListener("click", () => {
      chosen.delete(path);
      item.remove();
      list.hidden = !chosen.size;
    });
    item.append(name, state, bar, drop);
    list.append(item);
    list.hidden = false;
    chosen.set(path, { file, path, item, bar, state });
  };
  for (const input of place.querySelectorAll("input")) {
    input.addEventListener("change", () => {
      for (const file of input.files ?? []) add(file, file.webkitRelativePath || file.name);
      input.value = "";
    });
  }

  /** All files below what was dropped. @param {FileSystemEntry} entry @returns {Promise<void>} */
  const take = async (entry) => {
    const path = entry.fullPath.replace(/^\//, "");
    if (entry.isFile) {
      /** @type {File} */
      const file = await new Promise((yes, no) => /** @type {FileSystemFileEntry} */ (entry).file(yes, no));
      return add(file, path);
    }
    const reader = /** @type {FileSystemDirectoryEntry} */ (entry).createReader();
    for (;;) {
      /** @type {FileSystemEntry[]} */
      const some = await new Promise((yes, no) => reader.readEntries(yes, no));
      if (!some.length) return;
      for (const each of some) await take(each);
    }
  };
  for (const kind of ["dragover", "dragleave", "drop"]) {
    place.addEventListener(kind, async (event) => {
      const carried = /** @type {DragEvent} */ (event).dataTransfer;
      if (!carried?.types.includes("Files")) return;
      event.preventDefault();
      zone.classList.toggle("over", kind === "dragover");
      if (kind !== "drop") return;
      // The list is gone after the first wait.
      const entries = [...carried.items].map((item) => item.webkitGetAsEntry?.());
      const files = [...carried.files];
      for (const [number, entry] of entries.entries()) {
        if (entry) await take(entry).catch(() => complain("A file could not be read."));
        else if (files[number]) add(files[number], files[number].name);
      }
    });
  }

  /** How much of each file has arrived: they are sent one after the other. @param {number} part */
  const show = (part) => {
    const all = [...chosen.values()];
    let sent = part * all.reduce((sum, each) => sum + each.file.size, 0);
    for (const { file, bar, state } of all) {
      const share = file.size ? Math.min(1, Math.max(0, sent / file.size)) : part;
      bar.value = share;
      state.textContent = share < 1 ? `${Math.floor(share * 100)} %` : "sent";
      sent -= file.size;
    }
  };
  /** @param {boolean} isBusy */
  const setBusy = (isBusy) => {
    place.classList.toggle("busy", isBusy);
    submit.disabled = isBusy;
    submit.toggleAttribute("aria-busy", isBusy);
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!chosen.size) return complain("Choose at least one file.");
    const body = new FormData(form);
    body.delete("file");
    for (const { file, path } of chosen.values()) body.append("file", file, path);
    const request = new XMLHttpRequest();
    request.open("POST", form.action);
    request.setRequestHeader("Fragment", "problem");
    request.upload.addEventListener("progress", ({ loaded, total }) => show(total ? loaded / total : 0));
    request.addEventListener("loadend", () => {
      const target = request.status === 201 && request.getResponseHeader("Location");
      if (target) return location.assign(target);
      setBusy(false);
      show(0);
      const problem = document.getElementById("problem");
      if (request.getResponseHeader("Vary")?.includes("Fragment") && problem) {
        problem.outerHTML = request.responseText;
        document.getElementById("problem")?.scrollIntoView({ block: "nearest" });
      } else {
        complain(/\/login/.test(request.responseURL) ? "You are signed out. Sign in in another window, then send it again." : "That did not work; please try again.");
      }
    });
    setBusy(true);
    request.send(body);
  });
}
