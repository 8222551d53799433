/* Copying: by the clipboard where the browser allows it, else by a selection. */

function select(node) {
  const range = document.createRange();
  range.selectNodeContents(node);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
}

/* A button that copies a text; `shown` is the element that shows it, to be selected where copying fails. */
function copyButton(title, text, shown) {
  const node = button(title, async () => {
    let copied = true;
    try {
      await navigator.clipboard.writeText(text());
    } catch {
      if (shown) select(shown);
      copied = Boolean(shown) && document.execCommand("copy");
    }
    node.textContent = copied ? "Copied" : shown ? "Selected: press Ctrl+C" : "Copy the address of the page";
    setTimeout(() => { node.textContent = title; }, 4000);
  }, { class: "small-button", "aria-live": "polite" });
  return node;
}
