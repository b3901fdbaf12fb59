"""The comparisons by name.  Each is imported when it is asked for, as it may need peers of its own."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Mapping
from importlib import import_module

from bench.common import How, Sheet, Table

Found = Table | list[Table] | list[Sheet] | None

PARTS: Mapping[str, tuple[str, str]] = {
    "chain": ("kernel.waves", "workload"),
    "loop": ("kernel.waves", "workload"),
    "fanout": ("kernel.waves", "workload"),
    "diamond": ("kernel.waves", "workload"),
    "concurrent": ("kernel.waves", "concurrent"),
    "durable": ("kernel.durable", "durable"),
    "resume": ("kernel.resume", "resume"),
    "memory": ("kernel.memory", "memory"),
    "bus": ("kernel.bus", "bus"),
    "import": ("kernel.cold", "cold"),
    "stream": ("web.stream", "stream"),
    "click": ("web.click", "click"),
    "page": ("web.page", "page"),
    "agenton": ("agenton", "main"),
    "react": ("runtime", "react"),
    "strategies": ("strategies", "main"),
}
"""Every comparison by name, in the order in which they run: its module, and the function there."""


async def measured(name: str, how: How) -> list[Table] | list[Sheet]:
    """What a comparison finds; one whose function is `main` prints that itself."""
    module, function = PARTS[name]
    part = getattr(import_module(f"bench.{module}"), function)
    given = {"main": (), "workload": (name, how)}.get(function, (how,))
    found: Found | Awaitable[Found] = part(*given)
    if inspect.isawaitable(found):
        found = await found
    return [found] if isinstance(found, Table) else found or []
