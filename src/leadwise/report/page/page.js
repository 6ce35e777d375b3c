"use strict";

// The page is complete without this: here it learns to sort, to filter and to fold its contents away on a phone.

const words = new Intl.Collator("en-GB", { numeric: true });

function keyOf(row, column) {
  const cell = row.cells[column];
  return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return words.compare(a, b);
}

function sort(table, header) {
  const direction = header.ariaSort === "ascending" ? "descending" : "ascending";
  for (const other of header.parentElement.cells) other.ariaSort = other === header ? direction : "none";
  const rows = [...table.tBodies[0].rows].map((row) => [keyOf(row, header.cellIndex), row]);
  const there = rows.filter(([key]) => key !== "");
  const missing = rows.filter(([key]) => key === ""); // last, whichever way the others go
  const sign = direction === "ascending" ? 1 : -1;
  there.sort(([a], [b]) => sign * compare(a, b));
  table.tBodies[0].append(...[...there, ...missing].map(([, row]) => row));
}

function makeSortable(table) {
  for (const header of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    button.addEventListener("click", () => sort(table, header));
    header.append(button);
    header.ariaSort = "none";
  }
}

function makeFilter(region, table) {
  const label = document.createElement("label");
  const input = document.createElement("input");
  const count = document.createElement("output");
  const rows = [...table.tBodies[0].rows];
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  input.type = "search";
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase().split(/\s+/);
    for (const row of rows) row.hidden = !wanted.every((word) => texts.get(row).includes(word));
    count.value = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
  });
  label.className = "filter";
  label.append("Rows with ", input, " ", count);
  region.before(label);
}

for (const table of document.querySelectorAll("table.data")) {
  const rows = table.tBodies[0].rows.length;
  if (rows > 1) makeSortable(table);
  if (rows > 12) makeFilter(table.parentElement, table);
}

const phone = matchMedia("(max-width: 63.99rem)");
const contents = document.querySelector("#contents");
const fold = () => { contents.open = !phone.matches; };
phone.addEventListener("change", fold);
contents.addEventListener("click", (event) => { if (phone.matches && event.target.closest("a")) contents.open = false; });
fold();
