"""Breakpoints that a plan could never meet are told when they are set, not waited for in vain."""

from __future__ import annotations

from collections.abc import Iterable

from playground.kernel import JsonValue, Plan
from playground.sessions.errors import Invalid


def check_places(plan: Plan, breakpoints: Iterable[JsonValue]) -> None:
    """Check that a plan has the nodes and the channels that breakpoints name.

    A name with a slash is of a node inside another run, which only that run knows.

    Raises:
        Invalid: naming what is not there, and what is.
    """
    for found in breakpoints:
        if not isinstance(found, dict):
            continue
        node = found.get("before") or found.get("after")
        if isinstance(node, str) and "/" not in node and node.partition("#")[0] not in plan.nodes:
            known = ", ".join(plan.nodes)
            raise Invalid(
                f"there is no node {node!r} to stop at: use {known}, or NODE/NODE for one in a run inside"
            )
        channel = found.get("channel")
        if isinstance(channel, str) and not plan.open_channels and channel not in plan.channels:
            known = ", ".join(plan.channels) or "none"
            raise Invalid(f"there is no channel {channel!r} to look at: the plan has {known}")
