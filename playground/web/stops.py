"""Breakpoints on the page: what stops the run, said in words, and how a form adds one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup
from starlette.exceptions import HTTPException

from playground.kernel import JsonObject, JsonValue
from playground.kernel.values import thaw
from playground.sessions import Invalid
from playground.web import bodies
from playground.web.graphview import Stop
from playground.web.i18n import Translator
from playground.web.story import Story
from playground.web.templating import brief
from playground.web.viewmodels import Stops

OPERATORS = ("<", "<=", ">", ">=", "==", "!=")

OFFERED = (
    *("node_completed", "node_failed", "node_retry", "node_skipped", "state_delta", "control"),
    *("delegated", "model_called", "model_returned", "tool_called", "tool_returned", "note"),
)
"""The kinds of events that the page offers to stop on."""


def stops_of(story: Story, t: Translator) -> Stops:
    """What stops a run, and what could."""
    nodes = dict.fromkeys([*(() if story.foreign else story.plan.nodes), *story.places])
    given = [found for found in story.run.breakpoints if isinstance(found, dict)]
    return Stops(
        story.root,
        tuple(sentence(t, found) for found in given),
        tuple(nodes),
        tuple(story.plan.channels),
        OFFERED,
        OPERATORS,
    )


def beside_nodes(story: Story) -> list[tuple[Stop, str]]:
    """The breakpoints that a picture shows at a node: on which side, and the path of the node."""
    given = [found for found in story.run.breakpoints if isinstance(found, dict)]
    sides: tuple[Stop, ...] = ("before", "after")
    return [(side, str(found[side])) for found in given for side in sides if side in found]


def sentence(t: Translator, breakpoint_: Mapping[str, JsonValue]) -> Markup:
    """A breakpoint in words."""
    if "channel" in breakpoint_:
        value = brief(breakpoint_.get("value"), 40)
        return t("stops.is.channel", name=breakpoint_["channel"], op=breakpoint_.get("op"), value=value)
    for key in ("before", "after", "on"):
        if key in breakpoint_:
            return t(f"stops.is.{key}", name=breakpoint_[key])
    return t("stops.is.every")


def changed(given: Sequence[JsonValue], posted: Mapping[str, str]) -> list[JsonValue]:
    """The breakpoints after a form was posted: one is removed by its place, or one is added.

    Raises:
        Invalid: the form names none, or leaves out what the new one needs.
    """
    kept: list[JsonValue] = [thaw(found) for found in given]
    if "remove" in posted:
        at = bodies.whole_number(posted["remove"], "remove")
        return [found for place, found in enumerate(kept) if place != at]
    added = _added(posted)
    return kept if added in kept else [*kept, added]


def _added(posted: Mapping[str, str]) -> JsonObject:
    kind = posted.get("add", "")
    match kind:
        case "before" | "after" | "on":
            name = posted.get("node" if kind != "on" else "kind", "").strip()
            if not name:
                raise Invalid("the breakpoint names nothing: say which node or event", {kind: "empty"})
            return {kind: name}
        case "channel":
            name = posted.get("channel", "").strip()
            if not name:
                raise Invalid("the breakpoint names no channel: say which one", {"channel": "empty"})
            return {"channel": name, "op": posted.get("op", "=="), "value": _value(posted.get("value", ""))}
        case "every":
            return {"every": "wave"}
    raise Invalid(f"there is no breakpoint of the kind {kind[:40]!r}", {"add": "unknown"})


def _value(text: str) -> JsonValue:
    """What was typed as JSON, so that a number is compared as one; else the text itself."""
    try:
        return thaw(bodies.parse_json(text.encode()))
    except HTTPException:
        return text.strip()
