// A run in one file: the log is inside, so what an event says and what the state was after it are found here.
const log = JSON.parse(document.getElementById("kept-log").textContent);
const events = new Map(log.events.map(([at, ...rest]) => [at, rest]));
const said = document.getElementById("inspect-event");
const kept = document.getElementById("inspect-state");
const channel = document.getElementById("kept-channel");

function tell(at) {
  const [run, seq, kind, data] = events.get(at) ?? [];
  said.querySelector("b").textContent = kind ?? "";
  said.querySelector("span").textContent = kind ? `#${at} · ${run}:${seq}` : "";
  said.querySelector("pre").textContent = kind ? JSON.stringify(data, null, 2) : "";
}

function fold(at) {
  const values = new Map();
  const owner = events.get(at)?.[0];
  for (const [pos, run, changed] of log.states)
    if (pos <= at && run === owner) for (const [name, value] of Object.entries(changed)) values.set(name, { value, pos });
  const rows = [...values].map(([name, { value, pos }]) => {
    const row = channel.content.firstElementChild.cloneNode(true);
    row.classList.toggle("channel--changed", pos === at);
    row.querySelector("a").href = `#step=${pos}`;
    row.querySelector("code").textContent = name;
    row.querySelector("dd").textContent = value;
    return row;
  });
  kept.querySelector("dl").replaceChildren(...rows);
  kept.querySelector(".empty").hidden = rows.length > 0;
}

function show(at) {
  tell(at);
  fold(at);
}
document.addEventListener("moment", (event) => show(event.detail.at));
show(Number(document.getElementById("at").value));
