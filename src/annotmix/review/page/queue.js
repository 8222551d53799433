/* The queue: its filters, its pages, and how far the review is. */

const form = place("filters");

function buildFilters() {
  const option = (value, text) => make("option", { value }, text);
  form.elements.order.append(...Object.keys(run.orders).map((name) => option(name, {
    useful: "most useful first", doubtful: "most doubtful first", suspicious: "most suspicious labels first",
    disputed: "most disputed first", sample: "random sample" }[name] || name)));
  form.elements.label.append(option("", "any"), ...run.classes.map((name) => option(name, name)));
  form.elements.status.append(...Object.keys(run.statuses).map((name) => option(name, name)), option("all", "all"));
  place("annotators").append(...run.annotators.map((name) => option(name, "")));
  fillForm();
  form.addEventListener("change", changed);
  form.addEventListener("submit", (event) => event.preventDefault());
}

function fillForm() {
  for (const name of NAMES) {
    const field = form.elements[name];
    if (field.type === "checkbox") field.checked = Boolean(state.filters[name]);
    else field.value = state.filters[name] || { order: "useful", status: "open" }[name] || "";
  }
}

function changed() {
  for (const name of NAMES) {
    const field = form.elements[name];
    const value = field.type === "checkbox" ? (field.checked ? "1" : "") : field.value;
    state.filters[name] = value === { order: "useful", status: "open" }[name] ? "" : value;
  }
  state.page = 1;
  begin();
}

function setFilter(name, value) {
  form.elements[name].value = value;
  changed();
}

/* The first item of the queue, or the one that the address names. */
async function begin(row) {
  state.queue += 1;
  state.upcoming = [];
  state.decided.clear();
  complain(null);
  try {
    await saving;
    await listQueue();
    const { queue } = state;
    const { items } = row === undefined
      ? await get("api/next", query({ n: 1 }))
      : { items: [await get("api/item", query({ item: row }))] };
    if (queue !== state.queue) return;
    if (items.length) show(items[0]);
    else nothingLeft();
    fill();
  } catch (error) {
    complain(error);
  }
}

async function listQueue() {
  const { queue } = state;
  const listed = await get("api/queue", query({ page: state.page }));
  if (queue !== state.queue) return;
  state.page = listed.page;
  const order = state.filters.order || "useful";
  place("order-words").textContent = run.orders[order];
  place("total").textContent = `${number(listed.total)} of ${number(run.items)} items`;
  place("queue").replaceChildren(...listed.rows.map(lineOf));
  place("pager").replaceChildren();
  place("pager").hidden = listed.pages === 1;
  const turn = (by) => () => { state.page += by; listQueue().then(keepAddress, complain); };
  const earlier = button("Earlier", turn(-1), { class: "small-button" });
  const later = button("Later", turn(1), { class: "small-button" });
  earlier.disabled = listed.page === 1;
  later.disabled = listed.page === listed.pages;
  place("pager").append(earlier, quiet(`page ${number(listed.page)} of ${number(listed.pages)}`), later);
  markQueue();
}

function lineOf(row) {
  const opener = button("", () => goTo(row.row).catch(complain), { class: "opens" });
  opener.append(make("span", { class: "item-name" }, bdi(row.text && row.text !== row.name ? `${row.name}: ${row.text}` : row.name)));
  const line = make("li", { "data-row": row.row, "data-status": row.status }, opener,
    make("span", { class: "line-label" }, bdi(row.label), " ", quiet(percent(row.probability))),
    make("span", { class: "status" }, row.status === "open" ? "" : row.status));
  return line;
}

function mark(row, status) {
  const line = place("queue").querySelector(`[data-row="${row}"]`);
  if (!line) return;
  line.dataset.status = status;
  line.querySelector(".status").textContent = status === "open" ? "" : status;
}

function markQueue() {
  for (const line of place("queue").children) {
    const current = state.item && Number(line.dataset.row) === state.item.row;
    if (current) line.setAttribute("aria-current", "true");
    else line.removeAttribute("aria-current");
  }
  if (!state.item) return;
  const { status } = state.item;
  place("place").textContent = status === "open" ? "Open" : `${status[0].toUpperCase()}${status.slice(1)}: ${run.statuses[status]}`;
}

/* ---------------------------------------------------------------- progress */

let asked = 0;

function refreshProgress() {
  clearTimeout(asked);
  asked = setTimeout(showProgress, 250);
}

const share = (own) => `${percent(own.share)} (${between(own.low, own.high)})`;

async function showProgress() {
  try {
    const made = await get("api/progress", { target: state.target });
    place("bar").max = Math.max(made.decided + made.until, 1);
    place("bar").value = made.decided;
    const aim = `${number(100 * made.target)}% of the labels are wrong`;
    place("reached").textContent = made.until
      ? `About ${number(made.until)} more reviews until ${aim}.`
      : `By the estimate, at most ${aim}.`;
    place("decided").textContent = made.decided ? `${number(made.decided)}, of which ${number(made.agreeing)} agree with the label found` : "0";
    place("left").textContent = made.left.n ? `${share(made.left)} of ${number(made.left.n)}` : "none";
    place("sample").textContent = made.sample ? `${share(made.sample)} of ${number(made.sample.n)} reviewed` : "nothing reviewed yet";
  } catch (error) {
    complain(error);
  }
}
