// Small helpers for elements: creating them, debouncing, messages, and keyboard navigation in groups.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const MESSAGE_MS = 2500;
  const ERROR_MS = 8000;

  const find = (id) => document.getElementById(id);

  // make("button", { type: "button", class: "x", onclick, "aria-label": … }, child, …)
  function make(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (name.startsWith("--")) element.style.setProperty(name, value);
      else element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }

  // returns a function that runs the action once, `wait` ms after the last of several calls
  function debounce(wait, action) {
    let timer = 0;
    return (...values) => {
      clearTimeout(timer);
      timer = setTimeout(() => action(...values), wait);
    };
  }

  let hideTimer = 0;
  function showMessage(text, isError = false) {
    const box = find("toast");
    box.textContent = text;
    box.classList.toggle("error", isError);
    box.hidden = false;
    clearTimeout(hideTimer);
    hideTimer = setTimeout(() => (box.hidden = true), isError ? ERROR_MS : MESSAGE_MS);
  }

  function showError(error) {
    if (error.name !== "AbortError") showMessage(error.message, true);
  }

  // an observation that can be clicked
  function makeTile(properties, observation) {
    const picture = qlae.view.makePicture({ "aria-hidden": "true" });
    if (observation) qlae.view.draw(picture, observation);
    const button = make("button", { type: "button", ...properties, class: `tile ${properties.class || ""}` }, picture);
    button.picture = picture;
    return button;
  }

  const toBytes = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));

  function saveFile(blob, name) {
    const link = make("a", { download: name, href: URL.createObjectURL(blob) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  const ICONS = {
    play: "M5 3.5v9l7.5-4.5z",
    find: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.3 10.3l3.4 3.4",
    name: "M2.5 13.5l.7-3.2 7.6-7.6 2.5 2.5-7.6 7.6zM9.3 4.2l2.5 2.5",
  };
  function makeIcon(name) {
    const [svg, path] = ["svg", "path"].map((tag) => document.createElementNS("http://www.w3.org/2000/svg", tag));
    svg.setAttribute("viewBox", "0 0 16 16");
    svg.setAttribute("class", "icon");
    svg.setAttribute("aria-hidden", "true");
    path.setAttribute("d", ICONS[name]);
    svg.append(path);
    return svg;
  }

  // Let arrow keys move through the buttons of a group; the tab key stops at one of them only.
  function addArrowKeys(group, selector, countColumns) {
    const buttons = () => [...group.querySelectorAll(selector)];
    group.addEventListener("keydown", (event) => {
      const all = buttons();
      const current = all.indexOf(document.activeElement);
      if (current < 0) return;
      const columns = countColumns ? countColumns() : 1;
      const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns, Home: -current, End: all.length - 1 - current };
      if (!(event.key in steps)) return;
      const next = all[current + steps[event.key]];
      event.preventDefault();
      event.stopPropagation();
      if (next) next.focus();
    });
    group.addEventListener("focusin", (event) => {
      if (event.target.matches(selector)) buttons().forEach((button) => (button.tabIndex = button === event.target ? 0 : -1));
    });
    resetTabStop(group, selector);
  }

  // call this after the buttons of such a group were replaced
  function resetTabStop(group, selector) {
    const all = [...group.querySelectorAll(selector)];
    const stop = all.find((button) => button.getAttribute("aria-pressed") === "true") || all[0];
    all.forEach((button) => (button.tabIndex = button === stop ? 0 : -1));
  }

  const prefersReducedMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

  Object.assign(qlae, { find, make, debounce, showMessage, showError, makeTile, toBytes, saveFile, makeIcon, addArrowKeys, resetTabStop, prefersReducedMotion });
})();
