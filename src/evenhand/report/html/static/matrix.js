"use strict";
// The matrix: the worst rows first, rows by their text and state.
(() => {
  const box = document.querySelector("#matrix .questions");
  if (!box) return;
  const heads = [...box.querySelectorAll("th[data-sort]")];
  heads.at(-1).querySelector("button").click();
  const rows = [...box.querySelectorAll("tbody > tr")];
  const fits = {
    all: () => true,
    different: (row) => "different" in row.dataset,
    failures: (row) => row.querySelector(".no"),
    ...Object.fromEntries(["better", "worse", "same"].map((way) => [way, (row) => row.dataset.way === way])),
  };
  const which = document.getElementById("which");
  const [search, only] = which.elements;
  function choose() {
    const text = search.value.trim().toLowerCase();
    for (const row of rows) {
      row.hidden = !fits[only.value](row) || !row.cells[0].textContent.toLowerCase().includes(text);
    }
  }
  which.addEventListener("input", choose);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-only]");
    if (!link) return;
    search.value = "";
    only.value = link.dataset.only;
    choose();
  });
  which.addEventListener("submit", (event) => event.preventDefault());
  which.hidden = false;
})();
