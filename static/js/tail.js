// The timeline stays at its end while the reader is there. Rows far above are let go, for the server has them; what
// they changed in the graph is kept, so that going back in time still starts from the right picture.
const scroller = document.querySelector("[data-follows-tail]");
const list = document.getElementById("timeline");
const latest = document.querySelector("[data-latest]");
const MOST = 500;
let atEnd = true;

const near = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 40;
const jump = () => (scroller.scrollTop = scroller.scrollHeight);

// Only a reader moves up; a pane that shrinks does not.
let top = 0;
scroller.addEventListener("scroll", () => {
  if (near()) atEnd = true;
  else if (scroller.scrollTop < top) atEnd = false;
  top = scroller.scrollTop;
  if (atEnd) latest.hidden = true;
});

function letGo(rows) {
  const earlier = document.getElementById("earlier");
  const marks = [earlier.dataset.base, ...rows.map((row) => row.dataset.graph)].flatMap((m) => JSON.parse(m || "[]"));
  earlier.dataset.base = JSON.stringify([...new Map(marks.map((m) => [m.id, m])).values()]);
  for (const row of rows) row.remove();
  const more = earlier.querySelector("button");
  more.hidden = false;
  more.value = list.firstElementChild.dataset.at;
}

document.addEventListener("longer", () => {
  if (atEnd && list.children.length > MOST * 1.2) letGo([...list.children].slice(0, list.children.length - MOST));
  if (atEnd) jump();
  else latest.hidden = false;
});
document.addEventListener("moment", (event) => {
  if (!event.detail.live) return;
  atEnd = true;
  latest.hidden = true;
  jump();
});
new ResizeObserver(() => atEnd && jump()).observe(scroller);

latest.addEventListener("click", () => {
  jump();
  document.querySelector("[data-go=last]").click();
});
if (!location.hash) jump();

// The question goes where the eyes are: a card that arrives takes the focus, unless someone is busy elsewhere.
new MutationObserver((changes) => {
  const open = ".step:not(.step--decided)";
  const added = changes.flatMap((change) => [...change.addedNodes]).filter((node) => node.matches);
  const card = added.map((node) => (node.matches(open) ? node : node.querySelector(open))).find(Boolean);
  if (card && document.activeElement === document.body) card.focus({ preventScroll: true });
}).observe(document.querySelector(".run__now"), { childList: true, subtree: true });
