"use strict";
// Rows of pairs and of the matrix are sorted by the head that is pressed, and back by pressing again.
(() => {
  const places = new Map([...document.querySelectorAll(".questions tbody > tr")].map((row, place) => [row, place]));
  for (const list of document.querySelectorAll(".pairs, .questions table")) {
    const heads = [...list.querySelectorAll("[data-sort]")];
    for (const head of heads) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sort(list, heads, head));
    }
  }

  function sort(list, heads, head) {
    const attribute = list.tBodies ? "aria-sort" : "data-order"; // of tables alone it is known
    const now = head.getAttribute(attribute);
    const up = head.dataset.sort === "descending" ? now === "descending" : now !== "ascending";
    const column = [...head.parentElement.children].indexOf(head);
    const text = (row) => row.dataset[head.dataset.sort] ?? row.querySelector("summary").children[column].textContent;
    // Cells of the matrix are numbers, and its first column is the order of the file.
    const number = (text) => Number.parseFloat(text.replace(",", ".").replace("−", "-"));
    const key = (row) => column ? number(row.cells[column].textContent) : places.get(row);
    const value = list.tBodies ? key : text;
    const rows = [...(list.tBodies?.[0].rows ?? list.querySelectorAll(".pair"))].sort((one, other) => {
      const [first, second] = [value(one), value(other)];
      const apart = Number(first) - Number(second);
      const isWithout = [first, second].map(Number.isNaN);
      if (isWithout.includes(true)) return isWithout[0] - isWithout[1]; // last, either way
      const order = Number.isNaN(apart) ? first.localeCompare(second, undefined, { numeric: true }) : apart;
      return up ? order : -order;
    });
    heads.forEach((other) => other.removeAttribute(attribute));
    head.setAttribute(attribute, up ? "ascending" : "descending");
    (list.tBodies?.[0] ?? list).append(...rows);
  }
})();
