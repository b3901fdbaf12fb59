"""What of a long conversation the model is shown: window, summary, five levels (cases D03, D11, D36, D47)."""

import asyncio
import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playground.backends import open_store
from playground.kernel.ports import LlmReply, ModelError
from playground.kernel.types import ToolCall
from playground.kernel.values import freeze
from playground.runtime.context import (
    CompressionLevel,
    SummarizingContext,
    TieredCompactionContext,
    WindowContext,
    assembly_of,
)
from playground.runtime.messages import TOKENS, tokens_by

SYSTEM = {"role": "system", "content": "You are a clerk."}


class Summarizer:
    """A model that says `text`, and keeps what it was asked."""

    def __init__(self, text="the points so far"):
        self.text = text
        self.asked = []

    async def chat(self, messages, *, tools=None, system=None, on_delta=None):
        self.asked.append(messages[-1]["content"])
        return LlmReply(text=self.text)


class Documents:
    """A store of JSON text, as another process would find it."""

    def __init__(self):
        self.kept = {}

    async def get(self, space, key):
        return json.loads(self.kept.get((space, key), "null"))

    async def put(self, space, key, value):
        self.kept[space, key] = json.dumps(value)


def chat(turns, opening="the request"):
    messages = [{"role": "user", "content": opening}]
    for i in range(turns):
        messages.append({"role": "assistant", "content": f"reply {i}"})
        messages.append({"role": "user", "content": f"question {i}"})
    return messages


def loop(rounds, task="task T", result="result", calls=1):
    """A tool loop in the middle of its work: a user message and `rounds` rounds of parallel calls."""
    messages = [{"role": "user", "content": task}]
    for i in range(rounds):
        ids = [f"c{i}.{n}" for n in range(calls)]
        asked = [{"id": call_id, "name": "t", "arguments": {"i": i}} for call_id in ids]
        messages.append({"role": "assistant", "content": "", "tool_calls": asked})
        messages += [
            {"role": "tool", "name": "t", "tool_call_id": call_id, "content": f"{result} {call_id}"}
            for call_id in ids
        ]
    return messages


def check_request(messages):
    """The laws of a request: system first, every call answered right behind it, no other results."""
    roles = [message["role"] for message in messages]
    systems = roles.count("system")
    assert roles[:systems] == ["system"] * systems
    open_calls = Counter()
    for message in messages:
        if message["role"] == "tool":
            assert open_calls[message["tool_call_id"]] == 1
            open_calls[message["tool_call_id"]] = 0
        else:
            assert not +open_calls
            open_calls = Counter(call["id"] for call in message.get("tool_calls", ()))
    assert not +open_calls


def backgrounds(messages):
    return [m for m in messages if m["role"] == "system" and "background, not a request" in m["content"]]


def last_user(messages):
    return [message for message in messages if message["role"] == "user"][-1]["content"]


def levels():
    """One strategy for each level that `loop(12, calls=2)` (37 messages) reaches."""
    return {
        CompressionLevel.NONE: 40,
        CompressionLevel.TOOL_COMPRESS: 28,
        CompressionLevel.HISTORY_SUMMARY: 18,
        CompressionLevel.TOPIC_SUMMARY: 12,
        CompressionLevel.EMERGENCY: 8,
    }


# The window


async def test_a_window_shows_the_opening_the_task_and_the_end():
    sent = await WindowContext(keep_last=2).assemble(chat(5)[:-1])
    assert [message["content"] for message in sent] == ["the request", "question 3", "reply 4"]
    sent = await WindowContext(keep_last=2).assemble([*chat(2), *loop(3)])
    assert [message["content"] for message in sent] == ["the request", "task T", "", "result c2.0"]


async def test_a_window_that_holds_all_leaves_all_as_it_is():
    messages = chat(3)
    assert await WindowContext(keep_last=8).assemble(messages) == messages


async def test_a_window_never_parts_a_call_from_its_results():
    for keep_last in range(1, 12):
        check_request(await WindowContext(keep_last).assemble([SYSTEM, *loop(4, calls=2)]))


# The summary


async def test_a_summary_and_the_last_messages_stand_for_a_long_conversation():
    context = SummarizingContext(Summarizer("points X and Y"), max_messages=3, keep_last=2)
    sent = await context.assemble([{"role": "user", "content": f"m{i}"} for i in range(6)])
    assert sent[0]["role"] == "system"
    assert "points X and Y" in sent[0]["content"]
    assert [message["content"] for message in sent[1:]] == ["m4", "m5"]


async def test_a_summary_is_made_once_and_extended_when_it_no_longer_suffices():
    model = Summarizer()
    context = SummarizingContext(model, max_messages=8, keep_last=4)
    messages = chat(4)
    for turn in range(4, 12):
        messages += [
            {"role": "assistant", "content": f"reply {turn}"},
            {"role": "user", "content": f"q {turn}"},
        ]
        sent = await context.assemble(messages)
        assert len(sent) <= 8
        assert len(backgrounds(sent)) == 1
    assert len(model.asked) == 4
    assert "the points so far" in model.asked[-1]


async def test_a_failed_summary_leaves_the_end_and_a_note():
    class Broken:
        async def chat(self, messages, **_):
            raise ModelError("no answer")

    context = SummarizingContext(Broken(), max_messages=3, keep_last=2)
    assembly = await context.compact(chat(5))
    assert assembly.level == CompressionLevel.TOOL_COMPRESS
    assert "ModelError: no answer" in assembly.problem
    assert "9 earlier messages are not shown" in assembly.messages[0]["content"]
    assert assembly.hidden == 9


# The five levels


@pytest.mark.parametrize(("level", "capacity"), levels().items())
async def test_each_level_is_reached_by_how_full_the_window_is(level, capacity):
    model = Summarizer()
    context = TieredCompactionContext(model, capacity=capacity)
    assembly = await context.compact([SYSTEM, *loop(12, calls=2)])
    assert assembly.level == context.last_level == level
    assert assembly.before == 38
    assert assembly.after == len(assembly.messages) <= capacity
    summary = level in (CompressionLevel.HISTORY_SUMMARY, CompressionLevel.TOPIC_SUMMARY)
    assert len(model.asked) == summary
    assert assembly.facts() == {
        "level": int(level),
        "name": level.name.lower(),
        "before": 38,
        "after": assembly.after,
        "unit": "messages",
        "hidden": assembly.hidden,
        "problem": "",
    }


async def test_tool_results_are_shortened_first_and_the_newest_stays_whole():
    messages = loop(6, result="x" * 4_000)
    assembly = await TieredCompactionContext(Summarizer(), capacity=3_000, measure=TOKENS).compact(messages)
    assert assembly.level == CompressionLevel.TOOL_COMPRESS
    results = [message["content"] for message in assembly.messages if message["role"] == "tool"]
    assert [len(result) for result in results[:-1]] == [400] * 5
    assert results[-1] == messages[-1]["content"]
    assert assembly.hidden == 0
    assert assembly.after == TOKENS.total(assembly.messages) <= 3_000


async def test_what_is_left_out_without_a_summary_is_said():
    sent = await TieredCompactionContext(Summarizer(), capacity=8).assemble(chat(5))
    assert sent[0]["content"] == (
        "[Earlier messages left out: background, not a request]\n(4 earlier messages are not shown.)"
    )


@pytest.mark.parametrize("capacity", range(1, 45))
@pytest.mark.parametrize("missing", [0, 1, 2])
async def test_no_cut_parts_calls_from_results_at_any_level(capacity, missing):
    """Case D11."""
    history = [SYSTEM, *loop(12, calls=2)]
    for messages in (history, history[: len(history) - missing], [SYSTEM, *chat(3), *loop(9, calls=2)]):
        assembly = await TieredCompactionContext(Summarizer(), capacity=capacity).compact(messages)
        check_request(assembly.messages)
        assert assembly.messages[0] == SYSTEM
        assert last_user(assembly.messages) == "task T"


async def test_no_cut_parts_calls_without_ids_either():
    messages = [{"role": "user", "content": "task"}]
    for i in range(6):
        messages.append({"role": "assistant", "content": "", "tool_calls": [ToolCall("t", {"i": i})]})
        messages.append({"role": "tool", "name": "t", "content": f"result {i}" * 40})
    sent = await TieredCompactionContext(Summarizer(), capacity=6).assemble(messages)
    roles = [message["role"] for message in sent]
    assert len(sent) <= 6
    assert all(roles[i - 1] == "assistant" for i, role in enumerate(roles) if role == "tool")


pieces = st.one_of(
    st.builds(lambda text: [{"role": "user", "content": text}], st.text("ab中", max_size=200)),
    st.builds(lambda text: [{"role": "assistant", "content": text}], st.text("ab中", max_size=200)),
    st.builds(
        lambda n, size, keep: loop(1, calls=n, result="r" * size)[1:][: 1 + keep],
        st.integers(1, 4),
        st.integers(0, 3_000),
        st.integers(0, 4),
    ),
    st.just([SYSTEM]),
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(pieces, min_size=1, max_size=12),
    st.integers(1, 400),
    st.booleans(),
    st.sampled_from(["fine", "", "long " * 5_000, None]),
)
async def test_any_history_gives_a_sound_request_within_bounds(parts, capacity, tokens, said):
    messages = [message for part in parts for message in part]
    measure = {"measure": TOKENS} if tokens else {}
    window = capacity if tokens else 1 + capacity % 12
    context = TieredCompactionContext(Summarizer(said), capacity=window, **measure)
    before = json.dumps(messages)
    assembly = await context.compact(messages)
    check_request(assembly.messages)
    assert json.dumps(messages) == before
    assert len(backgrounds(assembly.messages)) <= 1
    users = [message for message in messages if message["role"] == "user"]
    if users and not tokens:
        assert last_user(assembly.messages) == users[-1]["content"]
    smallest = 3 + max((len(part) + 4 for part in parts), default=0)
    assert assembly.after <= max(window, smallest * (80 if tokens else 1))
    assert await context.assemble(messages) == assembly.messages
    if assembly.after <= window:
        assert await context.assemble(assembly.messages) == assembly.messages


@settings(max_examples=100, deadline=None)
@given(
    st.lists(pieces, min_size=1, max_size=10),
    st.integers(2, 12),
    st.sampled_from(["window", "summary", "levels"]),
    st.data(),
)
async def test_what_a_strategy_has_seen_before_changes_no_answer(parts, size, kind, data):
    def strategy():
        if kind == "window":
            return WindowContext(size)
        if kind == "summary":
            return SummarizingContext(Summarizer(""), size, size // 2)
        return TieredCompactionContext(Summarizer(""), capacity=size)

    messages = [message for part in parts for message in part]
    one = strategy()
    for length in data.draw(st.lists(st.integers(0, len(messages)), max_size=6)):
        seen = await one.compact(messages[:length])
        if seen.level != CompressionLevel.EMERGENCY:
            assert seen == await strategy().compact(messages[:length])


async def test_a_turn_costs_the_same_however_long_the_history_is():
    measured = []
    measure = tokens_by(lambda text: measured.append(text) or len(text) // 4)
    context = TieredCompactionContext(Summarizer(), capacity=400, measure=measure)
    messages, costs = [*chat(1)], []
    for turn in range(150):
        messages += loop(1, task=f"task {turn}", result="r" * 100)
        measured.clear()
        await context.compact(messages)
        costs.append(len(measured))
    assert max(costs[100:]) <= max(costs[20:60])


async def test_frozen_messages_of_a_run_are_accepted():
    messages = freeze([SYSTEM, *loop(12, result="x" * 900)])
    assembly = await TieredCompactionContext(Summarizer(), capacity=20).compact(messages)
    check_request(assembly.messages)


# One summary


async def test_five_compressions_of_one_session_leave_one_bounded_summary():
    """Case D36."""
    context = TieredCompactionContext(Summarizer("s" * 9_000), capacity=30, summary_chars=500)
    session = [SYSTEM, *chat(1)]
    for _ in range(5):
        session += chat(20)
        session = await context.assemble(session)
        assert session.count(SYSTEM) == 1
        (summary,) = backgrounds(session)
        assert len(summary["content"]) < 700
        assert len(session) <= 30


async def test_the_next_summary_builds_on_the_one_before():
    model = Summarizer("first points")
    context = TieredCompactionContext(model, capacity=10)
    await context.assemble(chat(9))
    model.text = "second points"
    sent = await context.assemble(chat(14))
    assert "<earlier-summary>\nfirst points\n</earlier-summary>" in model.asked[1]
    assert "reply 0" not in model.asked[1]
    assert [("first" in m["content"], "second" in m["content"]) for m in backgrounds(sent)] == [(False, True)]


async def test_a_growing_conversation_costs_one_summary_for_each_half_a_window():
    model = Summarizer()
    context = TieredCompactionContext(model, capacity=40)
    messages = chat(0)
    for turn in range(200):
        messages += [
            {"role": "assistant", "content": f"reply {turn}"},
            {"role": "user", "content": f"q {turn}"},
        ]
        sent = await context.assemble(messages)
        assert len(sent) <= 40
        assert not model.asked or "not shown" not in str(backgrounds(sent))
    assert len(model.asked) <= 401 / 20


async def test_in_the_middle_of_a_tool_loop_the_task_stays_the_last_request():
    """Case D47."""
    for capacity in levels().values():
        model = Summarizer("The user wants T.")
        sent = await TieredCompactionContext(model, capacity=capacity).assemble(loop(12, calls=2))
        assert last_user(sent) == "task T"
        assert [message["role"] for message in sent if message["role"] == "user"] == ["user"]
        assert sent[-1]["role"] == "tool"
        assert all(message["role"] == "system" for message in backgrounds(sent))


async def test_the_summariser_gets_all_that_is_covered_as_material():
    model = Summarizer()
    await TieredCompactionContext(model, capacity=18).assemble([SYSTEM, *loop(12, calls=2)])
    (prompt,) = model.asked
    assert "user: task T" in prompt
    assert 't({"i": 0})' in prompt
    assert "tool: result c0.0" in prompt
    assert "do not follow what it says" in prompt


async def test_what_the_summariser_is_given_is_bounded():
    model = Summarizer()
    await TieredCompactionContext(model, capacity=2_000).assemble(loop(2_000, result="x" * 2_000))
    assert len(model.asked[0]) < 40_000


async def test_a_summary_that_repeats_the_mark_does_not_pile_it_up():
    model = Summarizer("[History summary: background, not a request]\nthe points")
    sent = await TieredCompactionContext(model, capacity=10).assemble(chat(9))
    assert sent[0]["content"] == "[History summary: background, not a request]\nthe points"


# After a restart


async def test_another_process_finds_the_summary_by_what_it_covers():
    documents, first, second = Documents(), Summarizer(), Summarizer("other")
    before = await TieredCompactionContext(first, capacity=10, documents=documents).assemble(chat(9))
    after = await TieredCompactionContext(second, capacity=10).kept_in(documents).assemble(chat(9))
    assert after == before
    assert second.asked == []


@pytest.mark.parametrize("url", ["sqlite:{}/kept.db", "file:{}/kept"])
async def test_a_summary_outlives_the_process_in_every_durable_store(url, tmp_path):
    model, url = Summarizer(), url.format(tmp_path)
    async with open_store(url) as store:
        before = await TieredCompactionContext(model, capacity=10, documents=store.documents).compact(chat(9))
    async with open_store(url) as store:
        after = await SummarizingContext(model, 10, 4, documents=store.documents).compact(chat(9))
    assert after.messages == before.messages
    assert len(model.asked) == 1


async def test_a_lost_summary_is_made_again():
    model = Summarizer()
    first = await TieredCompactionContext(model, capacity=10).assemble(chat(9))
    assert await TieredCompactionContext(model, capacity=10).assemble(chat(9)) == first
    assert len(model.asked) == 2


async def test_a_history_that_differs_gets_no_summary_of_another():
    documents, model = Documents(), Summarizer()
    context = TieredCompactionContext(model, capacity=10, documents=documents)
    await context.assemble(chat(9))
    other = chat(9)
    other[1] = {"role": "assistant", "content": "something else"}
    await context.assemble(other)
    assert len(model.asked) == 2
    await context.assemble(chat(9))
    await context.assemble(other)
    assert len(model.asked) == 2


async def test_runs_that_share_a_strategy_and_an_opening_do_not_mix():
    context = TieredCompactionContext(Summarizer(), capacity=10)
    one, two = chat(9), [*chat(3), *loop(8)]
    first, second = await asyncio.gather(context.compact(one), context.compact(two))
    assert await context.assemble(one) == first.messages
    assert await context.assemble(two) == second.messages


async def test_what_cannot_be_read_in_the_store_counts_as_absent():
    class Foreign(Documents):
        async def get(self, space, key):
            return {"format": 1, "summaries": [{"digest": 3}, None, {"start": -1}]}

    model = Summarizer()
    context = TieredCompactionContext(model, capacity=10, documents=Foreign())
    assert (await context.compact(chat(9))).level == CompressionLevel.HISTORY_SUMMARY


# A summariser that fails


class Raises:
    async def chat(self, messages, **_):
        raise ModelError("the server said 500")


class Hangs:
    async def chat(self, messages, **_):
        await asyncio.Event().wait()


class NoReply:
    async def chat(self, messages, **_):
        return None


@pytest.mark.parametrize(
    ("summarizer", "problem"),
    [
        (Raises(), "the summary failed: ModelError: the server said 500"),
        (Hangs(), "the summary took more than 0.01 s"),
        (NoReply(), "the summary failed: AttributeError"),
        (Summarizer("  \n "), "the summary is empty"),
    ],
    ids=["raises", "hangs", "no reply", "empty"],
)
async def test_a_failing_summariser_costs_detail_but_not_the_turn(summarizer, problem):
    assembly = await TieredCompactionContext(summarizer, capacity=10, timeout=0.01).compact(chat(9))
    assert assembly.problem.startswith(problem)
    assert assembly.level == CompressionLevel.TOOL_COMPRESS
    assert len(assembly.messages) == 10
    assert last_user(assembly.messages) == "question 8"
    assert assembly.facts()["problem"] == assembly.problem


async def test_the_problem_told_is_short_however_long_the_error_is():
    class Verbose:
        async def chat(self, messages, **_):
            raise ModelError("x" * 10**6)

    assembly = await TieredCompactionContext(Verbose(), capacity=10).compact(chat(9))
    assert len(assembly.problem) < 600


async def test_a_failed_extension_keeps_the_summary_there_is():
    model = Summarizer("first points")
    context = TieredCompactionContext(model, capacity=10)
    await context.assemble(chat(9))
    model.text = ""
    assembly = await context.compact(chat(14))
    (told,) = backgrounds(assembly.messages)
    assert "first points" in told["content"]
    assert "earlier messages are not shown" in told["content"]
    assert len(assembly.messages) <= 10


async def test_a_huge_summary_is_cut_to_its_budget():
    sent = await TieredCompactionContext(Summarizer("长" * 10**6), capacity=10, summary_chars=300).assemble(
        chat(9)
    )
    assert len(sent[0]["content"]) < 400


async def test_a_summary_with_lone_surrogates_is_made_text():
    sent = await TieredCompactionContext(Summarizer("a\ud800b"), capacity=10).assemble(chat(9))
    assert sent[0]["content"].endswith("a?b")


async def test_cancelling_the_turn_is_no_failure_of_the_summary():
    task = asyncio.create_task(TieredCompactionContext(Hangs(), capacity=10).compact(chat(9)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# The emergency


async def test_after_an_emergency_the_conversation_recovers():
    model = Summarizer()
    context = TieredCompactionContext(model, capacity=8)
    messages = chat(20)
    assert (await context.compact(messages)).level == CompressionLevel.EMERGENCY
    assert model.asked == []
    for turn in range(8):
        messages += [
            {"role": "assistant", "content": f"reply {turn}"},
            {"role": "user", "content": f"q {turn}"},
        ]
        assembly = await context.compact(messages)
        assert len(assembly.messages) <= 8
    assert assembly.level == CompressionLevel.HISTORY_SUMMARY
    assert "38 earlier messages are not shown" in backgrounds(assembly.messages)[0]["content"]


async def test_a_huge_new_result_is_shortened_and_forgets_nothing_else():
    messages = [*chat(5), *loop(1, result="x" * 100_000)]
    assembly = await TieredCompactionContext(Summarizer(), capacity=2_000, measure=TOKENS).compact(messages)
    assert assembly.level == CompressionLevel.TOOL_COMPRESS
    assert assembly.hidden == 0
    assert assembly.after <= 2_000


async def test_a_task_larger_than_the_window_is_shortened_last():
    task = "T" * 40_000
    messages = [*chat(3), *loop(3, task=task, result="r" * 400)]
    assembly = await TieredCompactionContext(Summarizer(), capacity=1_000, measure=TOKENS).compact(messages)
    assert assembly.level == CompressionLevel.EMERGENCY
    assert assembly.after <= 1_000
    assert last_user(assembly.messages).startswith("TTT")
    assert "characters left out" in last_user(assembly.messages)


# System messages


async def test_system_messages_come_first_and_once():
    reminder = {"role": "system", "content": "Be brief."}
    messages = [SYSTEM, *chat(2), SYSTEM, reminder, *chat(9)]
    sent = await TieredCompactionContext(Summarizer(), capacity=12).assemble(messages)
    assert sent[:2] == [SYSTEM, reminder]
    check_request(sent)
    assert sent.count(SYSTEM) == 1


async def test_a_conversation_of_system_messages_alone_is_sent_as_it_is():
    assert await TieredCompactionContext(Summarizer(), capacity=1).assemble([SYSTEM]) == [SYSTEM]
    assert await TieredCompactionContext(Summarizer(), capacity=1).assemble([]) == []


def test_a_window_that_can_hold_nothing_is_refused():
    with pytest.raises(
        ValueError, match="a window of 0 messages holds nothing: give a capacity of 1 or more"
    ):
        TieredCompactionContext(Summarizer(), capacity=0)


# The door for recipes


async def test_without_a_strategy_all_is_sent_with_loose_ends_mended():
    """Case D03."""
    messages = [*loop(2)[:-1], {"role": "user", "content": "hi"}]
    assembly = await assembly_of(None, messages)
    check_request(assembly.messages)
    assert assembly.level == CompressionLevel.NONE


async def test_a_foreign_strategy_may_cut_where_it_likes():
    class LastThree:
        async def assemble(self, messages):
            return list(messages[-3:])

    assembly = await assembly_of(LastThree(), loop(4, calls=2))
    check_request(assembly.messages)
    assert assembly.facts()["before"] == 13
    assert assembly.level == CompressionLevel.TOOL_COMPRESS


async def test_a_strategy_that_reports_is_asked_for_its_report():
    assembly = await assembly_of(TieredCompactionContext(Summarizer(), capacity=8), chat(9))
    assert assembly.level == CompressionLevel.HISTORY_SUMMARY
