"use strict";
// Colours, and the search among units. All that it finds is on the page without it.
(() => {
  const root = document.documentElement;
  const theme = document.getElementById("theme");
  theme.parentElement.hidden = false;
  theme.addEventListener("change", () => {
    if (theme.value === "auto") root.removeAttribute("data-theme");
    else root.setAttribute("data-theme", theme.value);
  });

  const tools = document.getElementById("tools");
  if (!tools) return;
  const count = document.getElementById("count");
  const search = document.getElementById("search");
  const filters = [...tools.querySelectorAll("select")];
  const units = [...document.querySelectorAll(".unit")].map((one) => [one, JSON.parse(one.dataset.facets)]);
  const number = new Intl.NumberFormat(root.lang);
  const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => number.format(values[name]));

  function choose() {
    const wanted = filters.filter((one) => one.value !== "").map((one) => [one.name, one.value]);
    const text = search.value.trim().toLowerCase();
    let shown = 0;
    for (const [unit, facets] of units) {
      const fits = wanted.every(([name, value]) => facets[name].includes(value))
        && (!text || unit.textContent.toLowerCase().includes(text));
      unit.hidden = !fits;
      shown += fits;
    }
    count.textContent = shown ? fill(count.dataset.count, { shown, total: units.length }) : count.dataset.none;
  }

  let timer = 0;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(choose, 120);
  });
  tools.addEventListener("submit", (event) => event.preventDefault());
  tools.addEventListener("reset", () => setTimeout(choose));
  filters.forEach((one) => one.addEventListener("change", choose));
  tools.hidden = false;
  choose();
})();
