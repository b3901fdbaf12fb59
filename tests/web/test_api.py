"""The JSON API as programs see it: each call, each refusal, over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.conftest import Client, serving

RUN = "/api/runs/{}"


def problem(answer: object, status: int) -> dict[str, object]:
    """The problem document of an answer, which must be one with that status."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found = answer.json()
    assert found["status"] == status
    assert found["title"]
    assert found["detail"]
    return found


# Scenarios


def test_the_list_of_scenarios_names_all_files_and_why_one_does_not_load(client: Client) -> None:
    found = {entry["key"]: entry for entry in client.get("/api/scenarios").json()}

    assert found["asks"]["default_input"] == "lamp"
    assert found["asks"]["concepts"] == ["approval"]
    assert "line 1: SyntaxError" in found["broken"]["error"]


def test_scenarios_speak_the_language_that_is_asked_for(client: Client) -> None:
    by_query = client.get("/api/scenarios/asks?lang=zh").json()
    by_header = client.get("/api/scenarios/asks", headers={"accept-language": "zh-CN"}).json()

    assert by_query["default_input"] == by_header["default_input"] == "灯"


def test_a_scenario_comes_with_its_topology_and_its_source(client: Client) -> None:
    found = client.get("/api/scenarios/asks").json()

    assert [node["key"] for node in found["topology"]["nodes"]] == ["draft", "check"]
    assert "wait_human" in found["source"]


def test_an_unknown_scenario_is_a_problem(client: Client) -> None:
    assert "there is no scenario 'nope'" in problem(client.get("/api/scenarios/nope"), 404)["detail"]


# Starting


def test_a_new_run_is_created_with_its_address(client: Client) -> None:
    made = client.post("/api/runs", json={"scenario": "greets", "input": "Ana"})

    assert made.status_code == 201
    run = made.json()
    assert run["url"] == f"/runs/{run['run_id']}" == made.headers["location"]
    assert client.until(run["run_id"], "completed")["output"] == "Hello, Ana!"


def test_without_an_input_a_run_takes_the_default_of_its_language(client: Client) -> None:
    run_id = client.start("greets", "completed", lang="zh")

    assert client.get(RUN.format(run_id)).json()["output"] == "Hello, 灯!"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"scenario": "nope"}, 404),
        ({"scenario": "broken"}, 409),
        ({"scenario": "greets", "continues": "run-000000000000"}, 404),
        ({}, 422),
        ({"scenario": 7}, 422),
        ({"scenario": "greets", "input": {"a": 1}}, 422),
        ({"scenario": "greets", "inputs": "typo"}, 422),
        ({"scenario": "greets", "lang": "fr"}, 422),
        ({"scenario": "greets", "options": []}, 422),
        ({"scenario": "greets", "options": {"step": "yes"}}, 422),
        ({"scenario": "greets", "options": {"breakpoints": [{"whenever": 1}]}}, 422),
    ],
)
def test_a_run_that_cannot_be_started_is_refused(client: Client, body: object, status: int) -> None:
    problem(client.post("/api/runs", json=body), status)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"   ", 400),
        (b"{", 400),
        (b"[]", 400),
        (b'"text"', 400),
        (b"null", 400),
        (b'{"scenario": "greets", "scenario": "asks"}', 400),
        (b'{"scenario": "greets", "input": NaN}', 400),
        (b'{"scenario": "greets", "input": 1e999}', 400),
        (b'{"scenario": "greets", "input": "\\ud800"}', 400),
        (b'{"scenario": "greets", "input": ' + b"9" * 5000 + b"}", 400),
        (b'{"scenario": "\xff"}', 400),
        (b"\xef\xbb\xbf{}", 400),
        (b"[" * 100_000, 400),
        (b'{"a":' * 3000 + b"1" + b"}" * 3000, 400),
        (b'{"scenario": "greets", "input": ' + b"[" * 200 + b"]" * 200 + b"}", 400),
        (b'{"input": "' + b"x" * (1 << 20) + b'"}', 413),
    ],
)
def test_a_body_that_is_no_json_object_is_refused(client: Client, body: bytes, status: int) -> None:
    headers = {"content-type": "application/json"}

    problem(client.post("/api/runs", content=body, headers=headers), status)


def test_a_body_that_comes_in_pieces_is_measured_too(client: Client) -> None:
    def pieces() -> object:
        for _ in range(20):
            yield b" " * 100_000

    problem(client.post("/api/runs", content=pieces(), headers={"content-type": "application/json"}), 413)


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_a_body_of_another_type_is_refused(client: Client, kind: str) -> None:
    headers = {"content-type": kind} if kind else {}

    problem(client.post("/api/runs", content=b'{"scenario": "greets"}', headers=headers), 415)


def test_every_refusal_leaves_the_list_of_runs_as_it_was(client: Client) -> None:
    before = client.get("/api/runs?limit=200").json()["runs"]
    client.post("/api/runs", json={"scenario": "greets", "input": 1})
    client.post("/api/runs", content=b"{", headers={"content-type": "application/json"})

    assert client.get("/api/runs?limit=200").json()["runs"] == before


# Looking


def test_a_run_is_told_whole(client: Client) -> None:
    run = client.until(client.start("asks"), "suspended")

    assert run["scenario"] == "asks"
    assert run["task"] == "lamp"
    assert run["driven"] is False
    assert run["output"] is None
    assert run["error"] is None
    assert run["last_event_id"] == len(client.kinds(run["run_id"]))
    (asked,) = run["interrupts"]
    assert (asked["id"], asked["node"], asked["kind"], asked["question"]) == (
        "check",
        "check",
        "approval",
        "Pay?",
    )
    assert asked["payload"] == {"amount": 40, "urgent": True}
    assert asked["schema"]["required"] == ["amount"]
    assert asked["follows"] == {"approve": [], "reject": []}


@pytest.mark.parametrize(
    ("scenario", "question", "next_nodes"),
    [("nested_approval", "pay/confirm", ["charge"]), ("aiops", "repairer/tools/resize_pool", ["think"])],
)
def test_a_question_from_inside_names_what_follows_where_it_was_asked(
    scenario: str, question: str, next_nodes: list[str]
) -> None:
    with serving(store="memory:") as bundled:
        run = bundled.until(bundled.start(scenario), "suspended")
        (asked,) = run["interrupts"]
        assert (asked["id"], asked["follows"]) == (question, {"approve": next_nodes, "reject": next_nodes})
        bundled.post(f"/api/runs/{run['run_id']}/resume", json={"answers": {question: {"approved": True}}})
        bundled.until(run["run_id"], "completed")
        shown = bundled.get(f"/runs/{run['run_id']}").text
    assert f"approved <code>{question.rpartition('/')[2]}</code>" in shown


def test_a_failed_run_says_why(client: Client) -> None:
    run = client.until(client.start("fails"), "failed")

    assert "it is on fire" in run["error"]


def test_the_list_is_newest_first_and_can_be_narrowed_and_paged(client: Client) -> None:
    ids = [client.start("greets", "completed", input=f"narrow {n}") for n in range(3)]

    def found(query: str) -> dict[str, object]:
        return client.get(f"/api/runs?{query}").json()

    assert [run["run_id"] for run in found("q=NARROW")["runs"]] == ids[::-1]
    assert found("q=narrow&state=failed")["runs"] == []
    assert found("q=narrow&scenario=asks")["runs"] == []
    first = found("q=narrow&limit=2")
    second = found(f"q=narrow&limit=2&cursor={first['next']}")
    assert [run["run_id"] for run in first["runs"] + second["runs"]] == ids[::-1]
    assert second["next"] is None


@pytest.mark.parametrize(
    "query", ["state=asleep", "limit=0", "limit=-1", "limit=many", "limit=1.5", "cursor=x"]
)
def test_a_query_that_cannot_be_is_a_problem(client: Client, query: str) -> None:
    problem(client.get(f"/api/runs?{query}"), 422)


def test_events_come_in_order_with_their_positions(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    events = client.get(f"/api/runs/{run_id}/events").json()

    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    assert events[0].keys() == {"id", "seq", "run_id", "parent_id", "kind", "ts", "data"}
    assert events[0]["kind"] == "run_started"
    assert client.get(f"/api/runs/{run_id}/events?after=3").json() == events[3:]
    assert client.get(f"/api/runs/{run_id}/events?after=999").json() == []


def test_a_run_can_be_seen_as_it_was_at_any_event(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    kinds = client.kinds(run_id)
    before = client.get(f"/api/runs/{run_id}/state?at={kinds.index('state_delta')}").json()
    after = client.get(f"/api/runs/{run_id}/state?at={kinds.index('state_delta') + 1}").json()
    now = client.get(f"/api/runs/{run_id}/state").json()

    assert before["shared"] == {}
    assert after["shared"] == {"topic": "lamp", "amount": 40}
    assert before["nodes"]["draft"]["status"] == "completed"
    assert before["nodes"]["check"]["why"]["code"] == "edges"
    assert now["state"] == "suspended"
    assert now["nodes"]["check"]["why"] == {"code": "parked", "nodes": ["check"]}
    assert [asked["id"] for asked in now["interrupts"]] == ["check"]


@pytest.mark.parametrize(("at", "status"), [("0", 422), ("-1", 422), ("x", 422), ("1e3", 422), ("999", 404)])
def test_a_moment_that_never_was_is_a_problem(client: Client, at: str, status: int) -> None:
    run_id = client.start("asks", "suspended")

    problem(client.get(f"/api/runs/{run_id}/state?at={at}"), status)


@pytest.mark.parametrize("after", ["-1", "x", "1.5", "9" * 40])
def test_a_position_that_is_no_number_is_a_problem(client: Client, after: str) -> None:
    run_id = client.start("greets", "completed")

    problem(client.get(f"/api/runs/{run_id}/events?after={after}"), 422)


@pytest.mark.parametrize(
    "run_id",
    [
        "run-000000000000",
        "nope",
        "..",
        "a%2Fb",
        "%2e%2e%2f%2e%2e",
        "a%00b",
        "x" * 300,
        "run~1",
        "~",
        "%F0%9F%98%80",
    ],
)
@pytest.mark.parametrize("call", ["", "/events", "/state", "/export"])
def test_an_id_of_no_run_is_not_found(client: Client, run_id: str, call: str) -> None:
    """Case D42: no id reaches a file system."""
    assert client.get(f"/api/runs/{run_id}{call}").status_code == 404


# Child runs


@pytest.fixture(scope="module")
def parked_child() -> Iterator[tuple[Client, str]]:
    """A client, and the id of a child run that waits for an answer."""
    with serving(store="memory:") as bundled:
        yield bundled, bundled.until(bundled.start("nested_approval"), "suspended")["children"][0]


@pytest.mark.parametrize(
    ("method", "call", "body"),
    [
        ("POST", "/resume", {"answers": {"pay/confirm": {"approved": True}}}),
        ("POST", "/pause", None),
        ("POST", "/step", None),
        ("POST", "/continue", None),
        ("POST", "/cancel", None),
        ("POST", "/crash", None),
        ("PUT", "/breakpoints", {"breakpoints": []}),
        ("POST", "/fork", {"at": 2}),
        ("DELETE", "", None),
    ],
)
def test_a_child_run_is_decided_and_steered_by_its_root_alone(
    parked_child: tuple[Client, str], method: str, call: str, body: object
) -> None:
    client, child = parked_child
    root = child.partition("~")[0]
    before = client.get(f"/api/runs/{root}/export").text
    refused = client.request(method, f"/api/runs/{child}{call}", **({"json": body} if body else {}))

    assert problem(refused, 409)["detail"] == f"run {child} is a child run: name its root run, {root}"
    assert client.get(f"/api/runs/{root}/export").text == before


@pytest.mark.parametrize("call", ["", "/events", "/state", "/export"])
def test_a_child_run_can_be_read_and_one_that_never_was_is_not_found(
    parked_child: tuple[Client, str], call: str
) -> None:
    client, child = parked_child

    assert client.get(f"/api/runs/{child}{call}").status_code == 200
    problem(client.get(f"/api/runs/{child}9{call}"), 404)
    problem(client.get(f"/api/runs/{child}~{call}"), 404)


# Deciding


def test_an_approval_with_edited_fields_keeps_their_types(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    answers = {"check": {"approved": True, "value": {"amount": 55}, "comment": "fine"}}
    accepted = client.post(f"/api/runs/{run_id}/resume", json={"answers": answers, "by": "Ana"})

    assert accepted.status_code == 202
    assert client.until(run_id, "completed")["output"] == "True 55 fine"


def test_a_rejection_takes_its_reason_along(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    answers = {"check": {"approved": False, "comment": "too dear"}}
    client.post(f"/api/runs/{run_id}/resume", json={"answers": answers})

    assert client.until(run_id, "completed")["output"] == "False None too dear"


@pytest.mark.parametrize("value", [False, 0, "", [], {}, None, "blue"])
def test_any_value_can_be_the_answer_to_a_question(client: Client, value: object) -> None:
    """Case D07: an answer is not taken for none because it is false."""
    run_id = client.start("wonders", "suspended")
    client.post(f"/api/runs/{run_id}/resume", json={"answers": {"ask": {"value": value}}})

    assert client.until(run_id, "completed")["output"] == repr(value)


@pytest.mark.parametrize(
    ("scenario", "interrupt", "status", "said"),
    [
        ("asks", "nope", 404, "never asked 'nope'; it waits for check"),
        ("asks", "check", 422, "check needs a verdict: approve or reject it"),
        ("wonders", "ask", 422, "ask needs a value: answer it"),
    ],
)
def test_an_answer_that_answers_nothing_is_told_what_is_asked(
    client: Client, scenario: str, interrupt: str, status: int, said: str
) -> None:
    run_id = client.start(scenario, "suspended")

    assert said in str(problem(client.answer(run_id, interrupt), status)["detail"])
    assert client.until(run_id, "suspended")["interrupts"]


def test_who_comes_second_is_told_what_was_decided(client: Client) -> None:
    """Case D05, one after the other."""
    run_id = client.start("asks", "suspended")
    first = {"answers": {"check": {"approved": True}}, "by": "Ana"}
    client.post(f"/api/runs/{run_id}/resume", json=first)
    client.until(run_id, "completed")
    events = client.kinds(run_id)
    second = client.post(f"/api/runs/{run_id}/resume", json={"answers": {"check": {"approved": False}}})

    found = problem(second, 409)
    assert "already approved by Ana" in found["detail"]
    assert found["decision"]["outcome"] == "approved"
    assert found["decision"]["by"] == "Ana"
    assert client.kinds(run_id) == events


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"answers": {"other": {"approved": True}}}, 404),
        ({"answers": {"check": {"approved": True}, "other": {"approved": True}}}, 404),
        ({"answers": {}}, 422),
        ({}, 422),
        ({"answers": []}, 422),
        ({"answers": {"check": True}}, 422),
        ({"answers": {"check": {}}}, 422),
        ({"answers": {"check": {"approved": "yes"}}}, 422),
        ({"answers": {"check": {"value": {"amount": 7}}}}, 422),
        ({"answers": {"check": {"approved": True, "value": {"amount": "many"}}}}, 422),
        ({"answers": {"check": {"approved": True, "value": {"amount": 101}}}}, 422),
        ({"answers": {"check": {"approved": True, "value": {}}}}, 422),
        ({"answers": {"check": {"approved": True, "values": {}}}}, 422),
        ({"answers": {"check": {"approved": True, "comment": 5}}}, 422),
        ({"answers": {"check": {"approved": True}}, "by": "x" * 500}, 422),
    ],
)
def test_an_answer_that_will_not_do_changes_nothing(client: Client, body: object, status: int) -> None:
    run_id = client.start("asks", "suspended")
    before = client.get(f"/api/runs/{run_id}").json()

    problem(client.post(f"/api/runs/{run_id}/resume", json=body), status)
    assert client.get(f"/api/runs/{run_id}").json() == before


def test_a_field_that_does_not_fit_is_named(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    answers = {"check": {"approved": True, "value": {"amount": 101}}}
    found = problem(client.post(f"/api/runs/{run_id}/resume", json={"answers": answers}), 422)

    assert found["errors"].keys() == {"amount"}


# Steering


def test_a_run_can_be_stepped_wave_by_wave_and_then_let_go(client: Client) -> None:
    run_id = client.start("counts", "suspended", options={"step": True})
    assert client.get(f"/api/runs/{run_id}").json()["interrupts"][0]["kind"] == "breakpoint"
    assert client.post(f"/api/runs/{run_id}/step").status_code == 202
    waves = client.until(run_id, "suspended")["waves"]
    client.put(f"/api/runs/{run_id}/breakpoints", json={"breakpoints": []})
    assert client.post(f"/api/runs/{run_id}/continue", json={}).status_code == 202

    run = client.until(run_id, "completed")
    assert waves < run["waves"] == 20


def test_a_breakpoint_on_a_value_parks_the_run(client: Client) -> None:
    condition = {"channel": "n", "op": ">=", "value": 5}
    run_id = client.start("counts", "suspended", options={"breakpoints": [condition]})

    assert client.get(f"/api/runs/{run_id}/state").json()["shared"]["n"] == 5


def test_breakpoints_can_be_replaced_while_a_run_waits(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    put = client.put(f"/api/runs/{run_id}/breakpoints", json={"breakpoints": [{"before": "check"}]})

    assert put.status_code == 200
    assert client.get(f"/api/runs/{run_id}").json()["breakpoints"] == [{"before": "check"}]
    bad = client.put(f"/api/runs/{run_id}/breakpoints", json={"breakpoints": [{"never": 1}]})
    assert "is not a breakpoint" in problem(bad, 422)["detail"]


def test_cancelling_ends_a_run_in_failure(client: Client) -> None:
    run_id = client.start("sleeps", "running")
    assert client.post(f"/api/runs/{run_id}/cancel").status_code == 202

    run = client.until(run_id, "failed")
    assert run["error"] == "cancelled"
    assert client.kinds(run_id)[-1] == "run_failed"


def test_a_crashed_run_can_be_continued(client: Client) -> None:
    run_id = client.start("sleeps", "running")
    assert client.post(f"/api/runs/{run_id}/crash").status_code == 202
    assert client.get(f"/api/runs/{run_id}").json()["driven"] is False
    assert client.post(f"/api/runs/{run_id}/continue").status_code == 202
    run = client.get(f"/api/runs/{run_id}").json()
    assert (run["state"], run["driven"]) == ("running", True)
    client.post(f"/api/runs/{run_id}/cancel")


@pytest.mark.parametrize("call", ["pause", "step", "continue", "cancel", "crash"])
def test_a_command_that_makes_no_sense_now_is_a_conflict(client: Client, call: str) -> None:
    run_id = client.start("greets", "completed")

    problem(client.post(f"/api/runs/{run_id}/{call}"), 409)
    problem(client.post(f"/api/runs/run-000000000000/{call}"), 404)


def test_a_command_takes_no_foreign_body(client: Client) -> None:
    run_id = client.start("asks", "suspended")

    problem(
        client.post(f"/api/runs/{run_id}/cancel", content=b"x", headers={"content-type": "text/plain"}), 415
    )
    assert client.get(f"/api/runs/{run_id}").json()["state"] == "suspended"


# Questions that expire


def test_a_question_that_nobody_answers_takes_its_default_and_says_that_it_expired(client: Client) -> None:
    run_id = client.start("expires", "completed", input="0.2")
    run = client.get(f"/api/runs/{run_id}").json()
    decided = next(
        event["data"]
        for event in client.get(f"/api/runs/{run_id}/events").json()
        if event["kind"] == "resumed"
    )
    late = client.answer(run_id, "check", approved=True)

    assert run["output"] == "{'approved': False, 'comment': 'nobody came'}"
    assert decided["outcome"] == "expired"
    assert (late.status_code, "already expired" in late.json()["detail"]) == (409, True)


def test_a_question_keeps_its_expiry_over_a_restart(scenario_folder: Path, tmp_path: Path) -> None:
    options = {"store": f"sqlite:{tmp_path}/runs.db", "scenarios": [scenario_folder]}
    with serving(**options) as before:
        run_id = before.start("expires", "suspended", input="1")
        due = before.get(f"/api/runs/{run_id}").json()["interrupts"][0]["expires_at"]
    with serving(**options) as after:
        after.until(run_id, "completed")
        ended = after.get(f"/api/runs/{run_id}/events").json()[-1]["ts"]

    assert ended >= due


def test_a_question_that_is_answered_in_time_does_not_expire(client: Client) -> None:
    run_id = client.start("expires", "suspended", input="60")
    assert client.answer(run_id, "check", approved=True).status_code == 202

    assert client.until(run_id, "completed")["output"] == "{'approved': True}"


# Branches, bundles, deletion


def test_a_fork_asks_again_and_names_where_it_comes_from(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    at = client.kinds(run_id).index("interrupted") + 1
    client.post(f"/api/runs/{run_id}/resume", json={"answers": {"check": {"approved": True}}})
    client.until(run_id, "completed")
    made = client.post(f"/api/runs/{run_id}/fork", json={"at": at, "updates": {"amount": 7}})

    assert made.status_code == 201
    run = client.until(made.json()["run_id"], "suspended")
    assert run["forked_from"] == {"run_id": run_id, "at": at}
    assert client.get(f"/api/runs/{run['run_id']}/state").json()["shared"]["amount"] == 7
    assert client.get(f"/api/runs/{run_id}").json()["state"] == "completed"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"at": 0}, 422),
        ({"at": True}, 422),
        ({"at": "2"}, 201),
        ({"at": 999}, 404),
        ({"at": 2, "updates": []}, 422),
        ({"at": 3, "input": "another"}, 422),
        ({"at": 1, "input": "another", "updates": {"amount": 1}}, 422),
        ({"at": 1, "input": 7}, 422),
    ],
)
def test_a_fork_from_nowhere_is_refused(client: Client, body: object, status: int) -> None:
    run_id = client.start("asks", "suspended")

    assert client.post(f"/api/runs/{run_id}/fork", json=body).status_code == status


def test_a_fork_of_the_beginning_may_have_another_input(client: Client) -> None:
    run_id = client.start("greets", "completed")
    made = client.post(f"/api/runs/{run_id}/fork", json={"at": 1, "input": "moon"})

    assert made.status_code == 201
    run = client.until(made.json()["run_id"], "completed")
    assert (run["input"], run["task"], run["output"]) == ("moon", "moon", "Hello, moon!")
    assert run["forked_from"] == {"run_id": run_id, "at": 1}
    assert client.get(f"/api/runs/{run_id}").json()["output"] == "Hello, lamp!"


def test_an_exported_run_can_be_taken_in_again(client: Client) -> None:
    run_id = client.start("greets", "completed")
    bundle = client.get(f"/api/runs/{run_id}/export")
    assert bundle.headers["content-type"].startswith("application/x-ndjson")
    assert bundle.headers["content-disposition"] == f'attachment; filename="{run_id}.jsonl"'
    made = client.post(
        "/api/runs/import", content=bundle.content, headers={"content-type": "application/x-ndjson"}
    )

    assert made.status_code == 201
    twin = made.json()
    assert twin["run_id"] != run_id
    assert twin["output"] == "Hello, lamp!"
    assert client.kinds(twin["run_id"]) == client.kinds(run_id)


def test_a_run_can_be_exported_as_a_test_and_as_nothing_else(client: Client) -> None:
    run_id = client.start("greets", "completed")
    saved = client.get(f"/api/runs/{run_id}/export?as=test")
    name = f"test_{run_id.replace('-', '_')}.py"

    assert saved.headers["content-type"].startswith("text/x-python")
    assert saved.headers["content-disposition"] == f'attachment; filename="{name}"'
    assert "OUTPUT = 'Hello, lamp!'" in saved.text
    assert client.get(f"/api/runs/{run_id}/export?as=pdf").status_code == 422


@pytest.mark.parametrize(
    "bundle", [b"", b"{}\n", b"[]\n", b"\xff\n", b'{"playground": "run", "format": 99}\n']
)
def test_a_bundle_that_is_none_is_refused(client: Client, bundle: bytes) -> None:
    answer = client.post("/api/runs/import", content=bundle, headers={"content-type": "application/x-ndjson"})

    assert answer.status_code in (400, 422)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *((field, value) for field in ("seq", "pos") for value in (None, "2", 2.5, -1, 10**30, [])),
        *(("ts", value) for value in (None, "1", -1, True, 1e308, float("nan"), float("inf"))),
        *(("run_id", value) for value in (None, "x", "x~1", "../x", 5)),
        *(("parent_id", value) for value in ("x", 5, False, [])),
        *(("kind", value) for value in (None, "frobbed", 5, [], "\ud800")),
        *(("data", value) for value in (None, "x", 5, [], [["a", 1]], {})),
    ],
)
def test_a_bundle_with_an_event_that_cannot_be_is_refused_whole(
    client: Client, field: str, value: object
) -> None:
    run_id = client.start("asks", "suspended")
    lines = client.get(f"/api/runs/{run_id}/export").text.split("\n")
    lines[3] = json.dumps({**json.loads(lines[3]), field: value})
    before = client.get("/api/runs").json()
    headers = {"content-type": "application/x-ndjson"}
    refused = client.post("/api/runs/import", content="\n".join(lines), headers=headers)

    assert problem(refused, 422)["detail"].startswith(("line 4 is not one of", "the bundle is damaged"))
    assert client.get("/api/runs").json() == before


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        (1, "task", {}),
        (1, "breakpoints", [1]),
        (2, "wave", "one"),
        (2, "activation", []),
        (2, "why", 7),
        (5, "child", "zzz"),
        (6, "shared", None),
        (7, "node", {}),
        (-2, "nested", "x"),
    ],
)
def test_a_bundle_with_data_that_cannot_be_is_refused_whole(
    parked_child: tuple[Client, str], line: int, field: str, value: object
) -> None:
    client, child = parked_child
    lines = client.get(f"/api/runs/{child}/export").text.rstrip("\n").split("\n")
    event = json.loads(lines[line])
    assert field in event["data"]
    event["data"][field] = value
    lines[line] = json.dumps(event)
    headers = {"content-type": "application/x-ndjson"}

    problem(client.post("/api/runs/import", content="\n".join(lines), headers=headers), 422)


def test_a_deleted_run_is_gone(client: Client) -> None:
    run_id = client.start("greets", "completed")

    assert client.delete(f"/api/runs/{run_id}").status_code == 204
    problem(client.get(f"/api/runs/{run_id}"), 404)
    problem(client.delete(f"/api/runs/{run_id}"), 404)


def test_a_run_that_is_going_on_is_not_deleted(client: Client) -> None:
    run_id = client.start("sleeps", "running")

    problem(client.delete(f"/api/runs/{run_id}"), 409)
    client.post(f"/api/runs/{run_id}/cancel")


# The edges of the API


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/api/scenarios", "GET, HEAD"),
        ("PUT", "/api/runs", "GET, HEAD, POST"),
        ("PATCH", "/api/runs/x", "DELETE, GET, HEAD"),
        ("GET", "/api/runs/x/resume", "POST"),
        ("DELETE", "/healthz", "GET, HEAD"),
    ],
)
def test_another_method_is_told_which_the_address_takes(
    client: Client, method: str, path: str, allowed: str
) -> None:
    refused = client.request(method, path)

    assert problem(refused, 405)["detail"] == f"{method} is not for {path}: use {allowed}"
    assert refused.headers["allow"] == allowed


@pytest.mark.parametrize("path", ["/api/nothing", "/api/runs/a%2Fb", "/api/runs/x/y/z"])
def test_an_unknown_call_is_a_problem_that_names_it(client: Client, path: str) -> None:
    detail = problem(client.get(path), 404)["detail"]

    assert detail.startswith("there is nothing at /api/")


def test_a_list_of_an_unknown_state_says_which_there_are(client: Client) -> None:
    detail = problem(client.get("/api/runs?state=bogus"), 422)["detail"]

    assert detail == "there is no state 'bogus': use running, suspended, completed, failed"


def test_the_server_says_that_it_is_well(client: Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


def test_texts_arrive_as_they_were_sent(client: Client) -> None:
    odd = "\n\n a\rb\u2028</script> 灯 \U0001f600 &lt;"
    run_id = client.start("greets", "completed", input=odd)

    assert client.get(f"/api/runs/{run_id}").json()["output"] == f"Hello, {odd}!"
    assert json.loads(client.get(f"/api/runs/{run_id}").text)["task"] == odd
