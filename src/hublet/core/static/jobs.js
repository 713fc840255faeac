// The page of a job: lines, stage and plots as they come. Without this file it shows what there was.
// @ts-check

const byId = (/** @type {string} */ id) => document.getElementById(id);
const log = byId("log");
const lines = /** @type {HTMLElement} */ (log?.firstElementChild);
// What a chunk has, and a page at most: the oldest go when there are more.
const CHUNK = 200;
const MOST = 50000;
const number = new Intl.NumberFormat("en");

// ---- the bar of the log ----
const followButton = document.querySelector("[data-log-follow]");
// The box is reversed: its end is at 0, and what is above it is negative.
const isAtEnd = () => !!log && Math.abs(log.scrollTop) < 24;
let unseen = 0;

function showState() {
  const state = byId("log-state");
  if (!followButton || !state) return;
  const follows = isAtEnd();
  if (follows) unseen = 0;
  followButton.setAttribute("aria-pressed", String(follows));
  const text = follows ? "Live" : `Paused while you read${unseen ? `: ${number.format(unseen)} new below` : ""}`;
  if (state.dataset.text === text) return;
  state.dataset.text = text;
  const pulse = document.createElement("span");
  pulse.className = "pulse";
  state.replaceChildren(...(follows ? [pulse] : []), text);
}
log?.addEventListener("scroll", showState, { passive: true });
followButton?.addEventListener("click", () => {
  if (!log) return;
  log.scrollTop = isAtEnd() ? -log.clientHeight : 0;
  showState();
});
for (const [name, style] of [["wrap", "wrapped"], ["time", "notime"]]) {
  const button = document.querySelector(`[data-log-${name}]`);
  button?.addEventListener("click", () => {
    const isOn = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(isOn));
    log?.classList.toggle(style, name === "wrap" ? isOn : !isOn);
  });
}
// A click on the number of a line is a link to it.
log?.addEventListener("click", (event) => {
  const line = event.target;
  if (line instanceof HTMLElement && line.matches(".l[id]")) location.hash = line.id;
});
// A link to a line that this page does not have.
const linked = /^#L(\d+)$/.exec(location.hash);
if (log && linked && !byId(linked[0].slice(1)) && !new URLSearchParams(location.search).has("from")) {
  location.replace(`?from=${Math.max(1, Number(linked[1]) - 500)}${linked[0]}`);
}

// What was searched for is marked where it is found; no element changes.
const searched = new URLSearchParams(location.search).get("q")?.trim().toLowerCase();
if (searched && lines && "highlights" in CSS) {
  const found = new Highlight();
  const walker = document.createTreeWalker(lines, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = (node.nodeValue ?? "").toLowerCase();
    for (let at = text.indexOf(searched); at >= 0; at = text.indexOf(searched, at + searched.length)) {
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + searched.length);
      found.add(range);
    }
  }
  CSS.highlights.set("found", found);
}

// ---- what comes ----
/** @param {string} html @param {string} last */
function append(html, last) {
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  lines.querySelector(".log-empty")?.remove();
  const added = [...fresh.content.children].filter((line) => !byId(line.id));
  unseen += added.length;
  let chunk = lines.lastElementChild;
  for (const line of added) {
    if (!chunk || chunk.childElementCount >= CHUNK) {
      chunk?.previousElementSibling?.classList.add("far");
      chunk = document.createElement("div");
      chunk.className = "chunk";
      lines.append(chunk);
    }
    chunk.append(line);
  }
  while (lines.childElementCount > MOST / CHUNK && isAtEnd()) lines.firstElementChild?.remove();
  const first = /** @type {HTMLElement | null} */ (lines.querySelector(".l"))?.dataset.n ?? last;
  const range = byId("log-range");
  byId("lq")?.setAttribute("placeholder", `Search ${number.format(Number(last))} lines`);
  if (range) range.textContent = `lines ${number.format(Number(first))} – ${number.format(Number(last))} of ${number.format(Number(last))}`;
  showState();
}

/** @param {string} id @param {string} html */
function put(id, html) {
  const place = byId(id);
  if (!place || place.contains(document.activeElement)) return;
  place.innerHTML = html;
  place.dispatchEvent(new Event("fresh", { bubbles: true }));
}

async function renewDetails() {
  const response = await fetch(location.href, { headers: { Fragment: "details" } }).catch(() => null);
  if (response?.ok) put("job-details", await response.text());
}

// The stream of the page is opened by hublet.js, and again after it was away: then after the last line.
document.addEventListener("stream", (event) => {
  const source = /** @type {EventSource} */ (/** @type {CustomEvent} */ (event).detail);
  source.addEventListener("lines", (each) => {
    append(each.data, each.lastEventId);
    const address = new URL(document.body.dataset.live ?? "", location.href);
    address.searchParams.set("after", each.lastEventId);
    document.body.dataset.live = address.pathname + address.search;
  });
  source.addEventListener("changed", renewDetails);
  source.addEventListener("plots", (each) => put("job-plots", each.data));
  // A browser comes back by itself after a stream that broke, but not after an answer that says no.
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) setTimeout(() => document.dispatchEvent(new CustomEvent("listen")), 3000);
  });
});

// How long it runs is counted here.
setInterval(() => {
  for (const figure of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-since]"))) {
    const seconds = Math.max(0, Math.floor((Date.now() - Date.parse(figure.dataset.since ?? "")) / 1000));
    const [minutes, hours] = [Math.floor(seconds / 60), Math.floor(seconds / 3600)];
    figure.textContent = hours ? `${hours} h ${minutes % 60} min` : minutes ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
  }
}, 1000);
