/* The page: its tables, its buttons, and the view that its address names. */

for (const name of Object.keys(tables)) {
  const place = document.getElementById(name);
  if (place) buildTable(name, place);
}
for (const shown of document.querySelectorAll(".command code")) {
  shown.parentElement.after(copyButton("Copy", () => shown.textContent, shown));
}
/* paper has no triangles to click on */
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => { part.open = true; }));
begin();
document.documentElement.dataset.ready = "yes";
