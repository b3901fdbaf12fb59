"""The pages as a browser without JavaScript sees them, and the fragments that htmx gets."""

from __future__ import annotations

import json
import socket
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pytest

from playground.backends import RunRecord, open_store
from playground.kernel import RunState
from tests.web.conftest import SCENARIOS, Client, serving, write_scenario
from tests.web.html import Element, parse

HTMX = {"hx-request": "true"}


def page(client: Client, path: str, status: int = 200, **headers: str) -> Element:
    answer = client.get(path, headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return parse(answer.text)


def post(client: Client, path: str, form: Mapping[str, str], **headers: str) -> object:
    return client.post(path, data=dict(form), headers=headers)


def partials(html: str) -> dict[str, Element]:
    """The parts of an answer to htmx, by their target."""
    return {part["hx-target"]: part for part in parse(html).all("hx-partial")}


# The first page


def test_the_first_page_shows_a_finished_run_where_it_waited_and_leads_into_it(client: Client) -> None:
    with serving(store="memory:") as bundled:
        first = page(bundled, "/")
        states = {node["data-name"]: node["data-state"] for node in first.one(".sample").all(".node")}
        led = [post(bundled, "/sample", {}).headers["location"] for _ in range(2)]
        run_id, _, step = led[0].removeprefix("/runs/").partition("#step=")
        events = bundled.get(f"/api/runs/{run_id}/events").json()
        bundled.delete(f"/api/runs/{run_id}")
        anew = post(bundled, "/sample", {}).headers["location"]

    assert (states["approve"], states["place_order"]) == ("parked", "pending")
    assert led[0] == led[1] != anew
    assert events[int(step) - 1]["kind"] == "interrupted"
    assert events[-1]["kind"] == "run_completed"
    assert page(client, "/").all(".sample") == []
    assert post(client, "/sample", {}).status_code == 404


def test_looking_at_the_first_page_makes_no_run() -> None:
    with serving(store="memory:") as bundled:
        page(bundled, "/")

        assert bundled.get("/api/runs").json()["runs"] == []


# Scenarios


def test_the_picker_shows_every_scenario_and_why_one_does_not_load(client: Client) -> None:
    cards = page(client, "/").one("#cards")

    assert "It asks" in cards.text
    assert "line 1: SyntaxError" in cards.one("#card-broken").text


@pytest.mark.parametrize(
    ("q", "shown"), [("ASKS", 1), ("approval", len(SCENARIOS)), ("it fails", 1), ("zebra", 0)]
)
def test_the_picker_finds_by_word_and_by_concept(client: Client, q: str, shown: int) -> None:
    assert len(page(client, f"/?q={q}").all(".card")) == shown


def test_a_scenario_has_a_page_with_its_graph_its_source_and_its_input(client: Client) -> None:
    found = page(client, "/scenarios/asks")

    assert [node["data-name"] for node in found.all("[data-name]")] == ["draft", "check"]
    assert "wait_human" in found.one(".source").text
    assert found.one("#input").text == "lamp"


def test_a_scenario_that_does_not_load_has_a_page_with_the_reason(client: Client) -> None:
    found = page(client, "/scenarios/broken")

    assert "SyntaxError" in found.one(".notice--fail").text
    assert found.all("[name=scenario]") == []


def test_a_scenario_file_that_is_saved_shows_at_once_and_one_that_breaks_takes_nothing_down(
    tmp_path: Path,
) -> None:
    write_scenario(tmp_path, "first", "\n\ndef make(env):\n    return Workflow().add('a', lambda x: x)\n")
    with serving(store="memory:", scenarios=[tmp_path]) as client:
        assert len(page(client, "/").all(".card")) == 1
        write_scenario(tmp_path, "second", "\n\ndef make(env):\n    return oops\n")
        (tmp_path / "third.py").write_text("import nothing_of_that_name\n", encoding="utf-8")

        assert "ModuleNotFoundError" in page(client, "/").one("#card-third").text
        assert "NameError" in page(client, "/scenarios/second").one(".notice--fail").text
        assert page(client, "/scenarios/first").one("#input")


def test_an_unknown_scenario_is_a_page_that_leads_back(client: Client) -> None:
    found = page(client, "/scenarios/nope", 404)

    assert "there is no scenario" in found.one(".lead").text
    assert found.one(".button--primary")["href"] == "/"


# Starting


def test_starting_a_run_leads_to_its_page(client: Client) -> None:
    answer = post(client, "/runs", {"scenario": "greets", "input": "Ana"})

    assert answer.status_code == 303
    run_id = answer.headers["location"].removeprefix("/runs/")
    assert client.until(run_id, "completed")["output"] == "Hello, Ana!"
    assert "Hello, Ana!" in page(client, f"/runs/{run_id}").one("#output").text


def test_a_run_can_be_started_step_by_step(client: Client) -> None:
    answer = post(client, "/runs", {"scenario": "greets", "input": "Ana", "step": "1"})

    run_id = answer.headers["location"].removeprefix("/runs/")
    assert client.until(run_id, "suspended")["interrupts"][0]["kind"] == "breakpoint"


def test_a_run_can_be_started_again_with_what_it_had(client: Client) -> None:
    run_id = client.start("greets", "completed", input="Bo", lang="zh")
    answer = post(client, "/runs", {"again": run_id})
    again = client.until(answer.headers["location"].removeprefix("/runs/"), "completed")

    assert (again["output"], again["lang"]) == ("Hello, Bo!", "zh")


@pytest.mark.parametrize(
    ("form", "status"), [({"scenario": "nope"}, 404), ({"scenario": "broken"}, 409), ({"step": "1"}, 404)]
)
def test_what_cannot_be_started_is_a_page_that_says_so(
    client: Client, form: dict[str, str], status: int
) -> None:
    answer = post(client, "/runs", form)

    assert answer.status_code == status
    assert "<h1>" in answer.text


def test_an_input_that_does_not_fit_is_shown_at_its_field_with_what_was_typed(tmp_path: Path) -> None:
    file = write_scenario(
        tmp_path, "sums", "\n\ndef make(env):\n    return Workflow().add('a', lambda x: x)\n"
    )
    text = file.read_text(encoding="utf-8")
    schema = '{"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}'
    text = text.replace('{"en": "lamp", "zh": "灯"}', '{"en": {"n": 3}, "zh": {"n": 3}}')
    file.write_text(text.replace("make=make", f"make=make, input_schema={schema}"), encoding="utf-8")
    with serving(store="memory:", scenarios=[tmp_path]) as client:
        typed = post(client, "/runs", {"scenario": "sums", "input:mode": "fields", "input.n": "many"})
        low = post(client, "/runs", {"scenario": "sums", "input:mode": "fields", "input.n": "0"})
        fits = post(client, "/runs", {"scenario": "sums", "input:mode": "fields", "input.n": "7"})
        run_id = fits.headers["location"].removeprefix("/runs/")

        assert (typed.status_code, low.status_code) == (422, 422)
        field = parse(typed.text).one("[name=input.n]")
        assert (field["value"], field["aria-invalid"]) == ("many", "true")
        assert "minimum" in parse(low.text).one(".field__problem").text
        assert client.until(run_id, "completed")["input"] == {"n": 7}


# A run


def test_the_page_of_a_run_shows_where_it_stands(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    found = page(client, f"/runs/{run_id}")

    assert found.one("#status")["data-mood"] == "waiting"
    assert len(found.one("#timeline").all("li")) == len(client.kinds(run_id))
    assert found.one("[data-step=check]").all("h2")[0].text == "Pay?"
    assert found.one("#stream")["hx-sse:connect"] == f"/runs/{run_id}/live?after={len(client.kinds(run_id))}"


@pytest.mark.parametrize(
    ("cookie", "theme", "big", "waits"),
    [
        ("", "auto", False, True),
        ("looks=dark", "dark", False, False),
        ("looks=light-big", "light", True, False),
        ("looks=%3Cb%3E", "auto", False, True),
    ],
)
def test_the_page_of_a_run_is_painted_in_the_looks_that_its_reader_chose(
    client: Client, cookie: str, theme: str, big: bool, waits: bool
) -> None:
    """Where they are not known, it waits for the script that knows."""
    address = f"/runs/{client.start('greets', 'completed')}"
    found = page(client, address, cookie=cookie)

    assert found.one("html")["data-theme"] == theme
    assert ("data-big" in found.one("html").attributes) is big
    assert bool(found.all("[blocking=render]")) is waits


def pieces(client: Client, path: str) -> list[str]:
    """The pieces of a page, as the server sent them."""
    with socket.create_connection((client.base_url.host, client.base_url.port)) as asking:
        asking.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: asking.recv(65536), b""))
    rest, found = answer.partition(b"\r\n\r\n")[2], []
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        found.append(rest[: int(size, 16)].decode())
        rest = rest[int(size, 16) + 2 :]
    return [piece for piece in found if piece]


def test_the_page_of_a_run_is_sent_as_it_is_made_and_its_events_come_first(client: Client) -> None:
    """So that a browser fetches what the head names, and paints what has happened, while the rest is made."""
    head, first, rest = pieces(client, f"/runs/{client.start('greets', 'completed')}")

    assert head.startswith("<!doctype html>")
    assert head.rstrip().endswith("</head>")
    assert "run_completed" in first
    assert 'class="graph' not in first
    assert 'class="graph' in rest


def test_the_page_of_a_finished_run_opens_no_stream(client: Client) -> None:
    run_id = client.start("greets", "completed")

    assert page(client, f"/runs/{run_id}").all("#stream") == []


def test_a_run_can_be_opened_at_any_of_its_events(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    found = page(client, f"/runs/{run_id}?at=3")

    assert found.one("#at")["value"] == "3"
    states = {node["data-name"]: node["data-state"] for node in found.all("[data-name]")}
    assert states == {"draft": "completed", "check": "pending"}


def test_a_moment_that_never_was_leads_to_the_nearest_with_a_word(client: Client) -> None:
    run_id = client.start("greets", "completed")
    last = len(client.kinds(run_id))

    found = page(client, f"/runs/{run_id}?at=99")

    assert found.one("#at")["value"] == str(last)
    assert "there is no event 99" in found.one("output").text


@pytest.mark.parametrize("at", ["-1", "x", "1.5"])
def test_a_moment_that_is_no_number_is_a_page_that_says_so(client: Client, at: str) -> None:
    run_id = client.start("greets", "completed")

    page(client, f"/runs/{run_id}?at={at}", 422)


def test_the_page_of_a_failed_run_says_which_node_and_why_and_where_to_fork(client: Client) -> None:
    run_id = client.start("fails", "failed")
    failure = page(client, f"/runs/{run_id}").one("#failure")

    assert "burn" in failure.text
    assert "it is on fire" in failure.text
    assert failure.one("[name=at]")["value"] == "1"


def test_the_page_of_an_inner_run_is_that_of_its_root(client: Client) -> None:
    answer = client.get("/runs/run-000000000000~1")

    assert (answer.status_code, answer.headers["location"]) == (303, "/runs/run-000000000000")


def test_a_run_whose_scenario_is_gone_can_still_be_read(tmp_path: Path) -> None:
    file = write_scenario(
        tmp_path, "gone", "\n\ndef make(env):\n    return Workflow().add('a', lambda x: x)\n"
    )
    with serving(store="memory:", scenarios=[tmp_path]) as client:
        run_id = client.start("gone", "completed")
        file.unlink()
        found = page(client, f"/runs/{run_id}")

        assert "not here any more" in found.one(".notice").text
        assert [node["data-name"] for node in found.all("[data-name]")] == ["a"]
        assert found.all("[aria-keyshortcuts=R]") == []


def test_the_inspector_can_be_had_for_any_event(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    at = client.kinds(run_id).index("state_delta") + 1
    parts = partials(client.get(f"/runs/{run_id}/moment?at={at}", headers=HTMX).text)

    assert "state_delta" in parts["#inspect-event"].text
    writers = {write.one("a").text for write in parts["#inspect-state"].all(".channel__write")}
    assert writers == {"draft"}
    assert "#graph" not in parts


def shown(element: Element) -> list[int]:
    """The positions of the rows inside an element."""
    return [int(row["data-at"]) for row in element.all("li") if "data-at" in row.attributes]


def test_a_page_has_the_newest_hundred_rows_and_older_ones_come_on_demand(client: Client) -> None:
    run_id = client.start("notes", "completed", input="500")
    last = len(client.kinds(run_id))
    found = page(client, f"/runs/{run_id}")
    older = partials(client.get(f"/runs/{run_id}/events?before={last - 99}", headers=HTMX).text)
    first = partials(client.get(f"/runs/{run_id}/events?before=3", headers=HTMX).text)

    assert shown(found.one("#timeline")) == list(range(last - 99, last + 1))
    assert found.one("#earlier").one("button")["value"] == str(last - 99)
    assert "hidden" in found.one("#later").one("button").attributes
    assert shown(older["#timeline"]) == list(range(last - 199, last - 99))
    assert older["#earlier"].one("button")["value"] == str(last - 199)
    assert shown(first["#timeline"]) == [1, 2]
    assert "hidden" in first["#earlier"].one("button").attributes


def test_a_moment_that_the_page_has_no_row_of_brings_the_rows_around_it(client: Client) -> None:
    run_id = client.start("notes", "completed", input="500")
    near = partials(client.get(f"/runs/{run_id}/moment?at=450&before=400&after=500", headers=HTMX).text)
    far = partials(client.get(f"/runs/{run_id}/moment?at=250&before=400&after=500", headers=HTMX).text)

    assert "#timeline" not in near
    assert shown(far["#timeline"]) == list(range(200, 300))
    marks = json.loads(far["#earlier"].one("div")["data-base"])
    assert [(mark["id"], mark["state"]) for mark in marks] == [("node-/note", "running")]
    newer = partials(client.get(f"/runs/{run_id}/events?after=299", headers=HTMX).text)
    assert shown(newer["#timeline"]) == list(range(300, 400))
    assert newer["#later"].one("button")["value"] == "399"


async def test_five_hundred_runs_are_narrowed_by_state_scenario_and_text(scenario_folder: Path) -> None:
    store = open_store("memory:")
    for number in range(500):
        state = RunState.SUSPENDED if number % 10 == 3 else RunState.COMPLETED
        key = "asks" if number % 2 else "greets"
        await store.runs.put(RunRecord(f"r{number}", key, state, f"task {number}", number, number))
    with serving(store=store, scenarios=[scenario_folder], recover=False) as fresh:

        def listed(**query: str) -> list[str]:
            page = parse(fresh.get("/runs", params=query).text)
            return [row.one("a")["href"].removeprefix("/runs/") for row in page.one("tbody").all("tr")]

        assert listed(q="task 123") == ["r123"]
        assert listed(state="suspended")[:3] == ["r493", "r483", "r473"]
        assert listed(scenario="greets", q="task 49")[:2] == ["r498", "r496"]
        assert len(listed()) == 50


def test_the_list_shows_the_newest_runs_first(client: Client) -> None:
    ids = [client.start("greets", "completed", input=f"listed {n}") for n in range(2)]
    rows = page(client, "/runs?q=listed").one("#runs").all("tr")[1:]

    assert [row["id"] for row in rows] == [f"run-{run_id}" for run_id in ids[::-1]]


def test_every_page_with_the_way_to_what_waits_counts_it(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    listed = page(client, "/runs").one(".badge").text
    for path in ("/", "/scenarios/asks", f"/runs/{run_id}/branches", f"/runs/{run_id}/steps/check", "/model"):
        assert page(client, path).one(".badge").text == listed


def test_the_list_says_where_runs_are_kept_and_how_long(client: Client, tmp_path: Path) -> None:
    assert "gone when the server stops" in page(client, "/runs").text
    with serving(store=f"file:{tmp_path}") as keeping:
        assert f"Kept in file:{tmp_path}" in page(keeping, "/runs").text


def test_a_fork_stands_in_the_list_where_it_began_and_leads_to_its_original(client: Client) -> None:
    first = client.start("asks", "suspended")
    later = client.start("greets", "completed")
    made = client.post(f"/api/runs/{first}/fork", json={"at": 2}).json()["run_id"]
    client.until(made, "suspended")
    rows = page(client, "/runs").one(".runs").all("tr")
    order = [row["id"].removeprefix("run-") for row in rows if row.attributes.get("id")]
    assert order.index(made) < order.index(later) < order.index(first)
    fork = next(row for row in rows if row.attributes.get("id") == f"run-{made}")
    assert f"/runs/{first}" in [link["href"] for link in fork.all(".chip")]


def test_a_run_in_the_list_can_be_deleted(client: Client) -> None:
    first, second = (client.start("greets", "completed") for _ in range(2))
    answer = post(client, f"/runs/{first}/commands", {"command": "delete"}, **HTMX)

    assert parse(answer.text).one("hx-partial")["hx-swap"] == "delete"
    assert client.get(f"/api/runs/{first}").status_code == 404
    assert post(client, f"/runs/{second}/commands", {"command": "delete"}).headers["location"] == "/runs"


def test_a_command_answers_with_the_changed_controls_or_leads_to_the_run(client: Client) -> None:
    run_id = client.start("sleeps", "running")
    answer = post(client, f"/runs/{run_id}/commands", {"command": "crash"}, **HTMX)

    assert partials(answer.text)["#status"].one("#status")["data-mood"] == "stopped"
    answer = post(client, f"/runs/{run_id}/commands", {"command": "cancel"})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{run_id}")


def test_a_command_that_makes_no_sense_is_a_notice_for_htmx_and_a_page_for_others(client: Client) -> None:
    run_id = client.start("greets", "completed")
    notice = post(client, f"/runs/{run_id}/commands", {"command": "pause"}, **HTMX)

    assert notice.status_code == 200
    assert "nothing to pause" in partials(notice.text)["#notice"].text
    assert post(client, f"/runs/{run_id}/commands", {"command": "pause"}).status_code == 409
    assert post(client, f"/runs/{run_id}/commands", {"command": "explode"}).status_code == 422


def test_a_page_opened_later_shows_what_was_asked_last_and_how_it_was_decided(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    post(
        client, f"/runs/{run_id}/answers", {"interrupt": "check", "verdict": "reject", "comment": "too dear"}
    )
    client.until(run_id, "completed")
    (card,) = page(client, f"/runs/{run_id}").one("#parked").all(".step")
    assert "Pay?" in card.text
    assert "too dear" in card.text
    assert not card.all("form")


def test_a_fork_leads_to_the_new_run(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    at = str(len(client.kinds(run_id)) - 1)
    answer = post(client, f"/runs/{run_id}/forks", {"at": at, "updates": '{"amount": 9}'})

    fork = client.get("/api" + answer.headers["location"]).json()
    assert fork["forked_from"] == {"run_id": run_id, "at": int(at)}
    branches = page(client, f"/runs/{run_id}/branches").one("#branches")
    assert f"/runs/{fork['run_id']}" in [link["href"] for link in branches.all("a")]


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"at": "x"}, 422),
        ({"at": "99"}, 404),
        ({"at": "2", "updates": "{"}, 400),
        ({"at": "2", "updates": "[]"}, 422),
        ({"at": "2", "updates": '{"amount": NaN}'}, 400),
    ],
)
def test_a_fork_that_cannot_be_is_a_page_that_says_so(
    client: Client, form: dict[str, str], status: int
) -> None:
    run_id = client.start("asks", "suspended")

    assert post(client, f"/runs/{run_id}/forks", form).status_code == status


def test_the_dialog_of_a_fork_is_led_to_the_new_run_or_told_why_there_is_none(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    made = post(client, f"/runs/{run_id}/forks", {"at": "2", "updates": '{"amount": 9}'}, **HTMX)
    assert client.get("/api" + made.headers["hx-redirect"]).json()["forked_from"]["run_id"] == run_id

    for updates, told in (("{", "updates is not JSON"), ("[]", "must be a JSON object")):
        refused = post(client, f"/runs/{run_id}/forks", {"at": "2", "updates": updates}, **HTMX)
        assert told in partials(refused.text)["#fork-problem"].text


def test_a_channel_can_be_edited_into_a_fork_where_a_fork_can_write_it(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    state = page(client, f"/runs/{run_id}").one("#inspect-state")
    assert {"amount": 40} in [json.loads(pen["data-updates"]) for pen in state.all(".channel__edit")]

    with serving(store="memory:") as bundled:
        nested = bundled.start("nested_approval", "suspended")
        (child,) = {e["run_id"] for e in bundled.get(f"/api/runs/{nested}/events").json()} - {nested}
        at = next(e["id"] for e in bundled.get(f"/api/runs/{nested}/events").json() if e["run_id"] == child)
        moment = partials(bundled.get(f"/runs/{nested}/moment?at={at}").text)
    assert moment["#inspect-state"].all(".channel")
    assert not moment["#inspect-state"].all(".channel__edit")


def test_a_finished_run_can_be_saved_as_a_test_and_one_that_waits_cannot(client: Client) -> None:
    done, waiting = client.start("greets", "completed"), client.start("asks", "suspended")
    (saved,) = [a for a in _saves(client, done) if a.endswith("?as=test")]
    answer = client.get(saved)
    name = f"test_{done.replace('-', '_')}.py"
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
    assert "def test_" in answer.text
    assert client.get(f"/runs/{done}/export?as=zip").status_code == 422
    assert not [a for a in _saves(client, waiting) if a.endswith("?as=test")]


def _saves(client: Client, run_id: str) -> list[str]:
    return [link["href"] for link in page(client, f"/runs/{run_id}").one("#controls").all("a")]


# Deciding


def test_the_waiting_page_gathers_the_questions_of_all_runs(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    found = page(client, "/waiting")

    assert any(form["action"] == f"/runs/{run_id}/answers" for form in found.all("form"))


def test_a_run_that_cannot_be_read_is_named_can_be_deleted_and_hides_no_other(
    scenario_folder: Path, tmp_path: Path
) -> None:
    with serving(store=f"file:{tmp_path}/runs", scenarios=[scenario_folder]) as client:
        bad = client.start("asks", "suspended")
        good = client.start("asks", "suspended")
    log = tmp_path / "runs" / f"{bad}.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([lines[0], b"\xff\n", *lines[2:]]))
    with serving(store=f"file:{tmp_path}/runs", scenarios=[scenario_folder]) as client:
        waiting = client.get("/waiting").text
        assert f"{bad}.jsonl, line 2" in waiting
        assert f"/runs/{good}" in waiting
        assert client.delete(f"/api/runs/{bad}").status_code == 204
        assert [run["run_id"] for run in client.get("/api/runs").json()["runs"]] == [good]


def test_all_that_the_waiting_page_showed_is_decided_at_once_and_nothing_else(scenario_folder: Path) -> None:
    with serving(store="memory:", scenarios=[scenario_folder]) as fresh:
        first, second = (fresh.start("asks", "suspended") for _ in range(2))
        form = page(fresh, "/waiting").one(".all")
        shown = {field["name"]: field["value"] for field in form.all("[type=hidden]")}
        fresh.answer(first, "check", approved=True)
        later = fresh.start("asks", "suspended")
        answer = parse(post(fresh, "/waiting", {**shown, "verdict": "reject", "comment": "not today"}).text)
        states = {id: fresh.until(id, state) for id, state in ((first, "completed"), (second, "completed"))}
        waits = fresh.get(f"/api/runs/{later}").json()["state"]

    assert "1 step is decided." in answer.text
    assert "check is already approved" in answer.one(".notice--fail").text
    assert states[second]["output"] == "False None not today"
    assert waits == "suspended"


@pytest.mark.parametrize("form", [{"by": "ana"}, {"verdict": "maybe"}])
def test_without_a_verdict_nothing_is_decided(client: Client, form: dict[str, str]) -> None:
    assert post(client, "/waiting", form).status_code == 400


def test_every_question_has_a_plain_page(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    found = page(client, f"/runs/{run_id}/steps/check")

    assert found.one("h1").text == "Pay?"
    assert [button["value"] for button in found.one(".answer").all("button")] == ["approve", "reject"]
    page(client, f"/runs/{run_id}/steps/never", 404)


def test_a_plain_form_decides_and_leads_back_to_the_run(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    form = {"interrupt": "check", "verdict": "approve", "comment": " fine ", "value.amount": "55"}
    answer = post(client, f"/runs/{run_id}/answers", {**form, "value:mode": "fields", "value.urgent": "on"})

    assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{run_id}")
    assert client.until(run_id, "completed")["output"] == "True 55 fine"


def test_a_rejection_does_not_read_the_fields(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    form = {"interrupt": "check", "verdict": "reject", "comment": "no", "value.amount": "a lot"}
    post(client, f"/runs/{run_id}/answers", form)

    assert client.until(run_id, "completed")["output"] == "False None no"


def test_a_question_takes_a_text(client: Client) -> None:
    run_id = client.start("wonders", "suspended")
    post(client, f"/runs/{run_id}/answers", {"interrupt": "ask", "verdict": "answer", "value": "blue\r\nish"})

    assert client.until(run_id, "completed")["output"] == repr("blue\nish")


def test_the_answer_to_htmx_is_the_card_that_now_says_how_it_was_decided(client: Client) -> None:
    run_id = client.start("wonders", "suspended")
    form = {"interrupt": "ask", "verdict": "answer", "value": "blue"}
    answer = post(client, f"/runs/{run_id}/answers", form, **HTMX)

    card = partials(answer.text)['[data-step="ask"]']
    assert card.one(".step__decision--answered")


def test_who_comes_second_sees_what_was_decided(client: Client) -> None:
    """Case D05: with a page, and as a card for htmx."""
    run_id = client.start("asks", "suspended")
    client.answer(run_id, "check", approved=False, comment="too dear")
    client.until(run_id, "completed")
    late = {"interrupt": "check", "verdict": "approve", "value.amount": "1"}
    plain, card = (post(client, f"/runs/{run_id}/answers", late, **headers) for headers in ({}, HTMX))

    assert plain.status_code == 409
    assert card.status_code == 200
    for answer in (plain, card):
        assert "too dear" in parse(answer.text).one(".step__decision--rejected").text
    assert client.kinds(run_id).count("resumed") == 1


@pytest.mark.parametrize(
    ("fields", "said"),
    [({"value.amount": "a lot"}, "not a whole number"), ({"value.amount": "101"}, "maximum"), ({}, "needed")],
)
def test_an_edit_that_does_not_fit_is_shown_at_its_field_and_the_run_still_waits(
    client: Client, fields: dict[str, str], said: str
) -> None:
    run_id = client.start("asks", "suspended")
    form = {"interrupt": "check", "verdict": "approve", "value:mode": "fields", **fields}
    plain, card = (post(client, f"/runs/{run_id}/answers", form, **headers) for headers in ({}, HTMX))

    assert (plain.status_code, card.status_code) == (422, 200)
    for answer in (plain, card):
        assert said in parse(answer.text).one(".field__problem").text
    assert client.get(f"/api/runs/{run_id}").json()["state"] == "suspended"


def test_the_form_of_a_tool_shows_its_arguments_and_what_was_changed_in_them_is_told(client: Client) -> None:
    run_id = client.start("pays", "suspended")
    asked = client.get(f"/api/runs/{run_id}").json()["interrupts"][0]["id"]
    step = parse(client.get(f"/runs/{run_id}/steps/{asked}").text)
    shown = {field["name"]: field.attributes.get("value") for field in step.one(".answer").all("input")}
    edited = {"value:mode": "fields", "value.amount": "7", "value.to": "the bakery"}
    post(client, f"/runs/{run_id}/answers", {"interrupt": asked, "verdict": "approve", **edited})
    client.until(run_id, "completed")

    assert (shown["value.amount"], shown["value.to"]) == ("40", "the shop")
    events = client.get(f"/api/runs/{run_id}/events").json()
    told = next(event["data"] for event in events if event["kind"] == "resumed")
    assert told["difference"] == {
        "amount": {"proposed": 40, "decided": 7},
        "to": {"proposed": "the shop", "decided": "the bakery"},
    }
    decided = parse(client.get(f"/runs/{run_id}/steps/{asked}").text).one(".step__decision")
    assert next(change.text.split() for change in decided.all(".change")) == ["amount", "40", "7"]
    returned = next(event["data"] for event in events if event["kind"] == "tool_returned")
    assert returned["output"] == "7 to the bakery"


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"interrupt": "check"}, 400),
        ({"interrupt": "check", "verdict": "maybe"}, 400),
        ({"interrupt": "other", "verdict": "approve"}, 404),
        ({"verdict": "approve"}, 404),
    ],
)
def test_a_form_without_a_verdict_or_a_question_is_refused(
    client: Client, form: dict[str, str], status: int
) -> None:
    run_id = client.start("asks", "suspended")

    assert post(client, f"/runs/{run_id}/answers", form).status_code == status


def test_a_paused_run_goes_on_by_its_card(client: Client) -> None:
    run_id = client.start("greets", "suspended", options={"step": True})
    found = page(client, f"/runs/{run_id}").one(".step")
    form = {"interrupt": found["data-step"], "verdict": "approve"}
    post(client, f"/runs/{run_id}/answers", form, **HTMX)

    assert found.one("h2").text == "The run is paused"
    client.until(run_id, "completed")


@pytest.mark.parametrize("path", ["/runs", "/runs/x/answers", "/runs/x/commands", "/runs/x/forks"])
@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"a=1", "text/plain", 415),
        (b"{}", "application/json", 415),
        (b"--x", "multipart/form-data; boundary=x", 415),
        (b"a=%ff", "application/x-www-form-urlencoded", 400),
        (b"a=\xff", "application/x-www-form-urlencoded", 400),
        (b"&".join([b"a=1"] * 600), "application/x-www-form-urlencoded", 400),
        (b"a=" + b"x" * (1 << 20), "application/x-www-form-urlencoded", 413),
    ],
)
def test_what_is_no_form_is_refused(
    client: Client, path: str, content: bytes, kind: str, status: int
) -> None:
    assert client.post(path, content=content, headers={"content-type": kind}).status_code == status


# Languages, files, the gallery


def test_the_language_is_that_of_the_browser_until_it_is_chosen(scenario_folder: Path) -> None:
    with serving(store="memory:", scenarios=[scenario_folder]) as client:
        by_browser = page(client, "/", **{"accept-language": "zh-CN,zh;q=0.9"}).one("html")["lang"]
        chosen = client.get("/runs?lang=zh&q=a+b", headers={"accept-language": "en"})
        after = page(client, "/", **{"accept-language": "en"}).one("html")["lang"]

    assert (by_browser, after) == ("zh", "zh")
    assert (chosen.status_code, chosen.headers["location"]) == (303, "/runs?q=a+b")


def test_files_with_a_mark_may_be_kept_and_others_are_asked_for_again(client: Client) -> None:
    links = [link["href"] for link in page(client, "/").all("link") if link["rel"] == "stylesheet"]

    assert links
    assert all("immutable" in client.get(link).headers["cache-control"] for link in links)
    assert client.get(links[0].partition("?")[0]).headers["cache-control"] == "no-cache"
    assert client.get("/static/nothing.css").status_code == 404


def test_every_file_that_a_page_names_is_there(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    found = page(client, f"/runs/{run_id}")
    named = {
        e[a] for e in found.all("link") + found.all("script") for a in ("href", "src") if a in e.attributes
    }
    named |= {use["href"].partition("#")[0] for use in found.all("use")}

    assert {name: client.get(name).status_code for name in named} == dict.fromkeys(named, 200)


def test_the_gallery_is_for_those_who_make_the_pages(client: Client, scenario_folder: Path) -> None:
    assert client.get("/gallery").status_code == 404
    with serving(store="memory:", scenarios=[scenario_folder], gallery=True) as maker:
        assert maker.get("/gallery").status_code == 200


# Escaping

NASTY = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script> hx-get=/x {{7*7}}"


def test_a_text_is_never_markup(client: Client) -> None:
    """Case D40: on the page, in the fragments, in the title of an error."""
    run_id = client.start("greets", "completed", input=NASTY)
    found = page(client, f"/runs/{run_id}")
    moment = parse(client.get(f"/runs/{run_id}/moment?at=1").text)
    listed = page(client, "/runs")
    error = page(client, "/scenarios/" + "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E", 404)

    for html in (found, moment, listed, error):
        assert html.all("img") == []
        assert all("onerror" not in element.attributes for element in html.all("[onerror]"))
    assert f"Hello, {NASTY}!" in found.one("#output").text
    assert [
        script
        for script in found.all("script")
        if not script.attributes.get("src", "").startswith("/static/")
    ] == []


def test_a_log_that_cannot_be_read_is_told_in_a_page_that_is_whole(
    scenario_folder: Path, tmp_path: Path
) -> None:
    """The head of the page is on its way by then, so the error takes the place of the body."""
    database = tmp_path / "runs.db"
    with serving(store=f"sqlite:{database}", scenarios=[scenario_folder]) as client:
        run_id = client.start("greets", "completed")
    with sqlite3.connect(database) as connection:
        connection.execute("update event set data = 'torn' where pos = 3")
    with serving(store=f"sqlite:{database}", scenarios=[scenario_folder]) as client:
        shown = page(client, f"/runs/{run_id}")

    assert "event 3" in shown.one(".problem").text
    assert [part.tag for part in shown.all("body")] == ["body"]
    assert [script["src"] for script in shown.all("script") if "run.js" in script["src"]] == []
    assert shown.one("#help")
