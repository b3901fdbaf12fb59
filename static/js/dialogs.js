// A button with data-opens shows the dialog of that id; a click beside a dialog closes it. The browser gives the focus back.
document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-opens]");
  if (opener) document.getElementById(opener.dataset.opens)?.showModal();
  else if (event.target.matches("dialog[open]")) event.target.close();
});
