"""The bus: who watches, who judges, who contributes; and streams that press back or count what they drop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.kernel import (
    BlockingResult,
    Bus,
    FnBody,
    Node,
    NodeContext,
    Plan,
    RunState,
    Scheduler,
    Subscription,
)
from tests.kernel.logs import turns
from tests.kernel.plans import law


def started(*coroutines: object) -> list[asyncio.Task[object]]:
    return [asyncio.ensure_future(coroutine) for coroutine in coroutines]


def drained(stream: Subscription) -> list[object]:
    """What a closed stream still holds."""
    return [stream._items.popleft() for _ in range(len(stream))]


async def test_observers_are_called_in_order_with_what_was_fired_sync_or_async() -> None:
    bus, heard = Bus(), []

    async def later(n: int) -> None:
        await asyncio.sleep(0)
        heard.append(("async", n))

    bus.on("tick", lambda n: heard.append(("sync", n)))
    bus.on("tick", later)
    bus.on("tock", lambda n: heard.append(("other", n)))
    await bus.fire("tick", n=1)
    assert heard == [("sync", 1), ("async", 1)]


async def test_an_observer_that_breaks_is_reported_and_keeps_nobody_from_hearing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bus, heard = Bus(), []
    bus.on("tick", lambda: 1 / 0)
    bus.on("tick", lambda: heard.append("second"))
    with caplog.at_level(logging.ERROR, logger="playground.kernel.bus"):
        await bus.fire("tick")
    assert heard == ["second"]
    assert "an observer of 'tick' failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text


async def test_who_unsubscribes_while_being_told_does_not_make_the_next_be_skipped() -> None:
    """Case D15."""
    bus, heard = Bus(), []

    def once(name: str) -> None:
        def handler() -> None:
            undo()
            heard.append(name)

        undo: Callable[[], None] = bus.on("tick", handler)

    for name in "abc":
        once(name)
    await bus.fire("tick")
    await bus.fire("tick")
    assert heard == ["a", "b", "c"]


async def test_who_subscribes_while_others_are_told_hears_from_the_next_on() -> None:
    """Case D15."""
    bus, heard = Bus(), []

    def joins() -> None:
        heard.append("first")
        if heard.count("first") == 1:
            bus.on("tick", lambda: heard.append("new"))

    bus.on("tick", joins)
    await bus.fire("tick")
    assert heard == ["first"]
    await bus.fire("tick")
    assert heard == ["first", "first", "new"]


async def test_undoing_twice_is_harmless_and_leaves_an_equal_handler_in_place() -> None:
    bus, heard = Bus(), []

    def handler(n: int) -> None:
        heard.append(n)

    first, second = bus.on("tick", handler), bus.on("tick", handler)
    first()
    first()
    await bus.fire("tick", n=1)
    assert heard == [1]
    second()
    await bus.fire("tick", n=2)
    assert (heard, bus.heard) == ([1], False)


async def test_nobody_at_a_gate_means_yes() -> None:
    bus = Bus()
    assert await bus.check("gate") == BlockingResult(True)
    assert not bus.has_checker("gate")


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [(False, "vetoed by gate"), (BlockingResult(False, "too dear"), "too dear")],
)
async def test_one_veto_blocks_and_whoever_comes_after_it_is_not_asked(verdict: object, reason: str) -> None:
    bus, asked = Bus(), []
    bus.checker("gate", lambda amount: asked.append(amount))
    bus.checker("gate", lambda amount: verdict)
    bus.checker("gate", lambda amount: asked.append("too late"))
    assert await bus.check("gate", amount=5) == BlockingResult(False, reason)
    assert asked == [5]


async def test_a_checker_that_breaks_blocks_and_says_so() -> None:
    bus = Bus()

    async def breaks() -> None:
        raise KeyError("policy")

    bus.checker("gate", breaks)
    assert await bus.check("gate") == BlockingResult(False, "checker error: KeyError: 'policy'")


@pytest.mark.parametrize("verdict", [None, True, BlockingResult(True, "fine"), "anything"])
async def test_whatever_is_no_veto_lets_pass(verdict: object) -> None:
    bus = Bus()
    bus.checker("gate", lambda: verdict)
    assert (await bus.check("gate")).allowed


async def test_providers_contribute_in_order_and_none_is_nothing() -> None:
    bus = Bus()
    for value in ("a", None, 0):
        bus.provider("point", lambda value=value: value)
    bus.provider("point", lambda: 1 / 0)
    assert await bus.collect("point") == ["a", 0]
    assert await bus.collect("elsewhere") == []


async def test_a_stream_holds_what_it_was_asked_for_in_the_order_it_was_fired() -> None:
    bus = Bus()
    some, everything = bus.subscribe("a", "b"), bus.subscribe()
    for number, event in enumerate("abcab"):
        await bus.fire(event, n=number)
    assert [(await some.get())["n"] for _ in range(4)] == [0, 1, 3, 4]
    assert [(await everything.get())["event"] for _ in range(5)] == list("abcab")


async def test_a_full_stream_that_drops_never_holds_up_anyone_and_counts() -> None:
    bus = Bus()
    stream = bus.subscribe("tick", maxsize=3, on_full="drop")
    for n in range(10):
        await asyncio.wait_for(bus.fire("tick", n=n), 1)
    assert (len(stream), stream.dropped) == (3, 7)
    assert [(await stream.get())["n"] for _ in range(3)] == [0, 1, 2]


async def test_a_full_stream_that_blocks_holds_up_its_producer() -> None:
    """Case D29: nothing hidden takes what the stream has no room for."""
    bus = Bus()
    stream = bus.subscribe("tick", maxsize=10)
    fired: list[int] = []

    async def produce() -> None:
        for n in range(1000):
            await bus.fire("tick", n=n)
            fired.append(n)

    (producer,) = started(produce())
    await turns(50)
    assert len(fired) <= 10
    assert len(stream) == 10
    await stream.get()
    await turns()
    assert len(fired) <= 11
    stream.close()
    await asyncio.wait_for(producer, 5)
    assert len(fired) == 1000
    assert len(drained(stream)) <= 11


async def test_a_slow_reader_loses_nothing_under_the_policy_block() -> None:
    bus = Bus()
    stream = bus.subscribe("tick", maxsize=2)
    (producer,) = started(*[produces(bus, range(50))])
    got = []
    while len(got) < 50:
        await turns(2)
        got.append((await stream.get())["n"])
    await producer
    assert got == list(range(50))


async def produces(bus: Bus, numbers: range) -> None:
    for n in numbers:
        await bus.fire("tick", n=n)


async def test_a_producer_that_waits_comes_before_one_that_has_just_come() -> None:
    bus = Bus()
    stream = bus.subscribe("tick", maxsize=1)
    await bus.fire("tick", n=0)
    waiting = started(bus.fire("tick", n=1))
    await turns(2)
    assert (await stream.get())["n"] == 0
    late = started(bus.fire("tick", n=2))
    assert [(await stream.get())["n"] for _ in range(2)] == [1, 2]
    await asyncio.gather(*waiting, *late)


async def test_who_reads_and_then_fires_comes_behind_those_who_wait() -> None:
    bus = Bus()
    stream = bus.subscribe("tick", maxsize=2)
    await produces(bus, range(2))
    waiting = started(bus.fire("tick", n=2))
    await turns(2)
    await stream.get()
    await stream.get()
    await bus.fire("tick", n=3)
    assert [(await stream.get())["n"] for _ in range(2)] == [2, 3]
    await asyncio.gather(*waiting)


@law(60)
@given(
    counts=st.lists(st.integers(1, 8), min_size=1, max_size=4),
    size=st.integers(1, 4),
    pauses=st.lists(st.integers(0, 3), min_size=1, max_size=6),
)
async def test_with_many_producers_each_ones_items_come_in_its_order_and_none_is_lost(
    counts: list[int], size: int, pauses: list[int]
) -> None:
    bus = Bus()
    stream = bus.subscribe(maxsize=size)

    async def produce(who: int) -> None:
        for n in range(counts[who]):
            await bus.fire("tick", who=who, n=n)
            await turns(pauses[(who + n) % len(pauses)])

    producers = started(*map(produce, range(len(counts))))
    got: list[tuple[object, object]] = []
    while len(got) < sum(counts):
        await turns(pauses[len(got) % len(pauses)])
        item = await asyncio.wait_for(stream.get(), 5)
        got.append((item["who"], item["n"]))
        assert len(stream) <= size
    await asyncio.gather(*producers)
    for who, count in enumerate(counts):
        assert [n for by, n in got if by == who] == list(range(count))


async def test_closing_wakes_readers_and_producers_and_what_is_held_can_still_be_read() -> None:
    bus = Bus()
    full, empty = bus.subscribe("full", maxsize=1), bus.subscribe("empty")
    await bus.fire("full", n=1)
    producers = started(bus.fire("full", n=2), bus.fire("full", n=3))
    readers = started(empty.get(), anext(empty))
    await turns()
    full.close()
    empty.close()
    await asyncio.wait_for(asyncio.gather(*producers), 5)
    for reader in readers:
        with pytest.raises((StopAsyncIteration, RuntimeError)):
            await asyncio.wait_for(reader, 5)
    assert [item["n"] async for item in full][:1] == [1]
    await bus.fire("full", n=4)
    assert len(full) == 0


async def test_closing_twice_and_closing_while_being_read_end_the_stream() -> None:
    bus = Bus()
    stream = bus.subscribe()
    got = []

    async def read() -> None:
        async for item in stream:
            got.append(item["event"])
            stream.close()

    (reader,) = started(read())
    await turns()
    await bus.fire("a")
    await asyncio.wait_for(reader, 5)
    await bus.fire("b")
    stream.close()
    assert got == ["a"]
    assert not bus.heard


async def test_a_reader_or_producer_that_is_cancelled_takes_nothing_with_it() -> None:
    bus = Bus()
    stream = bus.subscribe("tick", maxsize=1)
    gone, stays = started(stream.get(), stream.get())
    await turns()
    gone.cancel()
    await bus.fire("tick", n=0)
    assert (await asyncio.wait_for(stays, 5))["n"] == 0
    await bus.fire("tick", n=1)
    gone, stays = started(bus.fire("tick", n=2), bus.fire("tick", n=3))
    await turns()
    gone.cancel()
    assert [(await asyncio.wait_for(stream.get(), 5))["n"] for _ in range(2)] == [1, 3]
    await stays


async def test_a_reader_that_is_cancelled_as_its_item_comes_leaves_it_to_the_next() -> None:
    bus = Bus()
    stream = bus.subscribe("tick")
    gone, stays = started(stream.get(), stream.get())
    await turns()
    await bus.fire("tick", n=0)
    gone.cancel()
    assert (await asyncio.wait_for(stays, 5))["n"] == 0


def test_a_policy_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="on_full must be 'block' or 'drop', not 'wait'"):
        Bus().subscribe(on_full="wait")


async def test_a_subscriber_that_stops_reading_holds_up_a_run_only_as_far_as_its_policy_says() -> None:
    plan = Plan().add(Node("a", FnBody(lambda x: 1)), Node("b", FnBody(lambda x: 2))).edge("a", "b")
    dropping, blocking = Bus(), Bus()
    lazy = dropping.subscribe(maxsize=1, on_full="drop")
    assert (await asyncio.wait_for(Scheduler(bus=dropping).run(plan), 5)).state is RunState.COMPLETED
    assert lazy.dropped > 0
    stuck = blocking.subscribe(maxsize=1)
    (driving,) = started(Scheduler(bus=blocking).run(plan))
    await turns(50)
    assert not driving.done()
    stuck.close()
    assert (await asyncio.wait_for(driving, 5)).state is RunState.COMPLETED


async def test_cancelling_a_run_that_a_full_stream_holds_up_ends_it_once_the_stream_lets_go() -> None:
    bus = Bus()
    scheduler = Scheduler(bus=bus)
    stuck = bus.subscribe("node_started", maxsize=1)
    plan = Plan().add(*[Node(key, FnBody(lambda x: 1)) for key in "ab"])
    (driving,) = started(scheduler.run(plan, run_id="r"))
    await turns()
    await scheduler.cancel("r")
    await turns()
    stuck.close()
    run = await asyncio.wait_for(driving, 5)
    assert (run.state, run.final_output) == (RunState.FAILED, "cancelled")


async def test_what_a_node_emits_presses_back_on_that_node() -> None:
    bus = Bus()
    stream = bus.subscribe("token", maxsize=2)
    emitted: list[int] = []

    async def talk(x: object, ctx: NodeContext) -> None:
        for n in range(20):
            await ctx.emit("token", n=n)
            emitted.append(n)

    (driving,) = started(Scheduler(bus=bus).run(Plan().add(Node("talk", FnBody(talk)))))
    await turns(50)
    assert len(emitted) == 2
    assert [(await stream.get())["n"] for _ in range(20)] == list(range(20))
    await driving


async def test_an_observer_may_add_to_the_run_that_it_hears_of() -> None:
    """A breakpoint set from within a handler is kept with the next batch; nobody waits for himself."""
    scheduler = Scheduler()

    async def stop_soon(evt: object) -> None:
        await scheduler.set_breakpoints("r", [{"every": "wave"}])

    undo = scheduler.bus.on("run_started", stop_soon)
    plan = Plan().add(Node("a", FnBody(lambda x: 1)), Node("b", FnBody(lambda x: 2))).edge("a", "b")
    run = await asyncio.wait_for(scheduler.run(plan, run_id="r"), 5)
    undo()
    assert run.state is RunState.SUSPENDED
    assert run.interrupts["@breakpoint"].payload["next"] == ["b"]


async def test_all_who_subscribed_share_one_item_that_none_of_them_can_change() -> None:
    bus = Bus()
    first, second = bus.subscribe(), bus.subscribe("told")
    await bus.fire("told", n=1)
    item = await first.get()
    with pytest.raises(TypeError):
        item["n"] = 2  # type: ignore[index]
    assert (await second.get()) is item == {"event": "told", "n": 1}
