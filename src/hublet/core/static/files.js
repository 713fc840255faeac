// Pages of files: last commits that come later, the filter of a menu, marked lines.
// @ts-check

/** Replace an element by the part of this page that has its name. @param {Element} place @param {string} url */
async function load(place, url) {
  const response = await fetch(url, { headers: { Fragment: place.id } });
  if (response.ok) place.outerHTML = await response.text();
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
