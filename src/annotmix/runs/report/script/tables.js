/* Tables: sorted, searched, a page of rows at a time, and as a CSV file. */

const ROWS = 20;
const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
const nouns = { annotators: "annotators", labels: "labels", disputed: "disputed items", items: "items", suggestions: "questions" };
/* The column that gives the order at first, and whether its largest values come first; others keep the order of the data. */
const orders = { annotators: ["accuracy", true], disputed: ["probability", false] };

function buildTable(name, place) {
  const every = columnsOf(name), columns = every.filter((column) => !column.details);
  const n = tables[name].n, noun = nouns[name];
  const all = Array.from({ length: n }, (_, row) => row);
  let sorted = all, shown = all, first = 0, by = -1, down = false, found = null;

  const status = make("p", { role: "status", class: "quiet" });
  const search = make("input", { type: "search", id: name + "-search", autocomplete: "off", spellcheck: "false" });
  const save = button("Download CSV", () => saveRows(), { class: "small-button", "aria-label": `Download these ${noun} as CSV` });
  const tools = make("div", { class: "tools" }, make("label", { for: search.id }, `Search ${noun}`), search, status, save);
  const caption = place.querySelector("caption");
  const head = make("tr", { role: "row" }), body = make("tbody", { role: "rowgroup" });
  const earlier = button("Previous", () => turn(-ROWS), { class: "small-button" });
  const later = button("Next", () => turn(ROWS), { class: "small-button" });
  const where = make("span", { class: "quiet" });
  const pager = make("nav", { class: "pager", "aria-label": `Pages of ${noun}` }, earlier, where, later);

  columns.forEach((column, at) => {
    const cell = make("th", { scope: "col", role: "columnheader", title: column.meaning });
    if (column.values && !column.drawn) cell.className = "number";
    cell.append(column.fixed ? column.title : button(column.title, () => sort(at)));
    head.append(cell);
  });

  function sort(at, largest = by === at ? !down : Boolean(columns[at].values)) {
    const { values, words } = columns[at];
    down = largest;
    by = at;
    const turn = down ? -1 : 1;
    const texts = values ? null : all.map(words);
    const compare = values
      ? (a, b) => (values[a] === null) - (values[b] === null) || turn * (values[a] - values[b]) || a - b
      : (a, b) => turn * collator.compare(texts[a], texts[b]) || a - b;
    sorted = all.slice().sort(compare);
    [...head.children].forEach((cell, i) => {
      if (i === at) cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
    filter();
  }

  function filter() {
    const wanted = search.value.trim().toLowerCase();
    if (wanted) found ||= all.map((row) => columns.map((column) => (column.found || column.words)(row)).join("\n").toLowerCase());
    shown = wanted ? sorted.filter((row) => found[row].includes(wanted)) : sorted;
    const count = shown.length === n ? `${number(n)} ${noun}` : `${number(shown.length)} of ${number(n)} ${noun}`;
    if (status.textContent !== count) status.textContent = count;
    first = 0;
    fill();
  }

  function turn(by) {
    if (first + by < 0 || first + by >= shown.length) return;
    first += by;
    fill();
    place.scrollIntoView({ block: "nearest" });
  }

  function fill() {
    const rows = shown.slice(first, first + ROWS).map((row) => {
      const line = make("tr", { role: "row" });
      columns.forEach((column, at) => {
        const cell = at ? make("td", { role: "cell" }) : make("th", { scope: "row", role: "rowheader" });
        if (column.values && !column.drawn) cell.className = "number";
        cell.dataset.title = column.title;
        cell.append(column.cell(row));
        line.append(cell);
      });
      return line;
    });
    body.replaceChildren(...rows);
    pager.hidden = shown.length <= ROWS;
    where.textContent = `${number(first + 1)}–${number(Math.min(first + ROWS, shown.length))} of ${number(shown.length)}`;
    earlier.setAttribute("aria-disabled", first === 0);
    later.setAttribute("aria-disabled", first + ROWS >= shown.length);
  }

  /* the rows that are found, in the order shown, with all columns */
  function saveRows() {
    const parts = every.flatMap((column) => column.csv);
    download(`report-${name}.csv`, csvText(parts.map(([head]) => head), shown.map((row) => parts.map(([, value]) => value(row)))));
  }

  search.addEventListener("input", () => { filter(); keepSearches(); });
  /* the whole line of an annotator opens what its name opens */
  if (name === "annotators") body.addEventListener("click", (event) => {
    if (event.target.closest("a, button") || String(getSelection())) return;
    const opener = event.target.closest("tr").querySelector("a.opens");
    opener.focus();
    opener.click();
  });
  const table = make("table", { role: "table", class: name }, caption, make("thead", { role: "rowgroup" }, head), body);
  place.replaceChildren(tools, make("div", { class: "wide" }, table), pager);
  search.value = searchedFor(search.id);
  const [key, largest] = orders[name] || [];
  if (key) sort(columns.findIndex((column) => column.name === key), largest); else filter();
  if (search.value) place.scrollIntoView();
}
