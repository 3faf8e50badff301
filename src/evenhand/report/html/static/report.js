"use strict";
// Colours, the search among units and keys to go through them, and what many units open to, which is compressed.
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
  const units = [...document.querySelectorAll(".unit")].map((one) => [one, one.dataset.choices.split(" ")]);
  const number = new Intl.NumberFormat(root.lang);
  const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => number.format(values[name]));

  const chips = document.getElementById("chips"); // what a figure led here by

  function choose() {
    const wanted = filters.filter((one) => one.value !== "").map((one) => one.value);
    wanted.push(...[...chips.children].map((one) => one.dataset.number));
    chips.hidden = !chips.children.length;
    const text = search.value.trim().toLowerCase();
    let shown = 0;
    for (const [unit, choices] of units) {
      const fits = wanted.every((number) => choices.includes(number))
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
  tools.addEventListener("reset", () => {
    chips.replaceChildren();
    setTimeout(choose);
  });
  function addChip(number) {
    const option = tools.querySelector(`option[value="${number}"]`);
    const button = document.createElement("button");
    button.type = "button";
    button.className = "chip";
    button.title = chips.dataset.remove;
    button.textContent = `${option.closest("label").firstChild.data.trim()}: ${option.textContent} ×`;
    const chip = document.createElement("li");
    chip.dataset.number = number;
    chip.append(button);
    chips.append(chip);
    button.addEventListener("click", () => {
      chip.remove();
      choose();
      (chips.querySelector("button") ?? search).focus();
    });
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-choices]");
    if (!link) return;
    tools.reset();
    link.dataset.choices.split(" ").filter(Boolean).forEach(addChip);
    choose();
  });
  filters.forEach((one) => one.addEventListener("change", choose));
  tools.hidden = false;
  choose();

  // A link to a unit opens it, whatever is filtered.
  function open() {
    const unit = document.getElementById(location.hash.slice(1));
    if (!unit?.matches(".unit")) return;
    clearTimeout(timer);
    choose();
    if (unit.hidden) tools.reset();
    unit.hidden = false;
    unit.open = true;
    unit.scrollIntoView();
    unit.querySelector("summary").focus({ preventScroll: true });
  }
  document.addEventListener("click", (event) => {
    if (/^#u\d+$/.test(event.target.closest("a")?.getAttribute("href"))) setTimeout(open);
  });
  open();

  // Keys open the next unit, the previous one, and the next that got worse, the worst first.
  let here = null;
  let worst = null;
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input:not([type=checkbox]), select, textarea");
    if (!"jkw".includes(event.key) || typing || event.ctrlKey || event.altKey || event.metaKey) return;
    let list = [...document.querySelectorAll(".unit:not([hidden])")];
    let from = document.activeElement.closest(".unit") ?? here;
    if (event.key === "w") {
      list = list.filter((one) => one.dataset.worse).sort((one, other) => one.dataset.worse - other.dataset.worse);
      from = worst;
    }
    const to = list[list.indexOf(from) + (event.key === "k" ? -1 : 1)];
    if (!to) return;
    if (here) here.open = false;
    here = to;
    if (event.key === "w") worst = to;
    to.open = true;
    to.querySelector("summary").focus({ preventScroll: true });
    to.scrollIntoView();
  });

  async function unpack(packed) {
    const bytes = Uint8Array.from(atob(packed.textContent), (one) => one.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const page = document.createElement("template");
    page.innerHTML = await new Response(stream).text(); // escaped when it was written, as all of this page
    [...page.content.children].forEach((drill, place) => units[place][0].append(drill));
    packed.remove();
    choose();
  }
  const packed = document.getElementById("packed");
  if (packed) unpack(packed);
})();
