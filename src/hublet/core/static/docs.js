// The filter of the reference page. Without this file the page shows everything.
"use strict";

const box = document.getElementById("search-box");
const nothing = document.getElementById("nothing-found");
const entries = [...document.querySelectorAll("[data-find]")].map((element) => ({
  element,
  text: element.dataset.find.toLowerCase(),
}));
const groups = [...document.querySelectorAll("[data-group]")];

function filter() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const { element, text } of entries) {
    element.hidden = !words.every((word) => text.includes(word));
  }
  for (const group of groups) {
    group.hidden = !group.querySelector("[data-find]:not([hidden])");
  }
  nothing.textContent = groups.every((group) => group.hidden) ? "Nothing found." : "";
}

document.addEventListener("keydown", (event) => {
  const isKey = event.key === "/" && !event.ctrlKey && !event.metaKey && document.activeElement !== box;
  if (isKey && localStorage.getItem("keys") !== "off") {
    event.preventDefault();
    box.focus();
  }
  if (event.key === "Escape" && document.activeElement === box) {
    box.value = "";
    filter();
  }
});

box.addEventListener("input", filter);
box.parentElement.hidden = false;
// A reload may keep what was typed.
filter();
