/* Tables as CSV that no spreadsheet runs: the same rule as in annotmix's own files. */

const FORMULA = /^[=+\-@\t\r]/, PLAIN_NUMBER = /^[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?$/;

const GUARDED = /^ *'+[=+\-@\t\r]/;

/* A text that begins like a formula gets an apostrophe in front, one that looks as if it had got one gets one
   more, so that every text can be read back; numbers stay. */
function guard(text) {
  if (FORMULA.test(text) && !PLAIN_NUMBER.test(text)) return "'" + text;
  return GUARDED.test(text) ? text.replace("'", "''") : text;
}

function csvCell(value) {
  if (value === null || value === undefined) return "";
  const text = typeof value === "string" ? guard(value) : String(value);
  return /[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
}

function csvText(heads, rows) {
  return [heads, ...rows].map((row) => row.map(csvCell).join(",") + "\n").join("");
}

function download(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
