// The timeline is at its end when it is first seen, unless the address names another moment.
requestAnimationFrame(() => {
  const scroller = document.querySelector("[data-follows-tail]");
  if (!location.hash) scroller.scrollTop = scroller.scrollHeight;
});
