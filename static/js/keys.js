// Keys do what the element that names them in aria-keyshortcuts would do; deciding keys only move the focus there.
const typing = "input:not([type=range]):not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]";

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.closest(typing) || document.querySelector("dialog[open]")) return;
  if (event.key === " " && !event.target.matches("body, main, [type=range]")) return; // it presses what has the focus
  const key = event.key === " " ? "P" : event.key.length === 1 ? event.key.toUpperCase() : event.key;
  if (key === "B") return document.dispatchEvent(new Event("big"));
  const element = document.querySelector(`[aria-keyshortcuts="${CSS.escape(key)}"]`);
  if (!element || element.disabled) return;
  event.preventDefault();
  if (element.matches("input, textarea, [data-focus-first]")) element.focus();
  else element.click();
});
