"""Branches: which runs share a past, and what sets two of them apart."""

from __future__ import annotations

from playground.sessions import Answer, Sessions, difference, family
from tests.sessions.conftest import Opener
from tests.sessions.test_sessions import rested

YES = {"check": Answer(approved=True)}
NO = {"check": Answer(approved=False)}


async def ended(sessions: Sessions, run_id: str, answers: dict[str, Answer]) -> None:
    await sessions.answer(run_id, answers)
    await rested(sessions, run_id)


async def original(sessions: Sessions) -> tuple[str, int]:
    """A run that asked and was approved, and the position at which it asked."""
    run_id = await sessions.start("asks")
    parked = (await rested(sessions, run_id))[-1].pos
    await ended(sessions, run_id, YES)
    return run_id, parked


async def forked(sessions: Sessions, run_id: str, at: int, **updates: object) -> str:
    fork_id = await sessions.fork(run_id, at, updates=updates)
    await rested(sessions, fork_id)
    return fork_id


async def test_a_fork_that_decides_otherwise_parts_at_the_decision(opened: Opener) -> None:
    """Fork, reject instead: the first differing event and the keys are named."""
    async with opened() as sessions:
        run_id, parked = await original(sessions)
        fork_id = await forked(sessions, run_id, parked)
        await ended(sessions, fork_id, NO)

        found = difference(await sessions.events(run_id), await sessions.events(fork_id))

        assert found.shared == parked
        assert [found.left.kind, found.left.data["outcome"]] == ["resumed", "approved"]
        assert [found.right.kind, found.right.data["outcome"]] == ["resumed", "rejected"]


async def test_a_fork_that_does_the_same_again_is_the_same(opened: Opener) -> None:
    async with opened() as sessions:
        run_id, parked = await original(sessions)
        fork_id = await forked(sessions, run_id, parked)
        await ended(sessions, fork_id, YES)

        found = difference(await sessions.events(run_id), await sessions.events(fork_id))

        assert found.same
        assert all(pair.same for pair in found.pairs)
        assert not any(channel.differs for channel in found.channels)


async def test_a_fork_with_edited_state_parts_at_the_edit_and_names_the_channel(opened: Opener) -> None:
    async with opened() as sessions:
        run_id, parked = await original(sessions)
        fork_id = await forked(sessions, run_id, parked, amount=3)

        found = difference(await sessions.events(run_id), await sessions.events(fork_id))

        assert found.right.kind == "forked"
        (amount,) = [channel for channel in found.channels if channel.differs]
        assert (amount.name, amount.before, amount.left, amount.right) == ("amount", 40, 40, 3)


async def test_two_forks_of_one_run_are_compared_like_a_run_and_its_fork(opened: Opener) -> None:
    async with opened() as sessions:
        run_id, parked = await original(sessions)
        one, other = [await forked(sessions, run_id, parked, amount=amount) for amount in (1, 2)]

        found = difference(await sessions.events(one), await sessions.events(other))

        assert found.shared == parked
        assert [found.left.data["updates"], found.right.data["updates"]] == [{"amount": 1}, {"amount": 2}]


async def test_nodes_of_one_wave_that_took_other_turns_are_no_difference(opened: Opener) -> None:
    async with opened() as sessions:
        run_id, _ = await original(sessions)
        events = await sessions.events(run_id)
        turned = [*events[:-2], events[-1], events[-2]]

        assert difference(events, turned).same


async def test_each_event_is_beside_its_like_and_none_is_lost(opened: Opener) -> None:
    async with opened() as sessions:
        run_id, parked = await original(sessions)
        fork_id = await forked(sessions, run_id, parked)
        await ended(sessions, fork_id, NO)
        left, right = await sessions.events(run_id), await sessions.events(fork_id)

        pairs = difference(left, right).pairs

        assert [pair.left for pair in pairs if pair.left] == [e for e in left if e.pos > parked]
        assert [pair.right for pair in pairs if pair.right] == [
            e for e in right if e.pos > parked and e.kind != "forked"
        ]
        assert all(p.left.kind == p.right.kind for p in pairs if p.same)


async def test_the_tree_has_each_run_before_its_forks_whichever_is_asked_for(opened: Opener) -> None:
    async with opened() as sessions:
        run_id, parked = await original(sessions)
        late = await forked(sessions, run_id, parked)
        early = await forked(sessions, run_id, parked - 1)
        deep = await forked(sessions, late, parked, amount=7)

        trees = [await family(sessions, member) for member in (run_id, late, early, deep)]

        told = [(found.record.run_id, found.depth, found.at) for found in trees[0]]
        assert told == [(run_id, 0, 0), (early, 1, parked - 1), (late, 1, parked), (deep, 2, parked)]
        assert all(tree == trees[0] for tree in trees)


async def test_a_branch_says_what_it_changed_what_was_decided_and_what_came_of_it(opened: Opener) -> None:
    async with opened() as sessions:
        run_id, parked = await original(sessions)
        fork_id = await forked(sessions, run_id, parked, amount=7)
        await ended(sessions, fork_id, NO)

        first, fork = await family(sessions, run_id)

        assert first.decided == (("check", "approved"),)
        assert (fork.updates, fork.decided) == ({"amount": 7}, (("check", "rejected"),))
        assert fork.output == "False None None"


async def test_a_branch_whose_origin_was_deleted_is_the_first_of_its_tree(opened: Opener) -> None:
    async with opened() as sessions:
        run_id, parked = await original(sessions)
        fork_id = await forked(sessions, run_id, parked)
        await sessions.delete(run_id)

        (only,) = await family(sessions, fork_id)

        assert (only.record.run_id, only.depth, only.at) == (fork_id, 0, 0)
