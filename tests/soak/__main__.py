"""Hundreds of kills at random moments: `python -m tests.soak [--kills N] [--seed S] [--stores sqlite file]`.

Each run has its processes killed again and again, by the clock or at one of their writes, until it
gets to its end; then it must have ended as if nothing had happened.  Exit code 1 at the first promise
that did not hold; the folder of that run is then left for inspection.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from playground.kernel import JsonObject, JsonValue
from tests.soak.nursery import Nursery
from tests.soak.story import Broken, Story


@dataclass
class Tally:
    """What came of all runs so far."""

    runs: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    repeats: int = 0
    most_lives: int = 0

    def add(self, kind: str, story: Story) -> None:
        self.runs[kind] += 1
        self.kills[kind] += story.kills
        self.repeats += story.repeats
        self.most_lives = max(self.most_lives, story.kills + 1)

    def __str__(self) -> str:
        rows = [f"{kind:8} {self.runs[kind]:5} runs {self.kills[kind]:6} kills" for kind in sorted(self.runs)]
        told = f"no fact lost, none done twice; {self.repeats} calls in flight made again under the same id"
        return "\n".join([*rows, f"up to {self.most_lives} processes a run; {told}"])


def store_in(folder: Path, kind: str, sync: str) -> str:
    return f"{kind}:{folder}/store" + ("/runs.db" if kind == "sqlite" else "") + f"?sync={sync}"


def fate(luck: Random, calm: float) -> JsonObject:
    """How the next process ends: by the clock, within `calm` seconds, or at one of its writes."""
    if luck.random() < 0.6:
        return {"kill_after": luck.uniform(0.0, calm)}
    return {"at": luck.randint(1, 30), "before": luck.random() < 0.5}


async def run_until_its_end(
    nursery: Nursery, luck: Random, kind: str, folder: Path, order: JsonObject
) -> Story:
    """One run, killed until it has survived.

    Raises:
        Broken: a promise did not hold.
    """
    calm = folder / "calm"
    calm.mkdir(parents=True)
    whole = Story(nursery, store_in(calm, kind, "normal"), calm, order)
    began = time.monotonic()
    await whole.live()
    took = time.monotonic() - began
    story = Story(nursery, store_in(folder, kind, luck.choice(["full", "normal"])), folder, order)
    while not await story.live(**fate(luck, took)):
        if story.kills > 1000:
            raise Broken(f"{story.url}: the run gets nowhere")
    if story.end() != whole.end():
        raise Broken(f"{story.url}: it ended with {story.end()}, undisturbed with {whole.end()}")
    if story.calls() != whole.calls():
        raise Broken(f"{story.url}: it made other calls than the undisturbed run")
    return story


async def soak(kills: int, seed: int, stores: list[str], root: Path) -> Tally:
    luck, tally = Random(seed), Tally()  # noqa: S311 - luck, not secrets
    told = time.monotonic()
    with Nursery() as nursery:
        while sum(tally.kills.values()) < kills:
            kind = stores[sum(tally.runs.values()) % len(stores)]
            folder = root / str(sum(tally.runs.values()))
            order: dict[str, JsonValue] = {
                "workers": luck.randint(1, 4),
                "rounds": luck.randint(1, 3),
                "one_by_one": luck.random() < 0.2,
                "pace": luck.choice([0.0, 0.001, 0.005]),
                "durability": luck.choice(["sync", "exit"]),
            }
            tally.add(kind, await run_until_its_end(nursery, luck, kind, folder, order))
            shutil.rmtree(folder)
            if time.monotonic() - told > 10:
                told = time.monotonic()
                say(f"{sum(tally.kills.values())} of {kills} kills")
    return tally


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--kills", type=int, default=500, help="how many processes to kill (500)")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="repeats a soak")
    parser.add_argument("--stores", nargs="+", choices=["sqlite", "file"], default=["sqlite", "file"])
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="soak-"))
    say(f"seed {options.seed}, in {root}")
    try:
        say(str(asyncio.run(soak(options.kills, options.seed, options.stores, root))))
    except Broken as broken:
        say(f"BROKEN: {broken}\nseed {options.seed}; the files are left in {root}")
        return 1
    shutil.rmtree(root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
