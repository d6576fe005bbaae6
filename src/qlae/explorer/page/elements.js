// Small tools for elements: making them, waiting, telling.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});

  const find = (id) => document.getElementById(id);

  // make("button", { type: "button", class: "x", onclick, "aria-label": … }, child, …)
  function make(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (name.startsWith("--")) element.style.setProperty(name, value);
      else element.setAttribute(name === "class" ? "class" : name, value === true ? "" : value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }

  // call once after the last of several calls
  function settled(wait, action) {
    let timer = 0;
    return (...values) => {
      clearTimeout(timer);
      timer = setTimeout(() => action(...values), wait);
    };
  }

  let hiding = 0;
  function toast(text, bad = false) {
    const box = find("toast");
    box.textContent = text;
    box.classList.toggle("bad", bad);
    box.hidden = false;
    clearTimeout(hiding);
    hiding = setTimeout(() => (box.hidden = true), bad ? 8000 : 2500);
  }

  const fail = (error) => {
    if (error.name !== "AbortError") toast(error.message, true);
  };

  // a picture that can be clicked
  function tile(properties, picture) {
    const canvas = make("canvas", { "aria-hidden": "true" });
    if (picture) qlae.pixels.draw(canvas, picture);
    const button = make("button", { type: "button", ...properties, class: `tile ${properties.class || ""}` }, canvas);
    button.canvas = canvas;
    return button;
  }

  const ICONS = {
    play: "M5 3.5v9l7.5-4.5z",
    find: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.3 10.3l3.4 3.4",
    name: "M2.5 13.5l.7-3.2 7.6-7.6 2.5 2.5-7.6 7.6zM9.3 4.2l2.5 2.5",
  };
  function icon(name) {
    const [svg, path] = ["svg", "path"].map((tag) => document.createElementNS("http://www.w3.org/2000/svg", tag));
    svg.setAttribute("viewBox", "0 0 16 16");
    svg.setAttribute("class", "icon");
    svg.setAttribute("aria-hidden", "true");
    path.setAttribute("d", ICONS[name]);
    svg.append(path);
    return svg;
  }

  // arrow keys go through the buttons of a group, of which only one is a stop of the tab key
  function roving(group, selector, columns) {
    const all = () => [...group.querySelectorAll(selector)];
    group.addEventListener("keydown", (event) => {
      const items = all();
      const at = items.indexOf(document.activeElement);
      if (at < 0) return;
      const wide = columns ? columns() : 1;
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -wide, ArrowDown: wide, Home: -at, End: items.length - 1 - at };
      if (!(event.key in step)) return;
      const next = items[at + step[event.key]];
      event.preventDefault();
      event.stopPropagation();
      if (next) next.focus();
    });
    group.addEventListener("focusin", (event) => {
      if (event.target.matches(selector)) all().forEach((item) => (item.tabIndex = item === event.target ? 0 : -1));
    });
    qlae.rove(group, selector);
  }

  // after the buttons of such a group were made anew
  qlae.rove = (group, selector) => {
    const items = [...group.querySelectorAll(selector)];
    const first = items.find((item) => item.getAttribute("aria-pressed") === "true") || items[0];
    items.forEach((item) => (item.tabIndex = item === first ? 0 : -1));
  };

  qlae.calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
  Object.assign(qlae, { find, make, settled, toast, fail, tile, icon, roving });
})();
