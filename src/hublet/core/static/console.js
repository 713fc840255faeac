// SQL console: colours behind the text, an id for each run so that it can be cancelled, seconds that pass.
// @ts-check

const area = /** @type {HTMLTextAreaElement | null} */ (document.querySelector(".sql-editor textarea"));
const form = area?.form;
const paint = document.querySelector(".sql-editor pre code");
const words =
  "all and any as asc between by case cast cross desc describe distinct else end except exists false filter from full group having in inner intersect interval is join lateral left like limit not null offset on or order outer over partition pivot qualify right sample select summarize then true union unnest using values when where window with within";
const keywords = new Set(words.split(" "));
const token = /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^']|'')*'?|"(?:[^"]|"")*"?)|(\b\d+(?:\.\d+)?\b)|(\b[A-Za-z_]\w*\b)(\s*\()?/g;

/** Puts the same text behind the area, in colours; the area's own is transparent then. */
function colour() {
  if (!area || !paint) return;
  const parts = [];
  let at = 0;
  for (const match of area.value.matchAll(token)) {
    const [whole, comment, quoted, number, word, call] = match;
    const known = word && keywords.has(word.toLowerCase());
    const kind = comment ? "c" : quoted ? "s" : number ? "n" : known ? "k" : call ? "f" : "";
    if (!kind) continue;
    const text = word ?? whole;
    parts.push(area.value.slice(at, match.index));
    const span = document.createElement("span");
    span.className = kind;
    span.textContent = text;
    parts.push(span);
    at = match.index + text.length;
  }
  // A last line break is seen only when something follows it.
  paint.replaceChildren(...parts, `${area.value.slice(at)}\n `);
  scroll();
}

function scroll() {
  const behind = paint?.parentElement;
  if (area && behind) [behind.scrollTop, behind.scrollLeft] = [area.scrollTop, area.scrollLeft];
}

if (area && form && paint) {
  area.closest(".sql-editor")?.classList.add("painted");
  area.addEventListener("input", colour);
  area.addEventListener("scroll", scroll);
  colour();
  area.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    /** @type {HTMLButtonElement | null} */ (form.querySelector("[data-run]"))?.click();
  });
}

for (const button of document.querySelectorAll("[data-example]")) {
  button.addEventListener("click", () => {
    if (!area) return;
    area.value = /** @type {HTMLElement} */ (button).dataset.example ?? "";
    area.dispatchEvent(new Event("input"));
    area.focus();
  });
}

const status = document.getElementById("run-status");
const stop = /** @type {HTMLButtonElement | null} */ (document.querySelector("[data-cancel]"));
let running = "";
let ticking = 0;

/** @param {string} text */
function end(text) {
  clearInterval(ticking);
  running = "";
  if (stop) stop.hidden = true;
  if (status) status.textContent = text;
  form?.querySelector("[data-run]")?.removeAttribute("aria-busy");
}

// Before the form is read and sent: each run has an id of its own.
form?.addEventListener("submit", (event) => {
  const by = /** @type {HTMLElement | null} */ (event.submitter);
  const field = /** @type {HTMLInputElement | null} */ (form.elements.namedItem("id"));
  if (!by?.matches("[data-run]") || !field) return;
  if (running) return event.preventDefault(), event.stopPropagation();
  running = field.value = [...crypto.getRandomValues(new Uint8Array(12))].map((each) => each.toString(16).padStart(2, "0")).join("");
  const start = performance.now();
  if (stop) stop.hidden = false;
  const tick = () => status && (status.textContent = `Running for ${((performance.now() - start) / 1000).toFixed(0)} s`);
  tick();
  ticking = setInterval(tick, 1000);
});

document.addEventListener("fresh", (event) => {
  const place = /** @type {HTMLElement} */ (event.target);
  if (place.id !== "result") return;
  end(place.dataset.status ?? "");
});

stop?.addEventListener("click", async () => {
  if (!running || !form) return;
  stop.disabled = true;
  const body = new URLSearchParams([...new FormData(form)].map(([name, value]) => [name, String(value)]));
  await fetch(stop.dataset.cancel ?? "", { method: "POST", body }).catch(() => null);
  stop.disabled = false;
});

// The answer never came.
addEventListener("unhandledrejection", () => running && end("That did not work; please try again."));
