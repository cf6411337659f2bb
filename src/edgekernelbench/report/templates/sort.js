"use strict";

/* Columns of a finished table sort by what their cells are worth; cells without a value come last. */

function worth(row, column) {
  const value = row.cells[column].dataset.value;
  if (value === undefined || value === "") return null;
  return value.trim() !== "" && !Number.isNaN(Number(value)) ? Number(value) : value;
}

function sortRows(table, heading, column) {
  const sorted = heading.getAttribute("aria-sort");
  const down = sorted ? sorted === "ascending" : heading.dataset.first === "down";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  const rows = [...table.tBodies[0].rows].map((row) => ({ row, value: worth(row, column) }));
  rows.sort((a, b) => {
    if (a.value === null || b.value === null) return (a.value === null) - (b.value === null);
    return (a.value > b.value ? 1 : a.value < b.value ? -1 : 0) * (down ? -1 : 1);
  });
  table.tBodies[0].replaceChildren(...rows.map(({ row }) => row));
}

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sortRows(table, heading, column));
    heading.replaceChildren(button);
  });
  table.tHead.rows[0].cells[0].setAttribute("aria-sort", "ascending");
}
document.documentElement.dataset.ready = "yes";
