"use strict";
// Rows of pairs are sorted by the head that is pressed, and back by pressing again.
(() => {
  for (const list of document.querySelectorAll(".pairs")) {
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
    const up = head.getAttribute("aria-sort") !== "ascending";
    const column = [...head.parentElement.children].indexOf(head);
    const value = (row) => row.dataset[head.dataset.sort] ?? row.querySelector("summary").children[column].textContent;
    const rows = [...list.querySelectorAll(".pair")].sort((one, other) => {
      const [first, second] = [value(one), value(other)];
      const apart = Number(first) - Number(second);
      const order = Number.isNaN(apart) ? first.localeCompare(second, undefined, { numeric: true }) : apart;
      return up ? order : -order;
    });
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    list.append(...rows);
  }
})();
