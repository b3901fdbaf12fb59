// The stage: the picture large, one line that says what happens, and keys for the rest. The address holds it.
const root = document.documentElement;
const run = document.getElementById("run");
const button = document.querySelector("[data-stage-switch]");
const line = document.getElementById("narration");
const asked = () => new URLSearchParams(location.search);

// What the event at that moment says, and in which run inside this one.
function narrate(at = Number(run.dataset.at ?? document.getElementById("at").max)) {
  const text = document.querySelector(`#ev-${at} .event__text`);
  if (text) line.replaceChildren(...text.cloneNode(true).childNodes);
}

function show() {
  const embedded = asked().has("embed");
  root.toggleAttribute("data-stage", embedded || asked().has("stage"));
  root.toggleAttribute("data-embedded", embedded);
  button.setAttribute("aria-pressed", String(root.hasAttribute("data-stage")));
  narrate();
}

button.addEventListener("click", () => {
  const query = asked();
  const on = root.hasAttribute("data-stage");
  query.delete("embed");
  if (on) query.delete("stage");
  else query.set("stage", "1");
  history.replaceState(null, "", `?${query}${location.hash}`);
  show();
});
document.addEventListener("moment", ({ detail: { at } }) => narrate(at));
document.addEventListener("shown", () => narrate());
show();
