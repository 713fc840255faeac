// Every page works without this file; it makes some parts quicker. No library, no eval.
// @ts-check

/** @param {string} selector @param {ParentNode} root @returns {HTMLElement | null} */
const one = (selector, root = document) => root.querySelector(selector);

document.addEventListener("click", async (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  const button = target.closest("[data-copy]");
  if (!(button instanceof HTMLElement)) return;
  const text = button.dataset.copy || one("code", button.parentElement ?? document)?.innerText || "";
  await navigator.clipboard.writeText(text);
  button.setAttribute("aria-label", "Copied");
  button.classList.add("copied");
});

// Single keys: a list of them, in which they can be switched off for this browser (WCAG 2.1.4).
const keys = /** @type {HTMLDialogElement | null} */ (one("#keys"));
const keysWork = /** @type {HTMLInputElement | null} */ (one("#keys-work"));
const showKeys = () => {
  if (keysWork) keysWork.checked = localStorage.getItem("keys") !== "off";
  keys?.showModal();
};
one("[data-keys]")?.addEventListener("click", showKeys);
keysWork?.addEventListener("change", () => localStorage.setItem("keys", keysWork.checked ? "on" : "off"));
let keyBefore = "";
document.addEventListener("keydown", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.ctrlKey || event.metaKey || event.altKey || keys?.open) return;
  if (target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
  if (localStorage.getItem("keys") === "off") return;
  const pressed = keyBefore === "g" ? `g ${event.key}` : event.key;
  keyBefore = event.key;
  if (!["/", "?", "g n"].includes(pressed)) return;
  event.preventDefault();
  if (pressed === "/") one("#q")?.focus();
  else if (pressed === "?") showKeys();
  else one('.top a[href="/notifications"]')?.click();
});

// A menu closes by a click beside it, and by Escape.
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(/** @type {Node} */ (event.target))) menu.removeAttribute("open");
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const menu = document.querySelector("details.menu[open]");
  menu?.removeAttribute("open");
  if (menu) one("summary", menu)?.focus();
});

// Times are UTC in the page; here they become the reader's own, and the exact one is the title.
const units = /** @type {[Intl.RelativeTimeFormatUnit, number][]} */ ([
  ["year", 31557600], ["month", 2629800], ["day", 86400], ["hour", 3600], ["minute", 60],
]);
const relative = new Intl.RelativeTimeFormat("en");
/** @param {number} seconds In the words of the page, so that nothing moves when they are written. */
function ago(seconds) {
  const [unit, length] = units.find(([, each]) => Math.abs(seconds) >= each) ?? [];
  return unit && length ? relative.format(-Math.trunc(seconds / length), unit) : "just now";
}
/** @param {ParentNode} root */
function localTimes(root) {
  for (const each of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(each.getAttribute("datetime") ?? "");
    each.setAttribute("title", moment.toLocaleString());
    if (each.hasAttribute("data-ago")) each.textContent = ago((Date.now() - moment.getTime()) / 1000);
  }
}
localTimes(document);
document.addEventListener("fresh", (event) => localTimes(/** @type {HTMLElement} */ (event.target)));

/** @type {Map<string, number>} How often each part was asked for. */
const turns = new Map();
// A form or a button with `data-fragment` gets only that part of the page back, and puts it in its place.
document.addEventListener("submit", async (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  const submitter = /** @type {HTMLButtonElement | null} */ (event.submitter);
  const name = submitter?.dataset.fragment ?? form.dataset.fragment;
  if (!name) return;
  event.preventDefault();
  const body = new URLSearchParams();
  for (const [field, value] of new FormData(form, submitter)) body.append(field, String(value));
  submitter?.setAttribute("aria-busy", "true");
  const turn = (turns.get(name) ?? 0) + 1;
  turns.set(name, turn);
  const response = await fetch(form.action, { method: "POST", body, headers: { Fragment: name } });
  if (response.redirected || !response.headers.get("Vary")?.includes("Fragment")) {
    location.href = response.url;
    return;
  }
  const html = await response.text();
  const place = document.getElementById(name);
  // A late answer does not undo what was pressed after it.
  if (!place || turns.get(name) !== turn) return;
  // Whoever pressed a button by keyboard is at the same one afterwards.
  const position = [...place.querySelectorAll("button")].indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
  place.outerHTML = html;
  const fresh = document.getElementById(name);
  if (!fresh) return;
  fresh.querySelectorAll("button")[position]?.focus();
  fresh.dispatchEvent(new Event("fresh", { bubbles: true }));
});

// ---- live pages: what others do meanwhile ----
/** Says a sentence where the page has room for it. @param {string} text */
function complain(text) {
  const note = document.createElement("p");
  note.className = "notice bad";
  note.setAttribute("role", "alert");
  note.textContent = text;
  document.getElementById("problem")?.replaceChildren(note);
}
document.addEventListener("problem", (event) => complain(/** @type {CustomEvent} */ (event).detail));

/** @type {Map<string, string>} What the server said last, by element. */
const shown = new Map();

/** Whether somebody is about to do something there. @param {Element} part */
const isBusy = (part) =>
  part.contains(document.activeElement) ||
  !!part.querySelector("textarea, details[open]") ||
  [...part.querySelectorAll("input")].some((each) => each.checked !== each.defaultChecked || each.value !== each.defaultValue);

/** @param {Element} old @param {Element} part */
function renew(old, part) {
  const html = part.outerHTML.replace(/value="[0-9a-f]{64,}"|<time.*?<\/time>/g, "");
  if (shown.get(part.id) === html || isBusy(old)) return;
  shown.set(part.id, html);
  old.replaceWith(part);
  localTimes(part);
}

/** Renews the entries of a list one by one, and returns how many are new; "exact" drops those that are gone.
 * @param {HTMLElement} list @param {Element} fresh */
function renewEntries(list, fresh) {
  let added = 0;
  /** @type {Element | null} */
  let last = null;
  const entries = [...fresh.children];
  const ids = new Set(entries.map((entry) => entry.id));
  for (const entry of entries) {
    const old = document.getElementById(entry.id);
    if (old) renew(old, entry);
    else {
      if (last) last.after(entry);
      else list.prepend(entry);
      localTimes(entry);
      added += 1;
    }
    last = document.getElementById(entry.id);
  }
  if (list.dataset.entries === "exact") {
    for (const each of [...list.children]) if (!ids.has(each.id) && !isBusy(each)) each.remove();
  }
  return added;
}

/** Puts the elements of the block `live` in the places of those with the same ids. @param {string} html */
function apply(html) {
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  let added = 0;
  for (const part of [...fresh.content.children]) {
    const old = document.getElementById(part.id);
    if (old?.hasAttribute("data-entries")) added += renewEntries(old, part);
    else if (old) renew(old, part);
  }
  const status = one("#live-status");
  if (status && added) status.textContent = `${added} ${status.dataset.text}`;
}

async function refresh() {
  const response = await fetch(location.href, { headers: { Fragment: "live" } });
  if (response.ok && response.headers.get("Vary")?.includes("Fragment")) apply(await response.text());
}

// A form with `data-live` gets the block `live` back.
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

/** @param {number} count */
function showUnread(count) {
  const bell = one("[data-unread]");
  if (!bell) return;
  bell.setAttribute("aria-label", count ? `Inbox, ${count} unread` : "Inbox");
  one(".badge-n", bell)?.remove();
  if (!count) return;
  const badge = document.createElement("span");
  badge.className = "badge-n";
  badge.setAttribute("aria-hidden", "true");
  badge.textContent = count < 100 ? String(count) : "99+";
  bell.append(badge);
}

// One stream for each page that is looked at: a browser has six connections to a host.
const live = document.body.dataset.live;
/** @type {EventSource | null} */
let stream = null;
let since = "";
let leaving = 0;
function listen() {
  // Read anew: a page may have said where its stream goes on.
  const address = new URL(document.body.dataset.live ?? "", location.href);
  if (since) address.searchParams.set("since", since);
  stream = new EventSource(address);
  stream.addEventListener("changed", (event) => {
    since = event.lastEventId;
    refresh();
  });
  stream.addEventListener("unread", (event) => showUnread(Number(event.data)));
  // A page may have events of its own in the same stream.
  document.dispatchEvent(new CustomEvent("stream", { detail: stream }));
}
if (live) {
  listen();
  document.addEventListener("listen", listen);
  document.addEventListener("visibilitychange", () => {
    clearTimeout(leaving);
    if (document.hidden) leaving = setTimeout(() => (stream = (stream?.close(), null)), 30000);
    else if (!stream) listen();
  });
}

// Suggestions below the search box: arrows choose, Enter opens, Escape closes.
const box = /** @type {HTMLInputElement | null} */ (one("#q"));
if (box) {
  const list = document.createElement("ul");
  list.className = "suggestions";
  list.id = "suggestions";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Suggestions");
  list.hidden = true;
  box.parentElement?.append(list);
  for (const [name, value] of [["role", "combobox"], ["aria-controls", list.id], ["aria-expanded", "false"]]) {
    box.setAttribute(name, value);
  }
  let chosen = -1;
  let waiting = 0;
  /** @param {boolean} open */
  const show = (open) => {
    list.hidden = !open;
    box.setAttribute("aria-expanded", String(open));
    if (!open) box.removeAttribute("aria-activedescendant");
  };
  /** @param {number} number */
  const choose = (number) => {
    const options = [...list.children];
    if (!options.length) return;
    chosen = (number + options.length) % options.length;
    options.forEach((each, position) => each.setAttribute("aria-selected", String(position === chosen)));
    box.setAttribute("aria-activedescendant", options[chosen].id);
  };
  const ask = async () => {
    const text = box.value.trim();
    const response = text && (await fetch(`/search/suggestions?q=${encodeURIComponent(text)}`));
    // Somebody may have typed on meanwhile, and the answer to that may have come first.
    if (box.value.trim() !== text) return;
    if (!response || !response.ok) return show(false);
    /** @type {{kind: string, title: string, path: string}[]} */
    const found = await response.json();
    chosen = -1;
    list.replaceChildren(...found.map(({ kind, title, path }, number) => {
      const option = document.createElement("li");
      option.id = `suggestion-${number}`;
      option.setAttribute("role", "option");
      option.setAttribute("aria-selected", "false");
      const link = document.createElement("a");
      link.href = path;
      link.tabIndex = -1;
      const about = document.createElement("span");
      about.textContent = kind;
      link.append(title, about);
      option.append(link);
      return option;
    }));
    show(found.length > 0);
  };
  box.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(ask, 120);
  });
  box.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      choose(event.key === "ArrowDown" ? chosen + 1 : chosen - (chosen < 0 ? 0 : 1));
    } else if (event.key === "Enter" && chosen >= 0) {
      event.preventDefault();
      one("a", list.children[chosen])?.click();
    } else if (event.key === "Escape") {
      show(false);
    }
  });
  box.addEventListener("blur", () => setTimeout(() => show(false), 150));
}
