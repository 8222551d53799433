/* One item: its content, the label found, the labels with their annotators. */

const kbd = (key) => make("kbd", {}, key);

/* A name or text in a sentence of the server is text, too. */
function show(item) {
  state.item = item;
  place("name").replaceChildren(bdi(item.name));
  document.title = `${item.name.slice(0, 60)} · annotmix review`;
  place("content").replaceChildren(...contentOf(item));
  const sure = [" ", quiet(`${percent(item.probability)} sure`)];
  place("found").replaceChildren("Label found: ", make("b", {}, bdi(item.label)), ...sure,
    ...(item.classifier ? [". By the classifier alone: ", make("b", {}, bdi(item.classifier))] : []));
  place("why").replaceChildren(bdi(item.why));
  place("votes").replaceChildren(votesOf(item));
  place("decisions").replaceChildren(...decisionsOf(item));
  const own = item.decisions.find((decision) => decision.reviewer === state.reviewer);
  place("note").value = own ? own.note : "";
  place("narrow").value = "";
  buildClasses();
  keepAddress();
  markQueue();
}

function contentOf(item) {
  const parts = [];
  if (item.picture) parts.push(pictureOf(item));
  if (item.text && item.text !== item.name) parts.push(make("p", { class: "whole-text", dir: "auto" }, item.text));
  if (item.cut) parts.push(make("p", { class: "quiet" }, "This is the beginning of the text; the run does not keep more."));
  if (item.features.length) {
    const lines = item.features.map(([name, value]) => make("tr", {}, make("th", { scope: "row" }, bdi(name)),
      make("td", {}, typeof value === "number" ? value.toLocaleString("en", { maximumSignificantDigits: 5 }) : bdi(value ?? "–"))));
    parts.push(make("div", { class: "features", tabindex: 0, role: "group", "aria-label": "Features" },
      make("table", {}, make("caption", {}, "Features of the item"), make("tbody", {}, ...lines))));
  }
  return parts;
}

/* Made when the item is prefetched, so that it is there at once. */
function pictureOf(item) {
  item.image ||= make("img", { src: `picture/${item.row}`, alt: `Picture of ${item.name}`, class: "picture" });
  return item.image;
}

function votesOf(item) {
  if (!item.votes.length) return make("p", { class: "quiet" }, "Nobody labelled this item.");
  const weighted = item.votes.some((vote) => vote.weight !== null && vote.weight !== 1);
  const heads = ["Annotator", "Label", "Right on such items", "Chance it is right"];
  const lines = item.votes.map((vote) => make("tr", { class: vote.label === item.label ? "same" : "" },
    make("th", { scope: "row" }, button("", () => setFilter("annotator", vote.annotator), { class: "opens", title: "Items of this annotator" })),
    make("td", {}, make("b", {}, bdi(vote.label)), weighted ? quiet(` × ${number(vote.weight)}`) : ""),
    make("td", { class: "number" }, percent(vote.reliability)),
    make("td", { class: "number" }, percent(vote.probability))));
  lines.forEach((line, n) => line.querySelector("button").append(bdi(item.votes[n].annotator)));
  return make("table", {}, make("caption", {}, "Labels of this item, the most probable first"),
    make("thead", {}, make("tr", {}, ...heads.map((head, n) => make("th", { scope: "col", class: n > 1 ? "number" : "" }, head)))),
    make("tbody", {}, ...lines));
}

const verdicts = { unsure: "unsure", invalid: "not a valid item", skipped: "skipped" };

function decisionsOf(item) {
  if (!item.decisions.length) return [];
  const lines = item.decisions.map((decision) => make("li", {}, bdi(decision.reviewer), ": ",
    make("b", {}, bdi(decision.verdict === "class" ? decision.label : verdicts[decision.verdict])),
    ...(decision.note ? [" – ", bdi(decision.note)] : [])));
  return [make("h3", {}, "Decisions of reviewers"), make("ul", { class: "notes" }, ...lines)];
}
