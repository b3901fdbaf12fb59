"""`python -m bench.web [REPEATS]`: what a viewer of a live run costs, beside a bare socket server."""

from __future__ import annotations

import asyncio
import sys

from bench.common import How
from bench.web.stream import stream


def main() -> None:
    """Print the sheets."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    for sheet in asyncio.run(stream(How(repeats))):
        print(sheet)


if __name__ == "__main__":
    main()
