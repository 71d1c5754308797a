"use strict";
// Filters and sorts what is on the page. Everything is on it without this too.
document.documentElement.classList.add("live");

function said(item) {
  if (!item.dataset.find) item.dataset.find = item.textContent.toLowerCase();
  return item.dataset.find;
}

for (const table of document.querySelectorAll("section.table")) {
  const body = table.querySelector("tbody");
  const find = table.querySelector(".find");
  if (find) find.addEventListener("input", () => {
    const words = find.value.toLowerCase().split(/\s+/);
    for (const row of body.rows) row.hidden = !words.every((word) => said(row).includes(word));
  });
  for (const button of table.querySelectorAll("th button")) button.addEventListener("click", () => sort(body, button));
}

function sort(body, button) {
  const head = button.parentElement;
  const number = head.classList.contains("number");
  const before = head.getAttribute("aria-sort");
  const down = before ? before === "ascending" : number;
  for (const each of head.parentElement.cells) each.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const key = (row) => row.cells[head.cellIndex].dataset.sort ?? row.cells[head.cellIndex].textContent.toLowerCase();
  const order = (a, b) => (isNaN(a) || isNaN(b) ? (a < b ? -1 : a > b ? 1 : 0) : a - b);
  const rows = [...body.rows].sort((a, b) => order(key(a), key(b)) * (down ? -1 : 1));
  body.append(...rows);
}

const samples = document.querySelector("section.samples");
if (samples) {
  const cards = [...samples.querySelectorAll("article")];
  const kind = samples.querySelector("select");
  const find = samples.querySelector(".find");
  const count = samples.querySelector("output");
  const show = (picked) => {
    const words = find.value.toLowerCase().split(/\s+/);
    for (const card of cards) {
      const fits = picked ? card.dataset.name === picked : !kind.value || card.dataset.kind === kind.value;
      card.hidden = !(fits && words.every((word) => said(card).includes(word)));
    }
    count.textContent = `${cards.filter((card) => !card.hidden).length} of ${cards.length}`;
  };
  find.addEventListener("input", () => show());
  kind.addEventListener("change", () => show());
  for (const button of document.querySelectorAll("[data-pick]")) button.addEventListener("click", () => {
    const [first, name] = button.dataset.pick.split(":");
    kind.value = first;
    find.value = name;
    show(button.dataset.pick);
    samples.scrollIntoView();
  });
}
