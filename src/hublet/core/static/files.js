// Pages of files: last commits and colours that come later, the filter of a menu, marked lines.
// @ts-check

/** Replace an element by the part of this page that has its name. @param {Element} place @param {string} url */
async function load(place, url) {
  const response = await fetch(url, { headers: { Fragment: place.id } });
  if (!response.ok) return;
  const html = await response.text();
  if (place.id === "lines") colour(place, html);
  else place.outerHTML = html;
}

/** Put colours into lines. Rows stay, and with them marks and focus; a selection is waited for. @param {Element} place @param {string} html */
function colour(place, html) {
  const selection = getSelection();
  if (selection?.type === "Range" && selection.containsNode(place, true)) {
    document.addEventListener("selectionchange", () => colour(place, html), { once: true });
    return;
  }
  const coloured = document.createElement("template");
  coloured.innerHTML = html;
  const cells = coloured.content.querySelectorAll(".code");
  place.querySelectorAll(".code").forEach((cell, at) => {
    // The file may have changed since.
    if (cells[at]?.textContent === cell.textContent) cell.replaceWith(cells[at]);
  });
  place.removeAttribute("data-later");
}

for (const place of document.querySelectorAll("[data-later]")) load(place, location.href);

for (const field of document.querySelectorAll("input[data-filter]")) {
  field.addEventListener("input", () => {
    const wanted = /** @type {HTMLInputElement} */ (field).value.toLowerCase();
    const list = document.getElementById(/** @type {HTMLElement} */ (field).dataset.filter ?? "");
    for (const link of list?.querySelectorAll("a") ?? []) {
      link.hidden = !link.innerText.toLowerCase().includes(wanted);
    }
  });
}

// `#L3-L9` marks several lines; shift and a click on a number chooses them.
function markLines() {
  for (const line of document.querySelectorAll(".lines tr.at")) line.classList.remove("at");
  const range = /^#L(\d+)-L(\d+)$/.exec(location.hash);
  if (!range) return;
  const [first, last] = [Number(range[1]), Number(range[2])].sort((a, b) => a - b);
  for (let number = first; number <= last && number - first < 10000; number++) {
    document.getElementById(`L${number}`)?.classList.add("at");
  }
  document.getElementById(`L${first}`)?.scrollIntoView();
}
addEventListener("hashchange", markLines);
markLines();
document.addEventListener("click", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  const number = target.closest(".lines .ln a")?.textContent;
  const from = /^#L(\d+)/.exec(location.hash)?.[1];
  if (!number || !from || !event.shiftKey) return;
  event.preventDefault();
  location.hash = `L${Math.min(Number(from), Number(number))}-L${Math.max(Number(from), Number(number))}`;
});

document.addEventListener("click", async (event) => {
  const button = /** @type {HTMLElement} */ (event.target).closest("[data-copy-from]");
  if (!(button instanceof HTMLElement)) return;
  const response = await fetch(button.dataset.copyFrom ?? "");
  await navigator.clipboard.writeText(await response.text());
  button.setAttribute("aria-label", "Copied");
  button.classList.add("copied");
});

// A file of a long diff is loaded when it is opened.
document.addEventListener("toggle", async (event) => {
  const file = /** @type {HTMLDetailsElement} */ (event.target);
  const url = file.dataset?.load;
  if (!url || !file.open) return;
  delete file.dataset.load;
  const response = await fetch(url, { headers: { Fragment: "one-file" } });
  const lines = file.querySelector(".scroll");
  if (response.ok && lines) lines.outerHTML = await response.text();
}, true);
