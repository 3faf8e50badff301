// A little script for what a page cannot do without: the theme, live counts, and actions that
// carry the token. Every page works without it.
"use strict";
(() => {
  const root = document.documentElement;
  const kept = (store, key, value) => {
    try {
      return value === undefined ? window[store].getItem(key) : window[store].setItem(key, value);
    } catch {
      return null; // storage may be forbidden
    }
  };
  const theme = kept("localStorage", "theme");
  if (theme === "dark" || theme === "light") root.dataset.theme = theme;
  // The token comes behind the #, which never leaves the browser.
  const given = /^#token=([\w-]+)$/.exec(location.hash);
  if (given) {
    kept("sessionStorage", "token", given[1]);
    history.replaceState(null, "", location.pathname + location.search);
  }

  const number = new Intl.NumberFormat(root.lang || "en", { maximumFractionDigits: 1 });
  const whole = (value) => number.format(value);
  const money = (value) => {
    if (value === null) return "–";
    const options = { maximumSignificantDigits: 4 };
    return "$" + new Intl.NumberFormat(root.lang || "en", options).format(value);
  };
  const time = (seconds) => {
    if (seconds === null) return "–";
    const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
    return parts.map((part) => String(part).padStart(2, "0")).join(":");
  };

  function switchTheme(button) {
    const dark = () =>
      root.dataset.theme
        ? root.dataset.theme === "dark"
        : matchMedia("(prefers-color-scheme: dark)").matches;
    const tell = () => button.setAttribute("aria-pressed", String(dark()));
    button.hidden = false;
    tell();
    button.addEventListener("click", () => {
      root.dataset.theme = dark() ? "light" : "dark";
      kept("localStorage", "theme", root.dataset.theme);
      tell();
    });
  }

  function show(got) {
    const failed = Object.values(got.failures).reduce((sum, n) => sum + n, 0);
    const shown = {
      ...Object.fromEntries(
        ["planned", "verdicts", "pending", "calls", "reasks", "calls_a_minute"].map((name) => [
          name,
          whole(got[name]),
        ]),
      ),
      failed: whole(failed),
      cost_usd: money(got.cost_usd),
      tokens: `${whole(got.usage.input_tokens)} + ${whole(got.usage.output_tokens)}`,
      seconds_left: time(got.seconds_left),
    };
    for (const cell of document.querySelectorAll("[data-count]")) {
      cell.textContent = shown[cell.dataset.count];
    }
    for (const tile of document.querySelectorAll("div[data-judging]")) {
      tile.hidden = !got.judging;
    }
    const done = document.getElementById("done");
    done.max = Math.max(1, got.planned);
    done.value = got.planned - got.pending;
    const state = document.getElementById("state");
    const { judging, idle, complete } = state.dataset;
    state.textContent = got.judging ? judging : got.pending ? idle : complete;
    state.classList.toggle("live", got.judging);
    showFailures(got.failures);
  }

  function showFailures(found) {
    const box = document.getElementById("failures");
    const now = JSON.stringify(found);
    if (box.dataset.shown === now) return; // a link that has the focus keeps it
    box.dataset.shown = now;
    const glosses = JSON.parse(box.dataset.glosses);
    const made = (name, text, ...inner) => {
      const element = document.createElement(name);
      element.append(text, ...inner);
      return element;
    };
    const rows = Object.entries(found).map(([reason, n]) => {
      const link = made("a", reason);
      link.href = `${box.dataset.units}?reason=${encodeURIComponent(reason)}`;
      const gloss = made("span", glosses[reason] ?? reason);
      gloss.className = "soft";
      const number = made("td", whole(n));
      number.className = "num";
      return made("tr", made("td", link, " ", gloss), number);
    });
    box.querySelector("tbody").replaceChildren(...rows);
    box.querySelector("table").hidden = rows.length === 0;
    box.querySelector("p").hidden = rows.length > 0;
  }

  // Figures are the server's to write: read the page again, and take its section.
  async function renewFigures() {
    const old = document.getElementById("figures");
    const answer = await fetch(location.pathname + location.search);
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const section = page.getElementById("figures");
    if (!section) return;
    const inside = (one) => [...one.querySelectorAll("a, button, summary")];
    const focused = inside(old).indexOf(document.activeElement);
    const open = [...old.querySelectorAll("details")].map((one) => one.open);
    section.querySelectorAll("details").forEach((one, i) => (one.open = open[i] ?? false));
    old.replaceWith(section);
    if (focused >= 0) inside(section)[focused]?.focus({ preventScroll: true });
  }

  async function follow(live) {
    let renewed = Date.now();
    for (;;) {
      await new Promise((go) => setTimeout(go, 2000));
      let got;
      try {
        const answer = await fetch(`/api/runs/${live.dataset.run}/progress`);
        if (!answer.ok) continue;
        got = await answer.json();
      } catch {
        continue; // the server is stopped, or busy: look again
      }
      if (live.dataset.live === "wait") return location.reload();
      show(got);
      if (!got.judging) return location.reload(); // at an end
      const { ready, again } = document.getElementById("figures").dataset;
      if (ready === "yes" && Date.now() - renewed < 1000 * again) continue;
      renewed = Date.now();
      await renewFigures().catch(() => {}); // as above
    }
  }

  async function act(form) {
    const told = form.querySelector("output");
    const token = form.elements.token;
    const button = form.querySelector("button");
    token.value = kept("sessionStorage", "token") || "";
    button.disabled = false;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.disabled = true;
      told.textContent = "…";
      try {
        const headers = { "x-evenhand-token": token.value };
        const answer = await fetch(form.dataset.action, { method: "POST", headers });
        const got = await answer.json();
        told.textContent = answer.ok ? form.dataset.done : `${form.dataset.failed} ${got.error}`;
        if (answer.ok) kept("sessionStorage", "token", token.value);
      } catch {
        told.textContent = form.dataset.failed;
      }
      button.disabled = false;
    });
  }

  document.addEventListener("DOMContentLoaded", () => {
    const theme = document.getElementById("theme");
    if (theme) switchTheme(theme);
    const live = document.getElementById("live");
    if (live && live.dataset.live !== "no") follow(live);
    const figures = document.getElementById("figures");
    if (figures && figures.dataset.ready === "no" && !(live && live.dataset.live !== "no")) {
      setTimeout(() => location.reload(), 3000);
    }
    // A search that found nothing in its part of a long run goes on by itself.
    const on = document.querySelector("[data-search-on]");
    if (on) location.replace(on.dataset.searchOn);
    for (const form of document.querySelectorAll("form[data-action]")) act(form);
  });
})();
