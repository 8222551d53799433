/* The data of the page: names by position, tables, and the votes of every item. */

function bytes(text) {
  const characters = atob(text || ""), values = new Uint8Array(characters.length);
  for (let at = 0; at < values.length; at++) values[at] = characters.charCodeAt(at);
  return values;
}

async function readData(node) {
  if (node.type === "application/json") return JSON.parse(node.textContent);
  const unpacked = new Blob([bytes(node.textContent)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(unpacked).json();
}

const data = await readData(document.getElementById("data"));
const { classes, annotators, items, texts, images, tables, votes } = data;

/* Positions of the votes of an item, the most probable first. */
function votesOf(item) {
  const first = votes.start[item] ?? 0, end = votes.start[item + 1] ?? first;
  return Array.from({ length: end - first }, (_, at) => first + at);
}

/* The item that a vote is about: the last one that starts at or before it. */
function itemOf(vote) {
  let low = 0, high = votes.start.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (votes.start[middle] <= vote) low = middle; else high = middle;
  }
  return low;
}

/* The votes of an item by class and chance: [{ label, probability, who }], the most probable first. */
function votesByClass(item) {
  const groups = new Map();
  for (const vote of votesOf(item)) {
    const key = votes.label[vote] + " " + percent(votes.probability[vote]);
    if (!groups.has(key)) groups.set(key, { label: votes.label[vote], probability: votes.probability[vote], who: [] });
    groups.get(key).who.push(vote);
  }
  return [...groups.values()];
}

/* The weight of a vote, where votes have weights that differ from 1. */
const weighed = (vote) => (votes.weight && votes.weight[vote] !== 1 ? ` × ${number(votes.weight[vote])}` : "");
