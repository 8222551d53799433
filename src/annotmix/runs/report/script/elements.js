"use strict";
/* Elements, and numbers as text. All names and texts reach the page as text. */

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function draw(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const bdi = (text) => make("bdi", {}, text);
const quiet = (...parts) => make("span", { class: "quiet" }, ...parts);

function button(text, action, attributes = {}) {
  const node = make("button", { type: "button", ...attributes }, text);
  node.addEventListener("click", action);
  return node;
}

function percent(share) {
  if (share === null) return "–";
  if (share > 0 && share < 0.0005) return "below 0.1%";
  if (share > 0.9995 && share < 1) return "over 99.9%";
  return (100 * share).toFixed(1) + "%";
}

const number = (value) => (value === null ? "–" : value.toLocaleString("en"));
const between = (low, high) => (low === null || high === null ? "" : `${(100 * low).toFixed(0)}–${(100 * high).toFixed(0)}%`);
