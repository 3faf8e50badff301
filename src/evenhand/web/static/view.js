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
    tell();
    button.addEventListener("click", () => {
      root.dataset.theme = dark() ? "light" : "dark";
      kept("theme", root.dataset.theme);
      tell();
    });
  }

  const read = async (answer) =>
    new DOMParser().parseFromString(await answer.text(), "text/html");

  // The server writes the page. While something on it is not ready, it is read again, and what
  // differs is changed in place: what the reader looks at stays where it is, what is open stays
  // open, and what has the focus keeps it. Parts with an id are matched by it.
  function morph(old, next) {
    if (old.isEqualNode(next)) return;
    if (old.nodeType !== Node.ELEMENT_NODE) {
      old.data = next.data;
      return;
    }
    for (const name of old.getAttributeNames())
      if (name !== "open" && !next.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of next.attributes)
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    let at = old.firstChild;
    const drop = (end) => {
      while (at && at !== end) {
        const gone = at;
        at = at.nextSibling;
        gone.remove();
      }
    };
    const kept = new Set([...next.children].map((one) => one.id));
    for (const node of [...next.childNodes]) {
      while (at?.id && !kept.has(at.id)) drop(at.nextSibling);
      const isLike = at && !at.id && !node.id && at.nodeName === node.nodeName;
      const same = node.id ? [...old.children].find((one) => one.id === node.id) : isLike && at;
      if (same) {
        if (same === at) at = at.nextSibling;
        else old.insertBefore(same, at);
        morph(same, node);
      } else old.insertBefore(node, at);
    }
    drop(null);
  }

  async function follow(main) {
    for (;;) {
      const waits = main.querySelector('[data-ready="no"]');
      if (!waits && !main.querySelector('[data-live="yes"]')) return;
      await new Promise((go) => setTimeout(go, waits ? 500 : 2000));
      try {
        const answer = await fetch(location.href);
        if ([409, 503].includes(answer.status)) continue; // the store is not to be had just now
        morph(main, (await read(answer)).getElementById("main"));
      } catch {
        // the server is stopped: look again
      }
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
    follow(document.getElementById("main"));
    // A search that found nothing in its part of a long run goes on by itself.
    const on = document.querySelector("[data-search-on]");
    if (on) location.replace(on.dataset.searchOn);
  });
})();
