// A field with data-remember keeps what was typed into it and offers it to the next form that asks the same.
function offer() {
  for (const field of document.querySelectorAll("[data-remember]"))
    if (!field.value && !field.matches(":focus")) field.value = localStorage.getItem(field.dataset.remember) ?? "";
}

document.addEventListener("change", (event) => {
  const name = event.target.dataset?.remember;
  if (name) localStorage.setItem(name, event.target.value);
});
document.addEventListener("shown", offer);
offer();
