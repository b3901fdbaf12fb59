// Tabs as the ARIA practices describe them: arrows move, the chosen panel is shown.
function choose(tab, list) {
  for (const other of list.querySelectorAll("[role=tab]")) {
    const chosen = other === tab;
    other.setAttribute("aria-selected", String(chosen));
    other.tabIndex = chosen ? 0 : -1;
    document.getElementById(other.getAttribute("aria-controls")).toggleAttribute("data-folded", !chosen);
  }
}

for (const list of document.querySelectorAll("[data-tabs]")) {
  list.addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]");
    if (!tab) return;
    choose(tab, list);
    if (event.detail) tab.blur(); // clicked with a mouse: the arrows stay with time
  });
  list.addEventListener("keydown", (event) => {
    const tabs = [...list.querySelectorAll("[role=tab]")];
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const tab = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
    tab.focus();
    choose(tab, list);
  });
}
