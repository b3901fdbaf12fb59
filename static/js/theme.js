// Light, dark, or as the system says; large type for a room. Both are remembered here and shown by one attribute each;
// a cookie tells the server, which then marks the page itself, so that nothing has to be known before it is painted.
const root = document.documentElement;
const themes = ["auto", "light", "dark"];

function show() {
  const theme = localStorage.getItem("theme") ?? "auto";
  const big = localStorage.getItem("big") === "yes";
  root.dataset.theme = theme;
  root.toggleAttribute("data-big", big);
  const looks = `looks=${theme}${big ? "-big" : ""};`;
  if (!`${document.cookie};`.includes(looks)) document.cookie = `${looks} path=/; max-age=31536000; samesite=lax`;
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
