/* What the page knows, its address, and the talk with the server. */

const place = (id) => document.getElementById(id);
const AHEAD = 5;
const NAMES = ["order", "label", "status", "annotator", "search", "disputed"];

const lost = "The server does not answer. Start annotmix review again and open its new address; every decision that was confirmed is kept.";

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "omit", ...options });
  } catch {
    throw new Error(lost);
  }
  const content = await answer.json().catch(() => ({ error: `The server refused (${answer.status}).` }));
  if (!answer.ok) throw new Error(content.error);
  return content;
}

const get = (path, query = {}) => ask(`${path}?${new URLSearchParams(query)}`);
const send = (path, content) =>
  ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(content) });

const run = await get("api/run");
const opened = new URLSearchParams(location.search);
const state = {
  filters: Object.fromEntries(NAMES.map((name) => [name, opened.get(name) || ""])),
  reviewer: opened.get("reviewer") || run.reviewer,
  target: Number(opened.get("target")) || run.target,
  page: Number(opened.get("page")) || 1,
  item: null,
  /* items that come next, complete; rows that were shown before; rows that were decided in this queue, also
     where an older answer of the server still calls them open; rows whose decision is on its way */
  upcoming: [],
  past: [],
  decided: new Set(),
  pending: new Set(),
  /* changes with the queue: answers about an earlier one are dropped */
  queue: 0,
};

/* The filters that are set: the part of the address that makes the queue. */
const filters = () => Object.fromEntries(Object.entries(state.filters).filter(([, value]) => value));
const query = (more) => ({ ...filters(), reviewer: state.reviewer, ...more });

function keepAddress() {
  const own = { ...filters() };
  if (state.reviewer !== run.reviewer) own.reviewer = state.reviewer;
  if (state.target !== run.target) own.target = state.target;
  if (state.page > 1) own.page = state.page;
  if (state.item) own.item = state.item.row;
  history.replaceState(null, "", `?${new URLSearchParams(own)}`);
}

const say = (text) => { place("said").textContent = text; };

function complain(error) {
  place("problem").textContent = error ? error.message : "";
  place("problem").hidden = !error;
}
