// The track of the scrubber grows with the run: one tick for each row that arrives, taller where a wave begins.
const track = document.querySelector(".ticks");
let known = Number(document.getElementById("at").max);

document.addEventListener("longer", (event) => {
  for (const row of document.querySelectorAll("#timeline > li")) {
    const at = Number(row.dataset.at);
    if (at <= known) continue;
    const tick = document.createElementNS("http://www.w3.org/2000/svg", "line");
    const opens = "newWave" in row.dataset;
    tick.setAttribute("class", opens ? "tick tick--wave" : "tick");
    for (const [name, value] of [["x1", at], ["x2", at], ["y1", opens ? 0 : 0.28], ["y2", opens ? 1 : 0.72]]) tick.setAttribute(name, value);
    tick.dataset.kind = row.dataset.kind;
    tick.dataset.at = at;
    track.append(tick);
  }
  known = event.detail.last;
  track.setAttribute("viewBox", `1 0 ${Math.max(1, known - 1)} 1`);
});
