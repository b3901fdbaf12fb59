// A saved log that is chosen becomes a run of this store, and its page is opened; what is wrong with it is said here.
const input = document.getElementById("import");
const problem = document.getElementById("import-problem");

input.addEventListener("change", async () => {
  const [file] = input.files;
  if (!file) return;
  problem.hidden = true;
  try {
    const headers = { "content-type": "application/x-ndjson" };
    const answer = await fetch(input.dataset.imports, { method: "POST", headers, body: file });
    const told = await answer.json();
    if (answer.ok) location.href = told.url;
    else tell(told.detail);
  } catch {
    tell(input.dataset.lost);
  }
  input.value = "";
});

function tell(text) {
  problem.querySelector("span").textContent = text;
  problem.hidden = false;
}
