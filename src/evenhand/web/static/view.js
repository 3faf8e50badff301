// A little script for what a page cannot do without: the theme, live pages, and keys that follow
// links. Every page works without it.
"use strict";
(() => {
  const root = document.documentElement;
  const kept = (key, value) => {
    try {
      return value === undefined ? localStorage.getItem(key) : localStorage.setItem(key, value);
    } catch {
      return null; // storage may be forbidden
    }
  };
  const theme = kept("theme");
  if (theme === "dark" || theme === "light") root.dataset.theme = theme;

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
      kept("theme", root.dataset.theme);
      tell();
    });
  }

  const read = async (answer) =>
    new DOMParser().parseFromString(await answer.text(), "text/html");

  // The server writes the page: read it again, and take the parts that changed. What the reader
  // opened stays open, and what has the focus keeps it.
  const sent = new Map();
  function renew(page, id) {
    const old = document.getElementById(id);
    const part = page.getElementById(id);
    if (!old || !part || sent.get(id) === part.outerHTML) return;
    sent.set(id, part.outerHTML);
    const inside = (one) => [...one.querySelectorAll("a, button, summary")];
    const focused = inside(old).indexOf(document.activeElement);
    const open = [...old.querySelectorAll("details")].map((one) => one.open);
    part.querySelectorAll("details").forEach((one, i) => (one.open = open[i] ?? one.open));
    old.replaceWith(part);
    if (focused >= 0) inside(part)[focused]?.focus({ preventScroll: true });
  }

  async function follow() {
    for (;;) {
      await new Promise((go) => setTimeout(go, 2000));
      let page;
      try {
        const answer = await fetch(location.pathname + location.search);
        if (!answer.ok) continue;
        page = await read(answer);
      } catch {
        continue; // the server is stopped, or busy: look again
      }
      // At its end, or at its beginning, a page has other parts.
      if (page.getElementById("live")?.dataset.live !== "yes") return location.reload();
      for (const id of ["live", "standing", "figures"]) renew(page, id);
    }
  }

  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input:not([type=checkbox]), select, textarea");
    if (typing || event.ctrlKey || event.altKey || event.metaKey) return;
    document.querySelector(`a[accesskey="${CSS.escape(event.key)}"]`)?.click();
  });

  document.addEventListener("DOMContentLoaded", () => {
    const theme = document.getElementById("theme");
    if (theme) switchTheme(theme);
    const live = document.getElementById("live")?.dataset.live;
    const figures = document.getElementById("figures");
    if (live === "yes") follow();
    else if (live === "wait" || figures?.dataset.ready === "no") {
      setTimeout(() => location.reload(), 3000);
    }
    // A search that found nothing in its part of a long run goes on by itself.
    const on = document.querySelector("[data-search-on]");
    if (on) location.replace(on.dataset.searchOn);
  });
})();
