"use strict";
// The one script of a report: colours, and the table of units with its drill-downs. Every text goes
// into the page as text, never as markup.
(() => {
  const root = document.documentElement;
  const theme = document.getElementById("theme");
  theme.parentElement.hidden = false;
  theme.addEventListener("change", () => {
    if (theme.value === "auto") root.removeAttribute("data-theme");
    else root.setAttribute("data-theme", theme.value);
  });

  const holder = document.getElementById("data");
  if (!holder) return;
  const { rows: perPage, words, glosses, strings, units } = JSON.parse(holder.textContent);
  const number = new Intl.NumberFormat(root.lang);
  const filled = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => number.format(values[name]));

  function element(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  // A text of the table; one that was cut is [head, characters left out, tail].
  function shown(place) {
    const text = strings[place];
    if (typeof text === "string") return [text];
    const gap = `… ${filled(words.gap, { n: text[1] })} …`;
    return [text[0], element("span", { class: "gap" }, gap), text[2]];
  }

  function label(text, note) {
    if (!text && !note) return [];
    return [element("h4", {}, text, ...(note ? [element("small", {}, note)] : []))];
  }

  function segment(one) {
    if (typeof one === "number") return shown(one);
    const [place, numbers, title] = one;
    const attributes = { "data-n": strings[numbers], title: strings[title] };
    return [element("mark", attributes, ...shown(place))];
  }

  function cell(one, head) {
    const [place, tone] = typeof one === "number" ? [one, null] : one;
    const name = tone === null ? "" : strings[tone];
    return element("td", { class: name, "data-label": strings[head], dir: "auto" }, strings[place]);
  }

  // In the order of KINDS in pack.py; the same elements as _unit.html makes.
  const draw = [
    (name, note, part, segments) =>
      element(
        "div", { class: `text ${strings[part]}` }, ...label(strings[name], strings[note]),
        element("p", { dir: "auto" }, ...segments.flatMap(segment))),
    (columns) =>
      element(
        "div", { class: "columns" }, ...columns.map((one) => element("div", {}, ...one.map(block)))),
    (name, head, rows) =>
      element(
        "div", { class: "table" }, ...label(strings[name]),
        element(
          "table", {},
          element("thead", {}, element(
            "tr", {}, ...head.map((one) => element("th", { scope: "col" }, strings[one])))),
          element("tbody", {}, ...rows.map(
            (row) => element("tr", {}, ...row.map((one, place) => cell(one, head[place]))))))),
    (name, tone, items) =>
      element(
        "div", { class: "items" }, ...label(strings[name]),
        element("ul", {}, ...items.map(([text, title]) => element(
          "li", { class: strings[tone], title: strings[title], dir: "auto" }, strings[text])))),
    (text, tone) => element("p", { class: `notice ${strings[tone]}`, dir: "auto" }, strings[text]),
    (name, blocks) =>
      element("details", {}, element("summary", {}, strings[name]), ...blocks.map(block)),
    (name, blocks) =>
      element("section", {}, element("h3", {}, strings[name]), ...blocks.map(block)),
  ];
  const block = ([kind, ...rest]) => draw[kind](...rest);

  const [ID, WHO, RESULT, TEXT, CHIPS, FACETS, BLOCKS] = [0, 1, 2, 3, 4, 5, 6];
  const body = document.getElementById("rows");
  const count = document.getElementById("count");
  const search = document.getElementById("search");
  const tools = document.getElementById("tools");
  const filters = [...tools.querySelectorAll("select")];
  const previous = document.getElementById("previous");
  const next = document.getElementById("next");
  const hasWho = units.some((one) => strings[one[WHO]]);
  const columns = [
    [words.unit, ID], ...(hasWho ? [[words.who, WHO]] : []), [words.text, TEXT],
    [words.result, RESULT], [words.marks, null]];
  const heads = columns.map(([name]) => name);
  const collator = new Intl.Collator(root.lang, { numeric: true });
  let sorted = null; // [column, 1 or -1]; the order of the run where nobody sorted
  const head = document.getElementById("heads");
  head.append(...columns.map(([name, place]) => {
    const cell = element("th", { scope: "col" });
    if (place === null) cell.append(name);
    else {
      const button = element("button", { type: "button", class: "sort" }, name);
      button.addEventListener("click", () => sort(place, cell));
      cell.append(button);
    }
    return cell;
  }));
  function sort(place, cell) {
    sorted = [place, sorted && sorted[0] === place ? -sorted[1] : 1];
    for (const other of head.children) other.removeAttribute("aria-sort");
    cell.setAttribute("aria-sort", sorted[1] > 0 ? "ascending" : "descending");
    choose();
  }
  let found = units;
  let page = 0;

  // What a search looks through: a unit's line and its own texts, not the prompts and replies.
  let haystacks = null;
  function haystack(unit) {
    const parts = [strings[unit[ID]], strings[unit[WHO]], strings[unit[RESULT]]];
    const whole = (place) => (typeof strings[place] === "string" ? strings[place] : strings[place].join(" "));
    const take = ([kind, ...rest]) => {
      if (kind === 0 && strings[rest[2]] === "own")
        parts.push(rest[3].map((one) => whole(typeof one === "number" ? one : one[0])).join(""));
      else if (kind === 1) rest[0].forEach((column) => column.forEach(take));
      else if (kind === 2)
        rest[2].forEach((row) => row.forEach((one) => parts.push(whole(typeof one === "number" ? one : one[0]))));
      else if (kind === 3) rest[2].forEach((item) => parts.push(strings[item[0]]));
      else if (kind === 4) parts.push(strings[rest[0]]);
      else if (kind > 4) rest[1].forEach(take);
    };
    JSON.parse(unit[BLOCKS]).forEach(take);
    return parts.join("\n").toLowerCase();
  }

  function choose() {
    const wanted = filters
      .filter((one) => one.value !== "")
      .map((one) => [Number(one.dataset.facet), Number(one.value)]);
    const text = search.value.trim().toLowerCase();
    if (text && !haystacks) haystacks = new Map(units.map((one) => [one, haystack(one)]));
    found = units.filter(
      (one) => wanted.every(([facet, value]) => one[FACETS][facet].includes(value))
        && (!text || haystacks.get(one).includes(text)));
    if (sorted) {
      const [place, way] = sorted;
      found.sort((one, two) => way * collator.compare(strings[one[place]], strings[two[place]]));
    }
    page = 0;
    show();
  }

  function row(unit) {
    const open = element("button", { type: "button", class: "open", "aria-expanded": "false" }, strings[unit[ID]]);
    const chips = unit[CHIPS].flatMap((one) => [
      element("span", { class: "chip", title: glosses[strings[one]] }, strings[one]), " "]);
    const cells = [
      element("td", { "data-label": words.unit, dir: "auto" }, open),
      ...(hasWho ? [element("td", { "data-label": words.who, dir: "auto" }, strings[unit[WHO]])] : []),
      element("td", { class: "soft", "data-label": words.text, dir: "auto" }, strings[unit[TEXT]]),
      element("td", { "data-label": words.result, dir: "auto" }, strings[unit[RESULT]]),
      element("td", { "data-label": words.marks }, ...chips),
    ];
    const made = element("tr", { class: "row" }, ...cells);
    made.unit = unit;
    return made;
  }

  function show() {
    const pages = Math.max(1, Math.ceil(found.length / perPage));
    page = Math.min(page, pages - 1);
    body.replaceChildren(...found.slice(page * perPage, (page + 1) * perPage).map(row));
    count.textContent = found.length
      ? filled(words.count, { shown: found.length, total: units.length })
      : words.none;
    document.getElementById("page").textContent = filled(words.page, { page: page + 1, pages });
    document.getElementById("pager").hidden = pages === 1;
    previous.disabled = page === 0;
    next.disabled = page === pages - 1;
  }

  function toggle(line) {
    const open = line.querySelector("button.open");
    const is = open.getAttribute("aria-expanded") === "true";
    open.setAttribute("aria-expanded", String(!is));
    if (is) {
      line.nextElementSibling.remove();
      return;
    }
    const drill = element("div", { class: "drill" }, ...JSON.parse(line.unit[BLOCKS]).map(block));
    const td = element("td", { colspan: heads.length }, drill);
    line.after(element("tr", { class: "opened" }, td));
  }

  body.addEventListener("click", (event) => {
    const line = event.target.closest("tr.row");
    if (line && String(getSelection()) === "") toggle(line);
  });
  body.addEventListener("keydown", (event) => {
    const opened = event.target.closest("tr.opened");
    if (event.key === "Escape") {
      const line = opened ? opened.previousElementSibling : event.target.closest("tr.row");
      const open = line.querySelector("button.open");
      if (open.getAttribute("aria-expanded") === "true") toggle(line);
      open.focus();
      return;
    }
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (!(event.key in steps) || !event.target.matches("button.open")) return;
    event.preventDefault();
    const buttons = [...body.querySelectorAll("button.open")];
    buttons[buttons.indexOf(event.target) + steps[event.key]]?.focus();
  });
  const turn = (by) => {
    page += by;
    show();
    document.getElementById("units").scrollIntoView();
    body.querySelector("button.open")?.focus({ preventScroll: true });
  };
  previous.addEventListener("click", () => turn(-1));
  next.addEventListener("click", () => turn(1));
  let timer = 0;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(choose, 120);
  });
  tools.addEventListener("submit", (event) => event.preventDefault());
  tools.addEventListener("reset", () => setTimeout(choose));
  filters.forEach((one) => one.addEventListener("change", choose));
  document.getElementById("browser").hidden = false;
  show();
})();
