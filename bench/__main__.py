"""`python -m bench [PART…]`: print every comparison, or those named, and keep them in `bench/results/`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from functools import partial

from bench.common import How, Sheet, Table, keep

# Peers report home or trace unless told otherwise; neither belongs in a measurement.
os.environ.update(
    LANGSMITH_TRACING="false",
    LANGCHAIN_TRACING_V2="false",
    BURR_TELEMETRY_ENABLED="false",
    ANONYMIZED_TELEMETRY="false",
)
logging.disable(logging.WARNING)

Part = Callable[[How], Awaitable[Table | list[Table] | list[Sheet]]]


def parts() -> dict[str, Part]:
    """Every comparison by name, in the order in which they run."""
    from bench import agenton, runtime, strategies
    from bench.kernel import bus, cold, durable, memory, resume, waves
    from bench.web import click, page, stream

    async def imports(how: How) -> list[Table]:
        return cold.cold(how)

    def printing(main: Callable[[], Awaitable[None]]) -> Part:
        async def part(how: How) -> list[Table]:
            await main()
            return []

        return part

    return {
        **{name: partial(waves.workload, name) for name in waves.WORKLOADS},
        "concurrent": waves.concurrent,
        "durable": durable.durable,
        "resume": resume.resume,
        "memory": memory.memory,
        "bus": bus.bus,
        "import": imports,
        "stream": stream.stream,
        "click": click.click,
        "page": page.page,
        "agenton": printing(agenton.main),
        "react": runtime.react,
        "strategies": printing(strategies.main),
    }


def main() -> None:
    """Run the parts that the command line names."""
    known = parts()
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Speed and memory as ratios to peers."
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"any of: {', '.join(known)} (default: all)")
    parser.add_argument(
        "--repeats", type=int, default=3, help="samples of each figure, of which the median counts"
    )
    parser.add_argument(
        "--only", type=lambda text: tuple(text.split(",")), default=(), help="rivals whose labels begin so"
    )
    given = parser.parse_args()
    unknown = [name for name in given.parts if name not in known]
    if unknown:
        parser.error(f"no part named {unknown[0]!r}: choose from {', '.join(known)}")
    for name in given.parts or known:
        result = asyncio.run(known[name](How(given.repeats, given.only)))
        tables = [result] if isinstance(result, Table) else result
        keep(name, tables)
        for table in tables:
            print(table, flush=True)


if __name__ == "__main__":
    main()
