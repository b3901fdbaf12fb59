"""Several agents: all of it is plans inside plans.

- **call**: an agent is a tool of another one.  It runs as a child, hands back
  its output, and control returns.
"""

from __future__ import annotations

from playground.kernel.body import NodeContext
from playground.kernel.graph import Plan
from playground.kernel.ports import ChildSpec, Spawnable
from playground.kernel.values import JsonValue
from playground.runtime.tools import ToolRegistry


def register_agent_tool(
    registry: ToolRegistry, name: str, child: Plan | Spawnable | ChildSpec, description: str
) -> None:
    """Make an agent callable: a tool with one parameter, `task`, whose call is a child run.

    Raises:
        ValueError: there is a tool of that name.
    """

    async def delegate(task: str, ctx: NodeContext) -> JsonValue:
        """Hand over a piece of work and get the result back.

        Args:
            task: what to do, with all that is needed to do it.
        """
        return (await ctx.spawn(child, task))["output"]

    registry.function(delegate, name=name, description=description, timeout=None)
