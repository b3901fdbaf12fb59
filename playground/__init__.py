"""Agent Playground: write an agent as a graph, watch it run, decide its open steps, go back in time.

The public names are those of `playground.facade`.  They are loaded when the
first of them is used, so that a program which needs the kernel alone loads the
kernel alone.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as type checkers read it, without loading `typing` for it
if TYPE_CHECKING:
    from playground.facade import *  # noqa: F403


def __getattr__(name: str) -> object:
    if name.startswith("_") and name != "__all__":
        raise AttributeError(f"module 'playground' has no attribute {name!r}")
    from importlib.util import find_spec  # here, since it loads more than the kernel needs

    if find_spec(f"playground.{name}") is not None:  # a part of the package, which needs no facade
        return import_module(f"playground.{name}")
    found: object = getattr(import_module("playground.facade"), name)
    return found
