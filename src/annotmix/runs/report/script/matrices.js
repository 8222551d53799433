/* Confusion matrices of annotators: one byte per share, all of them or the largest. */

const UNKNOWN = 255, STEPS = 254, LEVELS = 20;
const C = classes.length, known = tables.annotators.n;
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
