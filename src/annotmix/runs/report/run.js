"use strict";
/* The tables of the report and the windows behind them. All names and texts reach the page as text. */
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { classes, annotators, items, texts, images, tables } = data;
  const C = classes.length, known = tables.annotators.n;
  const ROWS = 20, UNKNOWN = 255, STEPS = 254, LEVELS = 20, LARGEST_TABLE = 12;
  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  /* ---------------------------------------------------------------- elements */

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

  /* ---------------------------------------------------------------- confusion matrices */

  const bytes = (text) => Uint8Array.from(atob(text || ""), (character) => character.charCodeAt(0));
  const full = bytes(data.matrices.full), diagonal = bytes(data.matrices.diagonal);
  const cell = new Uint32Array(bytes(data.matrices.cell).buffer), share = bytes(data.matrices.share);
  const K = known ? share.length / known : 0;

  /* The entries [true class, label, share] of a confusion matrix that are known and not 0. */
  function* entries(annotator) {
    if (full.length) {
      for (let at = 0, first = annotator * C * C; at < C * C; at++) {
        const step = full[first + at];
        if (step && step !== UNKNOWN) yield [Math.floor(at / C), at % C, step / STEPS];
      }
      return;
    }
    for (let c = 0; c < C; c++) {
      const step = diagonal[annotator * C + c];
      if (step && step !== UNKNOWN) yield [c, c, step / STEPS];
    }
    for (let k = annotator * K; k < (annotator + 1) * K; k++) {
      if (share[k]) yield [Math.floor(cell[k] / C), cell[k] % C, share[k] / STEPS];
    }
  }

  function drawMatrix(annotator, attributes) {
    const paths = Array(LEVELS + 1).fill("");
    for (const [c, k, value] of entries(annotator)) {
      paths[Math.round(value * LEVELS)] += `M${k} ${c}h1v1h-1z`;
    }
    const shapes = paths.map((d, level) => d && level && draw("path", { d, class: "heat", "fill-opacity": level / LEVELS }));
    return draw("svg", { viewBox: `0 0 ${C} ${C}`, ...attributes }, ...shapes.filter(Boolean));
  }

  function tableMatrix(annotator) {
    const cells = Array.from({ length: C }, () => Array(C).fill(0));
    for (const [c, k, value] of entries(annotator)) cells[c][k] = value;
    const head = make("tr", {}, make("td"));
    for (const name of classes) head.append(make("th", { scope: "col" }, make("span", {}, bdi(name))));
    const body = make("tbody");
    cells.forEach((row, c) => {
      const line = make("tr", {}, make("th", { scope: "row" }, bdi(classes[c])));
      for (const value of row) {
        const place = make("td", {}, value < 0.005 ? "" : (100 * value).toFixed(0));
        place.style.setProperty("--share", value);
        line.append(place);
      }
      body.append(line);
    });
    const caption = make("caption", {}, "Percent of a true class (row) that get a label (column)");
    return make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Confusion matrix" },
      make("table", { class: "matrix" }, caption, make("thead", {}, head), body));
  }

  /* ---------------------------------------------------------------- cells */

  function annotatorCell(annotator) {
    const name = bdi(annotators[annotator]);
    return annotator < known ? button(name, () => showAnnotator(annotator), { class: "opens" }) : name;
  }

  function thumbnail(item, size) {
    const picture = make("img", { alt: "", class: size });
    picture.src = "data:image/jpeg;base64," + images[item];
    return picture;
  }

  function itemCell(item) {
    const node = make("div", { class: "item" });
    if (images[item]) node.append(thumbnail(item, "small"));
    const words = make("div", {}, button(bdi(items[item]), () => showItem(item), { class: "opens" }));
    if (texts[item] && texts[item] !== items[item]) words.append(make("div", { class: "text", dir: "auto" }, texts[item]));
    node.append(words);
    return node;
  }

  function drawInterval(share, low, high) {
    const at = (value) => 4 + 92 * value + "%";
    const parts = [draw("line", { x1: at(0), x2: at(1), y1: 8, y2: 8, class: "grid" })];
    if (low !== null && high !== null) parts.push(draw("line", { x1: at(low), x2: at(high), y1: 8, y2: 8, class: "bar" }));
    if (share !== null) parts.push(draw("circle", { cx: at(share), cy: 8, r: 4.5, class: "full" }));
    return draw("svg", { class: "interval", "aria-hidden": "true" }, ...parts);
  }

  const between = (low, high) => (low === null || high === null ? "" : `${(100 * low).toFixed(0)}–${(100 * high).toFixed(0)}%`);

  /* ---------------------------------------------------------------- columns */

  /* What a column of each kind has, from its values and those beside it: a cell, what it is searched and sorted
     by, and the fact that windows show. */
  const words = (word, cell) => ({ words: word, cell: cell || ((row) => bdi(word(row))) });
  const figures = (values, text) => ({ values, words: () => "", cell: (row) => text(values[row]) });
  const kinds = {
    item: (v) => words((row) => items[v[row]] + " " + texts[v[row]], (row) => itemCell(v[row])),
    annotator: (v) => words((row) => annotators[v[row]], (row) => annotatorCell(v[row])),
    class: (v) => ({ ...words((row) => classes[v[row]]), fact: true }),
    text: (v) => ({ ...words((row) => v[row]), fact: true }),
    count: (v) => ({ ...figures(v, number), fact: true }),
    number: (v) => figures(v, (value) => (value === null ? "–" : value.toFixed(2))),
    share: (v) => ({ ...figures(v, percent), fact: true }),
    interval: (v, low, high) => {
      const text = (row) => make("span", {}, percent(v[row]), " ", quiet(between(low[row], high[row])));
      const cell = (row) => make("div", { class: "accuracy" }, make("div", { class: "figures" }, text(row)), drawInterval(v[row], low[row], high[row]));
      return { ...figures(low, percent), cell, drawn: true, fact: text };
    },
    rated: (v, rate) =>
      words((row) => v[row], (row) => (v[row] ? make("div", { class: "text" }, bdi(v[row]), " ", quiet(percent(rate[row]))) : quiet("–"))),
    matrix: () => ({ words: () => "", fixed: true, cell: (row) => drawMatrix(row, { class: "mini", "aria-hidden": "true" }) }),
  };
  const nouns = { annotators: "annotators", labels: "labels", disputed: "items", suggestions: "questions" };

  function columnsOf(name) {
    const { columns, values } = tables[name];
    return columns.map((c) => ({ ...c, ...kinds[c.kind](values[c.name], ...c.beside.map((other) => values[other])) }));
  }

  function factsOf(name, row) {
    const shown = columnsOf(name).filter((column) => column.fact);
    return facts(shown.map((c) => [c.title, c.fact === true ? c.cell(row) : c.fact(row)]));
  }

  /* ---------------------------------------------------------------- tables */

  function build(name, place) {
    const columns = columnsOf(name), n = tables[name].n, noun = nouns[name];
    const all = Array.from({ length: n }, (_, row) => row);
    let sorted = all, shown = all, first = 0, by = -1, down = false, found = null;

    const status = make("p", { role: "status", class: "quiet" });
    const search = make("input", { type: "search", id: name + "-search", autocomplete: "off", spellcheck: "false" });
    const tools = make("div", { class: "tools" }, make("label", { for: search.id }, `Search ${noun}`), search, status);
    const caption = place.querySelector("caption");
    const head = make("tr", { role: "row" }), body = make("tbody", { role: "rowgroup" });
    const earlier = button("Previous", () => turn(-ROWS)), later = button("Next", () => turn(ROWS));
    const where = make("span", { class: "quiet" });
    const pager = make("nav", { class: "pager", "aria-label": `Pages of ${noun}` }, earlier, where, later);

    columns.forEach((column, at) => {
      const cell = make("th", { scope: "col", role: "columnheader", title: column.meaning });
      if (column.values && !column.drawn) cell.className = "number";
      cell.append(column.fixed ? column.title : button(column.title, () => sort(at)));
      head.append(cell);
    });

    function sort(at) {
      const { values, words } = columns[at];
      down = by === at ? !down : Boolean(values);
      by = at;
      const turn = down ? -1 : 1;
      const compare = values
        ? (a, b) => (values[a] === null) - (values[b] === null) || turn * (values[a] - values[b]) || a - b
        : (a, b) => turn * collator.compare(words(a), words(b)) || a - b;
      sorted = all.slice().sort(compare);
      [...head.children].forEach((cell, i) => {
        if (i === at) cell.setAttribute("aria-sort", down ? "descending" : "ascending");
        else cell.removeAttribute("aria-sort");
      });
      filter();
    }

    function filter() {
      const wanted = search.value.trim().toLowerCase();
      if (wanted) found ||= all.map((row) => columns.map((column) => column.words(row)).join("\n").toLowerCase());
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

    search.addEventListener("input", filter);
    /* the whole line of an annotator opens what its name opens */
    if (name === "annotators") body.addEventListener("click", (event) => {
      if (event.target.closest("button") || String(getSelection())) return;
      const opener = event.target.closest("tr").querySelector("button.opens");
      opener.focus();
      opener.click();
    });
    const table = make("table", { role: "table", class: name }, caption, make("thead", { role: "rowgroup" }, head), body);
    place.replaceChildren(tools, table, pager);
    if (name === "annotators") sort(columns.findIndex((column) => column.kind === "interval")); else filter();
  }

  /* ---------------------------------------------------------------- windows */

  const kind = make("p", { id: "window-kind", class: "quiet" }), content = make("div");
  const title = make("h2", { id: "window-title", tabindex: "-1" });
  const close = button("Close", () => dialog.close(), { class: "close" });
  const top = make("div", { class: "bar-top" }, make("div", {}, kind, title), close);
  const dialog = make("dialog", { "aria-labelledby": "window-kind window-title" }, make("div", { class: "window" }, top, content));
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  document.body.append(dialog);

  function open(what, name, ...parts) {
    kind.textContent = what;
    title.replaceChildren(bdi(name));
    content.replaceChildren(...parts);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    title.focus();
  }

  function facts(pairs) {
    return make("dl", { class: "facts" }, ...pairs.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
  }

  /* The column of a table that has a kind, and the rows of labels that have a value there. */
  const valuesOf = (name, kind) => tables[name].values[tables[name].columns.find((column) => column.kind === kind).name];
  const labelRows = (kind, wanted) => [...valuesOf("labels", kind).keys()].filter((row) => valuesOf("labels", kind)[row] === wanted);

  function showAnnotator(annotator) {
    const { label, consensus, probability } = tables.labels.values;
    const parts = [factsOf("annotators", annotator)];
    const all = [...entries(annotator)];
    if (all.length) {
      parts.push(make("h3", {}, "What is taken for what"));
      parts.push(C <= LARGEST_TABLE ? tableMatrix(annotator)
        : drawMatrix(annotator, { class: "large", role: "img", "aria-label": "Confusion matrix, one row per true class, one column per label; the largest entries follow" }));
      const top = all.filter(([c, k, value]) => c !== k && value >= 0.01).sort((a, b) => b[2] - a[2]).slice(0, 5);
      const lines = top.map(([c, k, value]) => make("li", {}, bdi(classes[c]), " called ", bdi(classes[k]), " ", quiet(percent(value))));
      if (lines.length) parts.push(make("ul", { class: "confusions" }, ...lines));
      if (K) parts.push(make("p", { class: "quiet" }, `With so many classes the page keeps the diagonal and the ${K} largest confusions.`));
    }
    const doubted = labelRows("annotator", annotator).filter((row) => label[row] !== consensus[row]).slice(0, 8);
    parts.push(make("h3", {}, "Labels to look at"));
    parts.push(doubted.length
      ? make("ul", { class: "examples" }, ...doubted.map((row) => make("li", {}, itemCell(valuesOf("labels", "item")[row]),
        make("div", {}, "called ", make("b", {}, bdi(classes[label[row]])), ", probably ", make("b", {}, bdi(classes[consensus[row]])), " ", quiet("chance it is right: " + percent(probability[row]))))))
      : make("p", { class: "quiet" }, `None among the ${number(tables.labels.n)} least trusted labels of all.`));
    parts.push(make("p", { class: "quiet" }, "These figures describe labels, not a person: they depend on which items someone got, on how many, and on the model."));
    open("Annotator", annotators[annotator], ...parts);
  }

  function showItem(item) {
    const { label, consensus, probability } = tables.labels.values, parts = [];
    if (images[item]) parts.push(thumbnail(item, "whole"));
    if (texts[item] && texts[item] !== items[item]) parts.push(make("p", { dir: "auto", class: "whole-text" }, texts[item]));
    const row = valuesOf("disputed", "item").indexOf(item), own = labelRows("item", item);
    if (row >= 0) parts.push(factsOf("disputed", row));
    else if (own.length) parts.push(facts([["Label found", bdi(classes[consensus[own[0]]])]]));
    if (own.length) {
      parts.push(make("h3", {}, "Doubtful labels"));
      parts.push(make("ul", { class: "examples" }, ...own.map((at) => make("li", {}, make("b", {}, bdi(classes[label[at]])), " by ",
        annotatorCell(valuesOf("labels", "annotator")[at]), " ", quiet("chance it is right: " + percent(probability[at]))))));
    }
    open("Item", items[item], ...parts);
  }

  /* ---------------------------------------------------------------- the page */

  for (const name of Object.keys(tables)) {
    const place = document.getElementById(name);
    if (place) build(name, place);
  }
  /* paper has no triangles to click on */
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => { part.open = true; }));
  document.documentElement.dataset.ready = "yes";
})();
