// The swap "upsert": what is there already is replaced, the rest goes where its id says, in the order of the numbers in
// it. So a row that comes twice is there once, and one that comes late is in its place.
{
  const order = new Intl.Collator(undefined, { numeric: true }).compare;

  function place(list, id) {
    let [low, high] = [0, list.length];
    if (high && order(list[high - 1].id, id) < 0) return null;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (order(list[middle].id, id) < 0) low = middle + 1;
      else high = middle;
    }
    return list[low] ?? null;
  }

  htmx.registerExtension("upsert", {
    handle_swap(style, target, fragment) {
      if (style !== "upsert") return false;
      for (const item of [...fragment.children]) {
        const known = document.getElementById(item.id);
        if (known) known.replaceWith(item);
        else target.insertBefore(item, place(target.children, item.id));
      }
      return true;
    },
  });
}
