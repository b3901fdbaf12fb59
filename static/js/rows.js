// The page holds a stretch of the log. Older and newer rows come when the reader is near them; a moment outside brings
// a stretch of its own. Rows far from the reader are let go, and what those above did to the graph is kept for #earlier.
const scroller = document.querySelector("[data-follows-tail]");
const list = document.getElementById("timeline");
const range = document.getElementById("at");
const MOST = 200;

const end = (name) => document.querySelector(`#${name} button`);
const place = (row) => Number(row?.dataset.at ?? 0);
const away = () => place(list.lastElementChild) < Number(range.max);

function letGo(rows, above) {
  const earlier = document.getElementById("earlier");
  if (above) {
    const marks = [earlier.dataset.base, ...rows.map((row) => row.dataset.graph)].flatMap((m) => JSON.parse(m || "[]"));
    earlier.dataset.base = JSON.stringify([...new Map(marks.map((m) => [m.id, m])).values()]);
  }
  for (const row of rows) row.remove();
}

// What is left says where it ends. Whoever reads at the end sees the newest rows, so it is the oldest that go.
function trim(above) {
  const spare = list.children.length - MOST;
  if (spare > MOST / 4) letGo([...list.children].slice(...(above ? [0, spare] : [-spare])), above);
  end("earlier").value = place(list.firstElementChild);
  end("earlier").hidden = place(list.firstElementChild) <= 1;
  end("later").value = place(list.lastElementChild);
  end("later").hidden = !away();
}

// Rows that arrive while others before them are missing are not for this stretch.
document.addEventListener("longer", () => {
  const known = Number(end("later").value);
  if (!end("later").hidden) letGo([...list.children].filter((row) => place(row) > known), false);
  trim(!("reading" in scroller.dataset));
});

let asked = false;
let held;
function ask(name) {
  if (!end(name).hidden && !asked) end(name).click();
}

const edge = (event) => event.target.closest?.("#earlier, #later")?.id;
document.addEventListener("htmx:before:request", (event) => {
  if (!edge(event)) return;
  asked = true;
  held = { row: list.firstElementChild, top: list.firstElementChild?.getBoundingClientRect().top };
});
document.addEventListener("htmx:finally:request", (event) => edge(event) && (asked = false));
document.addEventListener("htmx:after:swap", (event) => {
  if (edge(event) === "earlier") scroller.scrollTop += held.row.getBoundingClientRect().top - held.top;
  if (edge(event)) trim(edge(event) === "later");
  if (event.target !== range) return;
  trim(true);
  const at = Number(range.value);
  document.dispatchEvent(new CustomEvent("moment", { detail: { at, live: at === Number(range.max) } }));
});

const edges = new IntersectionObserver(
  (seen) => seen.forEach(({ isIntersecting, target }) => isIntersecting && ask(target.id)),
  { root: scroller, rootMargin: "600px 0px" },
);
for (const name of ["earlier", "later"]) edges.observe(document.getElementById(name));
