// A button with data-opens shows the dialog of that id; a click beside a dialog closes it. The browser gives the focus back.
// With data-updates it takes these channels along into the dialog's JSON, beside what is there already.
document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-opens]");
  if (!opener) {
    if (event.target.matches("dialog[open]")) event.target.close();
    return;
  }
  const dialog = document.getElementById(opener.dataset.opens);
  dialog?.showModal();
  if (opener.dataset.updates) add(dialog.querySelector("[name=updates]"), opener.dataset.updates);
});

function add(field, updates) {
  try {
    field.value = JSON.stringify({ ...JSON.parse(field.value || "{}"), ...JSON.parse(updates) }, null, 1);
  } catch {
    // What someone has begun to write is theirs, whole or not.
  }
  field.focus();
}
