"""Fold proof: a checkpoint is what the log folds to, or the key in which it is not is named."""

from __future__ import annotations

from typing import Any

import pytest

from playground.kernel.values import thaw
from playground.sessions import Proof, Sessions, prove
from tests.sessions.conftest import Opener
from tests.sessions.test_sessions import YES, rested


async def proved(sessions: Sessions, run_id: str) -> Proof | None:
    events = await sessions.events(run_id)
    portraits = {event.pos: (await sessions.portrait(run_id, event.pos)).run for event in events}
    return await prove(sessions.store.checkpoints, run_id, portraits.__getitem__)


async def corrupt(sessions: Sessions, run_id: str, change: Any) -> None:
    snapshot: Any = thaw(await sessions.store.checkpoints.load(run_id))
    change(snapshot)
    await sessions.store.checkpoints.save(run_id, snapshot)


async def test_the_checkpoint_of_a_parked_run_is_the_fold_of_its_log(opened: Opener, store_url: str) -> None:
    async with opened(store_url) as sessions:
        run_id = await sessions.start("asks")
        parked = (await rested(sessions, run_id))[-1].pos

        assert await proved(sessions, run_id) == Proof(parked)


async def test_a_checkpoint_is_held_against_the_log_up_to_its_own_moment(opened: Opener) -> None:
    async with opened() as sessions:
        run_id = await sessions.start("asks")
        parked = (await rested(sessions, run_id))[-1].pos
        await sessions.answer(run_id, YES)
        await rested(sessions, run_id)

        assert await proved(sessions, run_id) == Proof(parked)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (lambda snapshot: snapshot["shared"].update(amount=41), "shared.amount"),
        (lambda snapshot: snapshot["shared"].pop("amount"), "shared.amount"),
        (lambda snapshot: snapshot.update(task="another"), "task"),
        (lambda snapshot: snapshot["node_states"]["draft"].__setitem__(0, "failed"), "node_states.draft"),
        (lambda snapshot: snapshot.update(last_pos="five"), "last_pos"),
    ],
)
async def test_a_corrupted_checkpoint_is_told_by_the_key(opened: Opener, change: Any, key: str) -> None:
    async with opened() as sessions:
        run_id = await sessions.start("asks")
        await rested(sessions, run_id)
        await corrupt(sessions, run_id, change)

        found = await proved(sessions, run_id)

        assert found is not None
        assert not found.holds
        assert found.differs == (key,)


async def test_a_run_without_a_checkpoint_has_nothing_to_prove(opened: Opener) -> None:
    async with opened() as sessions:
        assert await prove(sessions.store.checkpoints, "run-nobody", {}.__getitem__) is None
