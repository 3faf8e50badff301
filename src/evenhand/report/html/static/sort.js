"use strict";
// Tables whose heads are buttons are sorted by the column that is pressed, and back by pressing again.
(() => {
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sort(table, heads, place));
    });
  }

  function sort(table, heads, place) {
    const up = heads[place].getAttribute("aria-sort") !== "ascending";
    const value = (row) => row.cells[place].dataset.value ?? row.cells[place].textContent;
    const rows = [...table.tBodies[0].rows].sort((one, other) => {
      const [first, second] = [value(one), value(other)];
      const apart = Number(first) - Number(second);
      const order = Number.isNaN(apart) ? first.localeCompare(second) : apart;
      return up ? order : -order;
    });
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[place].setAttribute("aria-sort", up ? "ascending" : "descending");
    table.tBodies[0].append(...rows);
  }
})();
