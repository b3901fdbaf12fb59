// The track of the scrubber: one stroke for each event, in a path for each tone, and a veil over what is still to come.
// It grows with the run; where it gets dense, every second stroke is left out.
const track = document.querySelector(".ticks");
const veil = track.querySelector(".ticks__later");
const paths = [...track.querySelectorAll(".tick")];
const MOST = 1200;
let known = Number(document.getElementById("at").max);
let strokes = paths.flatMap((path) => [...path.getAttribute("d").matchAll(/M(\d+)/g)].map(([, at]) => ({ at: Number(at), path })));
let stride = 1;

const pathOf = ({ dataset: { kind, newWave } }) =>
  newWave ? paths[0] : (paths.find((path) => path.dataset.kinds.split(" ").includes(kind)) ?? paths.at(-1));

function draw() {
  for (const path of paths) {
    const line = path === paths[0] ? " 0V1" : " .28V.72";
    path.setAttribute("d", strokes.filter((stroke) => stroke.path === path).map(({ at }) => `M${at}${line}`).join(""));
  }
  track.setAttribute("viewBox", `1 0 ${Math.max(1, known - 1)} 1`);
}

function cover(at) {
  veil.setAttribute("x", at);
  veil.setAttribute("width", Math.max(0, known - at));
}

document.addEventListener("longer", (event) => {
  for (let row = document.querySelector("#timeline").lastElementChild; row && Number(row.dataset.at) > known; row = row.previousElementSibling)
    if (Number(row.dataset.at) % stride === 0) strokes.push({ at: Number(row.dataset.at), path: pathOf(row) });
  known = event.detail.last;
  if (strokes.length > MOST) {
    stride *= 2;
    strokes = strokes.sort((one, other) => one.at - other.at).filter((_, place) => place % 2);
  }
  draw();
  cover(Number(document.getElementById("run").dataset.at ?? known));
});
document.addEventListener("moment", (event) => cover(event.detail.at));
