/* The view of one item or one annotator. It has an address of its own; Back, Escape and Close close it. */

const LARGEST_TABLE = 12, MOST_EXAMPLES = 10;

const kindOf = make("p", { id: "window-kind", class: "quiet" }), content = make("div");
const title = make("h2", { id: "window-title", tabindex: "-1" });
const closer = button("Close", () => dialog.close(), { class: "small-button" });
const link = copyButton("Copy link", () => location.href);
const bar = make("div", { class: "bar-top" }, make("div", {}, kindOf, title), make("div", { class: "buttons" }, link, closer));
const dialog = make("dialog", { "aria-labelledby": "window-kind window-title" }, make("div", { class: "window" }, bar, content));
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
document.body.append(dialog);

/* ---------------------------------------------------------------- content */

/* All labels of an item, the most probable first. */
function voteTable(item) {
  const accuracy = tables.annotators.values;
  const heads = ["Annotator", "Label", "Chance it is right", "Annotator’s accuracy"];
  const lines = votesOf(item).map((vote) => {
    const who = votes.annotator[vote];
    const judged = who < known && accuracy.accuracy
      ? [percent(accuracy.accuracy[who]), " ", quiet(between(accuracy.low[who], accuracy.high[who]))] : ["–"];
    return make("tr", {}, make("th", { scope: "row" }, annotatorCell(who)),
      make("td", {}, make("b", {}, bdi(classes[votes.label[vote]])), weighed(vote)),
      make("td", {}, percent(votes.probability[vote])), make("td", {}, ...judged));
  });
  return make("table", { class: "own-votes" }, make("caption", {}, "Labels of this item, the most probable first"),
    make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))), make("tbody", {}, ...lines));
}

function itemParts(item) {
  const shown = make("div", { class: "shown-item" }), figures = make("div", { class: "figures-of-item" });
  if (images[item]) shown.append(thumbnail(item, "whole"));
  if (hasText(item)) shown.append(make("p", { dir: "auto", class: "whole-text" }, texts[item]));
  if (item < tables.items.n) figures.append(factsOf("items", item));
  figures.append(make("h3", {}, "Who said what"));
  figures.append(votesOf(item).length ? voteTable(item)
    : make("p", { class: "quiet" }, "Nobody labelled this item; the label found is that of the classifier alone."));
  return shown.childNodes.length ? [make("div", { class: "sides" }, shown, figures)] : [figures];
}

function confusionParts(annotator) {
  const all = [...entries(annotator)];
  if (!all.length) return [];
  const drawn = { class: "large", role: "img", "aria-label": "Confusion matrix, one row per true class, one column per label; the largest entries follow" };
  const parts = [make("h3", {}, "What is taken for what"), C <= LARGEST_TABLE ? tableMatrix(annotator) : drawMatrix(annotator, drawn)];
  const largest = all.filter(([c, k, value]) => c !== k && value >= 0.01).sort((a, b) => b[2] - a[2]).slice(0, 5);
  const lines = largest.map(([c, k, value]) => make("li", {}, bdi(classes[c]), " called ", bdi(classes[k]), " ", quiet(percent(value))));
  if (lines.length) parts.push(make("ul", { class: "confusions" }, ...lines));
  if (K) parts.push(make("p", { class: "quiet" }, `With so many classes the page keeps the diagonal and the ${K} largest confusions.`));
  return parts;
}

/* Labels of an annotator that are not the label found, the least likely right first. */
function doubtedParts(annotator) {
  const consensus = tables.items.values.label, doubted = [];
  votes.annotator.forEach((who, vote) => {
    if (who !== annotator) return;
    const item = itemOf(vote);
    if (item < tables.items.n && votes.label[vote] !== consensus[item]) doubted.push([vote, item]);
  });
  doubted.sort(([a], [b]) => votes.probability[a] - votes.probability[b]);
  const lines = doubted.slice(0, MOST_EXAMPLES).map(([vote, item]) => make("li", {}, itemCell(item),
    make("div", {}, "called ", make("b", {}, bdi(classes[votes.label[vote]])), ", probably ",
      make("b", {}, bdi(classes[consensus[item]])), " ", quiet("chance it is right: " + percent(votes.probability[vote])))));
  const rest = doubted.length - lines.length;
  return [make("h3", {}, "Labels to look at"),
    lines.length ? make("ul", { class: "examples" }, ...lines) : make("p", { class: "quiet" }, "Every label is the label found for its item."),
    ...(rest > 0 ? [make("p", { class: "quiet" }, `${number(rest)} more labels differ from the label found.`)] : [])];
}

function annotatorParts(annotator) {
  const left = make("div", {}, ...confusionParts(annotator)), right = make("div", {}, ...doubtedParts(annotator));
  const sides = left.childNodes.length ? make("div", { class: "sides" }, left, right) : right;
  return [factsOf("annotators", annotator), sides, make("p", { class: "quiet" },
    "These figures describe labels, not a person: they depend on which items someone got, on how many, and on the model.")];
}

/* ---------------------------------------------------------------- opening and closing */

const views = { item: ["Item", itemParts], annotator: ["Annotator", annotatorParts] };
let depth = 0;

/* Show what the address names. A view that was opened from the page knows how many steps Back leave it. */
function follow() {
  const wanted = addressed();
  if (!wanted || (wanted.kind === "annotator" && wanted.position >= known)) {
    depth = 0;
    dialog.close();
    return;
  }
  depth = history.state?.depth ?? depth + 1;
  history.replaceState({ depth }, "");
  const [kind, parts] = views[wanted.kind];
  kindOf.textContent = kind;
  title.replaceChildren(bdi(lists[wanted.kind][wanted.position]));
  content.replaceChildren(...parts(wanted.position));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  title.focus();
}

/* Closed by Escape, the button or a click beside it: the address must not name the view any longer. */
dialog.addEventListener("close", () => {
  if (addressed()) history.go(-depth);
});

/* A page that is opened with the address of a view has the page itself behind it, to close the view. */
function begin() {
  if (addressed() && !history.state?.depth) {
    const wanted = location.href;
    history.replaceState(null, "", pageAddress());
    history.pushState({ depth: 1 }, "", wanted);
  }
  addEventListener("hashchange", follow);
  follow();
}
