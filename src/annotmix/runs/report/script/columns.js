/* The cells of tables: every kind of column has a cell, words to search, values to sort and parts of a CSV file. */

const MOST_NAMES = 6;

/* ---------------------------------------------------------------- cells */

const hasText = (item) => texts[item] && texts[item] !== items[item];

function annotatorCell(annotator) {
  const name = bdi(annotators[annotator]);
  return annotator < known ? make("a", { href: addressOf("annotator", annotator), class: "opens" }, name) : name;
}

function thumbnail(item, size) {
  const picture = make("img", { alt: "", class: size });
  picture.src = "data:image/jpeg;base64," + images[item];
  return picture;
}

function itemCell(item) {
  const node = make("div", { class: "item" });
  if (images[item]) node.append(thumbnail(item, "small"));
  const link = make("a", { href: addressOf("item", item), class: "opens" }, bdi(items[item]));
  const words = make("div", {}, link);
  if (hasText(item)) words.append(make("div", { class: "text", dir: "auto" }, texts[item]));
  node.append(words);
  return node;
}

/* Who gave which label, and the chance that it is right: one line per class. */
function votesCell(item) {
  const groups = votesByClass(item);
  if (!groups.length) return quiet("no labels");
  const lines = groups.map(({ label, probability, who }) => {
    const line = make("li", {}, make("b", {}, bdi(classes[label])), " ", quiet(percent(probability)), " ");
    who.slice(0, MOST_NAMES).forEach((vote, at) => {
      line.append(at ? ", " : "", bdi(annotators[votes.annotator[vote]]), weighed(vote));
    });
    if (who.length > MOST_NAMES) line.append(` and ${number(who.length - MOST_NAMES)} more`);
    return line;
  });
  return make("ul", { class: "votes" }, ...lines);
}

/* The same in one line: "cat (0.9): ann, bob; dog (0.1): eve". */
function votesLine(item) {
  return votesByClass(item)
    .map(({ label, probability, who }) =>
      `${classes[label]} (${probability}): ${who.map((vote) => annotators[votes.annotator[vote]] + weighed(vote)).join(", ")}`)
    .join("; ");
}

/* Classes and annotators of an item's votes, to search and sort by; quick, as every item is asked. */
function votesWords(item) {
  let line = "";
  for (let vote = votes.start[item]; vote < votes.start[item + 1]; vote++) {
    line += classes[votes.label[vote]] + "\t" + annotators[votes.annotator[vote]] + "\n";
  }
  return line;
}

function drawInterval(share, low, high) {
  const at = (value) => 4 + 92 * value + "%";
  const parts = [draw("line", { x1: at(0), x2: at(1), y1: 8, y2: 8, class: "grid" })];
  if (low !== null && high !== null) parts.push(draw("line", { x1: at(low), x2: at(high), y1: 8, y2: 8, class: "bar" }));
  if (share !== null) parts.push(draw("circle", { cx: at(share), cy: 8, r: 4.5, class: "full" }));
  return draw("svg", { class: "interval", "aria-hidden": "true" }, ...parts);
}

/* ---------------------------------------------------------------- kinds */

/* What a column of each kind has, from its name, its values and the columns beside it. */
const words = (name, word, cell) => ({ words: word, cell: cell || ((row) => bdi(word(row))), csv: [[name, word]] });
const figures = (name, values, text) => ({
  values, words: () => "", cell: (row) => text(values[row]), csv: [[name, (row) => values[row]]],
});
const kinds = {
  item: ({ name, v }) => ({
    ...words(name, (row) => items[v[row]], (row) => itemCell(v[row])), found: (row) => items[v[row]] + "\n" + texts[v[row]],
  }),
  annotator: ({ name, v }) => words(name, (row) => annotators[v[row]], (row) => annotatorCell(v[row])),
  class: ({ name, v }) => ({ ...words(name, (row) => classes[v[row]]), fact: (row) => bdi(classes[v[row]]) }),
  text: ({ name, v }) => ({ ...words(name, (row) => v[row]), fact: (row) => v[row] && bdi(v[row]) }),
  count: ({ name, v }) => ({ ...figures(name, v, number), fact: (row) => number(v[row]) }),
  number: ({ name, v }) => figures(name, v, (value) => (value === null ? "–" : value.toFixed(2))),
  share: ({ name, v }) => ({ ...figures(name, v, percent), fact: (row) => percent(v[row]) }),
  interval: ({ name, v, beside: [low, high], names: [lowName, highName] }) => {
    const text = (row) => make("span", {}, percent(v[row]), " ", quiet(between(low[row], high[row])));
    const cell = (row) => make("div", { class: "accuracy" }, make("div", { class: "figures" }, text(row)), drawInterval(v[row], low[row], high[row]));
    const csv = [[name, (row) => v[row]], [lowName, (row) => low[row]], [highName, (row) => high[row]]];
    return { ...figures(name, low, percent), cell, csv, drawn: true, fact: text };
  },
  rated: ({ name, v, beside: [rate], names: [rateName] }) => ({
    ...words(name, (row) => v[row], (row) => (v[row] ? make("div", { class: "text" }, bdi(v[row]), " ", quiet(percent(rate[row]))) : quiet("–"))),
    csv: [[name, (row) => v[row]], [rateName, (row) => rate[row]]],
  }),
  votes: ({ name, beside: [item] }) => ({
    ...words(name, (row) => votesWords(item[row]), (row) => votesCell(item[row])),
    csv: [[name, (row) => votesLine(item[row])]],
  }),
  matrix: () => ({ words: () => "", fixed: true, csv: [], cell: (row) => drawMatrix(row, { class: "mini", "aria-hidden": "true" }) }),
};

function columnsOf(name) {
  const { columns, values } = tables[name];
  return columns.map((c) => {
    const parts = { name: c.name, v: values[c.name], beside: c.beside.map((other) => values[other]), names: c.beside };
    return { ...c, ...kinds[c.kind](parts) };
  });
}

function facts(pairs) {
  const shown = pairs.filter(([, value]) => value);
  return make("dl", { class: "facts" }, ...shown.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

function factsOf(name, row) {
  return facts(columnsOf(name).filter((column) => column.fact).map((column) => [column.title, column.fact(row)]));
}
