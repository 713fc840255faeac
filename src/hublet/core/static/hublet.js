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
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
/** @param {number} seconds */
function ago(seconds) {
  const [unit, length] = units.find(([, each]) => Math.abs(seconds) >= each) ?? ["second", 1];
  return seconds > -45 && seconds < 45 ? "just now" : relative.format(-Math.round(seconds / length), unit);
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

// A form with `data-fragment` gets only that part of the page back, and puts it in its place.
document.addEventListener("submit", async (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  const name = form.dataset.fragment;
  if (!name) return;
  event.preventDefault();
  const submitter = /** @type {HTMLButtonElement | null} */ (event.submitter);
  const body = new URLSearchParams();
  for (const [field, value] of new FormData(form, submitter)) body.append(field, String(value));
  submitter?.setAttribute("aria-busy", "true");
  const response = await fetch(form.action, { method: "POST", body, headers: { Fragment: name } });
  if (response.redirected || !response.headers.get("Vary")?.includes("Fragment")) {
    location.href = response.url;
    return;
  }
  const place = document.getElementById(name);
  if (!place) return;
  // Whoever pressed a button by keyboard is at the same one afterwards.
  const position = [...place.querySelectorAll("button")].indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
  place.outerHTML = await response.text();
  const fresh = document.getElementById(name);
  if (!fresh) return;
  fresh.querySelectorAll("button")[position]?.focus();
  fresh.dispatchEvent(new Event("fresh", { bubbles: true }));
});

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
    if (!response || !response.ok || box.value.trim() !== text) return show(false);
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
