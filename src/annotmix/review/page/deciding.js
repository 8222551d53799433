/* Decide, undo, and go from item to item. */

const MOST_CLASSES = 60, KEYS = 9;
const manyClasses = run.classes.length > KEYS;
let offered = [], saving = Promise.resolve(), filling = null, busy = false;

/* With few classes a number always means the same class; with many, the likely ones come first. */
function classesFor(item) {
  if (!manyClasses) return run.classes;
  const likely = [item.label, ...item.votes.map((vote) => vote.label), item.classifier].filter((name) => run.classes.includes(name));
  return [...new Set([...likely, ...run.classes])];
}

function buildClasses() {
  const item = state.item, wanted = place("narrow").value.trim().toLowerCase();
  const found = classesFor(item).filter((name) => name.toLowerCase().includes(wanted));
  const own = item.decisions.find((decision) => decision.reviewer === state.reviewer && decision.verdict === "class");
  offered = found.slice(0, MOST_CLASSES);
  place("classes").replaceChildren(...offered.map((name, n) => {
    const votes = item.votes.filter((vote) => vote.label === name).length;
    const choice = button("", () => decide("class", name), { class: name === item.label ? "choice consensus" : "choice" });
    if (own) choice.setAttribute("aria-pressed", own.label === name);
    if (n < KEYS) choice.append(kbd(String(n + 1)));
    choice.append(make("span", { class: "class" }, bdi(name)));
    if (votes) choice.append(quiet(votes === 1 ? "1 label" : `${votes} labels`));
    return choice;
  }));
  const rest = found.length - offered.length;
  place("more").hidden = rest <= 0 && found.length > 0;
  place("more").textContent = found.length ? `${number(rest)} more classes: type a part of the name.` : "No class is called so.";
}

/* Shows the next item at once, and keeps the decision meanwhile, one after the other. */
function decide(verdict, label = null) {
  const item = state.item;
  if (!item || busy) return;
  const told = { item: item.row, verdict, label, note: place("note").value, reviewer: state.reviewer, filters: filters() };
  state.pending.add(item.row);
  state.decided.add(item.row);
  const kept = async () => {
    try {
      const answer = await send("api/decide", told);
      complain(null);
      mark(item.row, answer.status);
      refreshProgress();
    } catch (error) {
      forget(item.row);
      if (state.item && state.item !== item) state.upcoming.unshift(state.item);
      show(item);
      complain(new Error(`Not kept: ${error.message}`));
    } finally {
      state.pending.delete(item.row);
    }
  };
  saving = saving.then(kept);
  advance(label ?? verdicts[verdict]);
}

function forget(row) {
  state.past = state.past.filter((other) => other !== row);
  state.decided.delete(row);
}

function undo() {
  saving = saving.then(async () => {
    try {
      const { item } = await send("api/undo", { reviewer: state.reviewer });
      if (!item) return say("There is nothing to undo.");
      if (state.item && state.item.row !== item.row) state.upcoming.unshift(state.item);
      state.upcoming = state.upcoming.filter((other) => other.row !== item.row);
      forget(item.row);
      mark(item.row, item.status);
      arrive(item, "Taken back. ");
      refreshProgress();
    } catch (error) {
      complain(error);
    }
  });
}

function arrive(item, before = "") {
  show(item);
  place("name").focus({ preventScroll: true });
  const top = document.querySelector("article").getBoundingClientRect().top;
  if (top < 0 || top > innerHeight / 2) document.querySelector("article").scrollIntoView();
  say(`${before}Item ${item.name.slice(0, 100)}. Label found: ${item.label}, ${percent(item.probability)} sure.`);
}

async function advance(decided) {
  if (busy || !state.item) return;
  const before = decided ? `Decided: ${decided}. ` : "";
  state.past.push(state.item.row);
  if (!state.upcoming.length) {
    busy = true; // a key means the item that is shown, and none is
    try {
      if (decided) await saving; // until then the queue holds the decided item
      await filling?.done;
      if (!state.upcoming.length) await fill();
    } finally {
      busy = false;
    }
  }
  const next = state.upcoming.shift();
  if (next) arrive(next, before);
  else nothingLeft(before);
  fill();
}

function nothingLeft(before = "") {
  state.item = null;
  for (const id of ["content", "found", "why", "votes", "decisions", "classes", "place"]) place(id).replaceChildren();
  place("name").textContent = "Nothing is left in this queue";
  say(`${before}Nothing is left in this queue.`);
  keepAddress();
}

/* Have the next items of the queue ready. */
function fill() {
  if (filling?.queue !== state.queue) {
    const own = { queue: state.queue };
    own.done = load(own.queue).finally(() => { if (filling === own) filling = null; });
    filling = own;
  }
  return filling.done;
}

async function load(queue) {
  const n = AHEAD - state.upcoming.length, last = state.upcoming.at(-1) ?? state.item;
  if (n <= 0) return;
  try {
    const { items } = await get("api/next", query({ n, ...(last ? { item: last.row } : {}) }));
    if (queue !== state.queue) return;
    const there = new Set([...state.decided, ...state.upcoming.map((item) => item.row), state.item?.row]);
    const fresh = items.filter((item) => !there.has(item.row));
    fresh.filter((item) => item.picture).forEach(pictureOf);
    state.upcoming.push(...fresh);
  } catch (error) {
    complain(error);
  }
}

async function previous() {
  try {
    const row = state.past.pop();
    if (row !== undefined) return await goTo(row);
    const { items } = await get("api/next", query({ n: 1, back: 1, ...(state.item ? { item: state.item.row } : {}) }));
    if (items.length) return jump(items[0]);
  } catch (error) {
    complain(error);
  }
}

/* An item out of turn: the queue goes on after it. */
function jump(item) {
  state.upcoming = [];
  state.queue += 1;
  arrive(item);
  fill();
}

async function goTo(row) {
  await saving;
  jump(await get("api/item", query({ item: row })));
}
