// Light, dark, or as the system says; large type for a room. Both are remembered here and shown by one attribute each.
const root = document.documentElement;
const themes = ["auto", "light", "dark"];

function show() {
  root.dataset.theme = localStorage.getItem("theme") ?? "auto";
  root.toggleAttribute("data-big", localStorage.getItem("big") === "yes");
}

document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-theme-switch]")) return;
  localStorage.setItem("theme", themes[(themes.indexOf(root.dataset.theme) + 1) % themes.length]);
  show();
});

document.addEventListener("big", () => {
  localStorage.setItem("big", root.hasAttribute("data-big") ? "no" : "yes");
  show();
});

addEventListener("storage", show);
show();
