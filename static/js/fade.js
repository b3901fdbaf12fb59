// What was active lately in the graph glows, and fades with each wave that begins: the age of an element is how many have
// begun since its last mark.
function fade() {
  const marked = [...document.querySelectorAll("#graph [data-beat]")];
  const now = Math.max(...marked.map((element) => element.dataset.beat));
  for (const { dataset } of marked) {
    const age = now - dataset.beat;
    const fresh = dataset.beat > 0 && age < Number(document.querySelector("#graph svg").dataset.oldest);
    if (fresh) dataset.age = age;
    else delete dataset.age, delete dataset.beat;
  }
}

for (const name of ["graph", "moment", "shown"]) document.addEventListener(name, fade);
