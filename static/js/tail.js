// The timeline stays at its end while the reader is there.
const scroller = document.querySelector("[data-follows-tail]");
const later = document.querySelector("#later");
const latest = document.querySelector("[data-latest]");

const following = () => !("reading" in scroller.dataset);
const read = (reads) => scroller.toggleAttribute("data-reading", reads);
const near = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 40;

// Only a reader moves up; a pane that shrinks does not, nor a list whose first rows are let go.
let top = 0;
function jump() {
  scroller.scrollTop = scroller.scrollHeight;
  top = scroller.scrollTop;
}
scroller.addEventListener("scroll", () => {
  if (near()) read(false);
  else if (scroller.scrollTop < top) read(true);
  top = scroller.scrollTop;
  if (following()) latest.hidden = true;
});

document.addEventListener("longer", () => {
  if (following() && later.firstElementChild.hidden) jump();
  else latest.hidden = false;
});
document.addEventListener("moment", (event) => {
  if (!event.detail.live) return;
  read(false);
  latest.hidden = true;
  jump();
});
new ResizeObserver(() => following() && jump()).observe(scroller);

latest.addEventListener("click", () => {
  jump();
  document.querySelector("[data-go=last]").click();
});

// The question goes where the eyes are: a card that arrives takes the focus, unless someone is busy elsewhere; then it is
// said where a screen reader hears it.
new MutationObserver((changes) => {
  const open = ".step:not(.step--decided)";
  const added = changes.flatMap((change) => [...change.addedNodes]).filter((node) => node.matches);
  const card = added.map((node) => (node.matches(open) ? node : node.querySelector(open))).find(Boolean);
  if (card && document.activeElement === document.body) card.focus({ preventScroll: true });
  else if (card) document.getElementById("asked").textContent = card.querySelector(".step__title").textContent;
}).observe(document.querySelector(".run__now"), { childList: true, subtree: true });
