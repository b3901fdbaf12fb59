"""`python -m bench [PART…]`: print every comparison, or those named, and keep them in `bench/results/`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os

from bench.common import How, keep
from bench.parts import PARTS, measured

# Peers report home or trace unless told otherwise; neither belongs in a measurement.
os.environ.update(
    LANGSMITH_TRACING="false",
    LANGCHAIN_TRACING_V2="false",
    BURR_TELEMETRY_ENABLED="false",
    ANONYMIZED_TELEMETRY="false",
)
logging.disable(logging.WARNING)


def main() -> None:
    """Run the parts that the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Speed and memory as ratios to peers."
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"any of: {', '.join(PARTS)} (default: all)")
    parser.add_argument(
        "--repeats", type=int, default=3, help="samples of each figure, of which the median counts"
    )
    parser.add_argument(
        "--only", type=lambda text: tuple(text.split(",")), default=(), help="rivals whose labels begin so"
    )
    given = parser.parse_args()
    unknown = [name for name in given.parts if name not in PARTS]
    if unknown:
        parser.error(f"no part named {unknown[0]!r}: choose from {', '.join(PARTS)}")
    for name in given.parts or PARTS:
        tables = asyncio.run(measured(name, How(given.repeats, given.only)))
        keep(name, tables)
        for table in tables:
            print(table, flush=True)


if __name__ == "__main__":
    main()
