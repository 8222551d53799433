/* Addresses: the fragment names the open item or annotator, or what was searched for.

   #item=NAME and #annotator=NAME open a view; of several with the same shown name, &number=2 is the second.
   #TABLE-search=TEXT is a search. So a link can be kept and sent, and Back closes a view. */

const lists = { item: items, annotator: annotators };
const positions = {};

/* Positions of all items or annotators with a name. */
function named(kind, name) {
  if (!positions[kind]) {
    positions[kind] = new Map();
    lists[kind].forEach((one, at) => {
      if (positions[kind].has(one)) positions[kind].get(one).push(at); else positions[kind].set(one, [at]);
    });
  }
  return positions[kind].get(name) || [];
}

function addressOf(kind, position) {
  const name = lists[kind][position], nth = named(kind, name).indexOf(position);
  return "#" + new URLSearchParams(nth > 0 ? { [kind]: name, number: nth + 1 } : { [kind]: name });
}

/* What the fragment names, as { kind, position }; null where it names nothing in this page. */
function addressed() {
  const parts = new URLSearchParams(location.hash.slice(1));
  for (const kind of Object.keys(lists)) {
    if (!parts.has(kind)) continue;
    const position = named(kind, parts.get(kind))[Number(parts.get("number") || 1) - 1];
    return position === undefined ? null : { kind, position };
  }
  return null;
}

const pageAddress = () => location.href.split("#")[0];

/* Searches of the tables in the fragment, without a new entry in the history. */
let later = 0;
function keepSearches() {
  clearTimeout(later);
  later = setTimeout(() => {
    if (addressed()) return;
    const parts = new URLSearchParams();
    for (const field of document.querySelectorAll("input[type=search]")) if (field.value) parts.set(field.id, field.value);
    history.replaceState(history.state, "", pageAddress() + (String(parts) && "#" + parts));
  }, 300);
}

const searchedFor = (id) => new URLSearchParams(location.hash.slice(1)).get(id) || "";
