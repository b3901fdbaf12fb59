// Fitted into its pane, or in full size and scrolled to where something happens.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-full-size]");
  if (!button) return;
  const full = button.closest(".panel").classList.toggle("is-actual");
  button.setAttribute("aria-pressed", String(full));
  const busy = document.querySelector("#graph :is(.is-chosen, .node[data-state=parked], .node[data-state=running])");
  if (full) busy?.scrollIntoView({ block: "center", inline: "center" });
});
