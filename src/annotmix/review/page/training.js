/* Learning again with the decisions, and what changed. */

let polled = 0;

const train = button("Use these decisions", () => {
  train.disabled = true;
  saving.then(() => send("api/train", {})).then(showTraining, (error) => { train.disabled = false; complain(error); });
}, { class: "small-button strong" });

function buildAfterwards() {
  const link = (text, href, attributes = {}) => make("a", { href, class: "small-button", ...attributes }, text);
  place("afterwards").append(train, link("Decisions as CSV", "decisions.csv", { download: "" }),
    link("Corrected labels as CSV", "labels-reviewed.csv", { download: "" }), link("Report of the run", "report/run", { target: "_blank", rel: "noopener" }));
  place("command").replaceChildren("The same on the command line: ", make("code", {}, run.command));
  get("api/training").then(showTraining, complain);
}

function showTraining(answer) {
  clearTimeout(polled);
  train.disabled = answer.state === "running";
  const parts = { running: runningParts, failed: failedParts, done: doneParts }[answer.state];
  place("training").replaceChildren(...(parts ? parts(answer) : []));
  if (answer.state === "running") polled = setTimeout(() => get("api/training").then(showTraining, complain), 1000);
}

const output = (answer) => make("pre", {}, answer.lines.join("\n"));
const runningParts = (answer) => [make("p", {}, "The run learns again, in ", make("code", {}, answer.out), ". You can go on reviewing."),
  make("progress", { "aria-label": "Learning" }), output(answer)];
const failedParts = (answer) => [make("p", { class: "warning" }, "It did not work. The earlier run is as it was. The command:"),
  make("pre", {}, answer.command), output(answer)];

function doneParts(answer) {
  const made = answer.changes;
  const list = (lines) => make("ul", { class: "notes" }, ...lines);
  const parts = [
    make("p", {}, make("b", {}, `${number(made.other)} of ${number(made.items)} items have another label`),
      `, ${number(made.beyond)} of them items that nobody reviewed. Expected wrong labels: ${made.wrong_before.toFixed(1)} before, ${made.wrong_after.toFixed(1)} now. `,
      `The estimated accuracy of ${number(made.moved)} annotators moved by two points or more.`),
    make("p", {}, make("a", { href: "report/new", target: "_blank", rel: "noopener" }, "Report of the new run"), ". Review it with ",
      make("code", {}, `annotmix review ${answer.out}`), "; the earlier run is kept."),
  ];
  if (made.examples.length) parts.push(make("details", {}, make("summary", {}, "Items with another label"), list(made.examples.map((own) =>
    make("li", {}, bdi(own.item), ": ", bdi(own.before), " → ", make("b", {}, bdi(own.after)), own.decided ? quiet(" reviewed") : "")))));
  if (made.annotators.length) parts.push(make("details", {}, make("summary", {}, "Annotators who moved"), list(made.annotators.map((own) =>
    make("li", {}, bdi(own.annotator), `: ${percent(own.before)} → ${percent(own.after)}`)))));
  return parts;
}
