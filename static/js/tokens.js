// What a model says while it speaks, each call in its own place: the event "token" names the call and brings text.
document.addEventListener("token", (event) => {
  const { call_id: call, kind, text } = JSON.parse(event.detail.data);
  const stream = document.querySelector(`[data-stream="${CSS.escape(call)}"]`);
  const place = stream?.querySelector(kind === "reasoning" ? "[data-reasoning]" : "[data-content]");
  if (!place) return;
  if (kind === "reasoning") place.closest("details").hidden = false;
  place.append(text);
});
