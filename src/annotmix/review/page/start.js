/* The page: its buttons and keys. */

const actions = { s: ["Skip", () => decide("skipped")], "?": ["Unsure", () => decide("unsure")], x: ["Not a valid item", () => decide("invalid")],
  u: ["Undo", undo], "←": ["Previous", previous], "→": ["Next", () => advance()] };
const others = { ArrowLeft: previous, ArrowRight: () => advance(), n: () => place("note").focus(), "/": () => form.elements.search.focus(),
  c: () => { if (manyClasses) place("narrow").focus(); } };

for (const [key, [text, action]] of Object.entries(actions)) {
  const own = button("", action, { class: "small-button" });
  own.append(kbd(key), text);
  place("actions").append(own);
}
place("run").textContent = `${run.folder}: ${run.title}`;
place("narrow").hidden = !manyClasses;
place("narrow").addEventListener("input", buildClasses);
place("reviewer").value = state.reviewer;
place("reviewer").addEventListener("change", () => {
  state.reviewer = place("reviewer").value.trim() || run.reviewer;
  place("reviewer").value = state.reviewer;
  begin();
});
place("target").value = 100 * state.target;
place("target").addEventListener("change", () => {
  state.target = Math.min(Math.max(Number(place("target").value) / 100, 0), 1) || run.target;
  keepAddress();
  showProgress();
});

function leave(event) {
  event.preventDefault();
  event.target.blur();
  place("name").focus({ preventScroll: true });
}

addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (target.matches("input:not([type=checkbox]), select")) {
    if (target.id === "narrow" && key === "Enter" && offered.length) {
      leave(event);
      decide("class", offered[0]);
    } else if (key === "Escape" || (key === "Enter" && target.matches("input"))) leave(event);
    return;
  }
  if (!place("keys").checked) return;
  const chosen = /^[1-9]$/.test(key) ? offered[key - 1] : undefined;
  const action = chosen === undefined ? others[key] || actions[key.toLowerCase()]?.[1] : () => decide("class", chosen);
  if (!action || event.repeat) return;
  event.preventDefault();
  action();
});
addEventListener("beforeunload", (event) => { if (state.pending.size) event.preventDefault(); });

buildFilters();
buildAfterwards();
showProgress();
await begin(opened.get("item") ?? undefined);
document.documentElement.dataset.ready = "yes";
