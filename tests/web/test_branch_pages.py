"""The tree of branches and two of them side by side, as pages."""

from __future__ import annotations

import pytest

from tests.web.conftest import Client
from tests.web.html import Element, parse


def forked(client: Client, run_id: str, at: int, **updates: object) -> str:
    made = client.post(f"/api/runs/{run_id}/fork", json={"at": at, "updates": updates})
    assert made.status_code == 201, made.text
    return made.json()["run_id"]


@pytest.fixture(scope="module")
def branches(client: Client) -> tuple[str, str, int]:
    """A run that was approved, a fork of it that was rejected with another amount, and where it asked."""
    run_id = client.start("asks", "suspended")
    parked = client.get(f"/api/runs/{run_id}").json()["last_event_id"]
    client.answer(run_id, "check", approved=True)
    client.until(run_id, "completed")
    fork_id = forked(client, run_id, parked, amount=3)
    client.answer(fork_id, "check", approved=False)
    client.until(fork_id, "completed")
    return run_id, fork_id, parked


def compared(client: Client, left: str, right: str, lang: str = "en") -> Element:
    page = client.get(f"/runs/{left}/compare/{right}", headers={"accept-language": lang})
    assert page.status_code == 200, page.text
    return parse(page.text)


def test_the_page_of_a_fork_leads_to_the_comparison_with_its_original(
    client: Client, branches: tuple[str, str, int]
) -> None:
    run_id, fork_id, _ = branches
    page = parse(client.get(f"/runs/{fork_id}").text)

    assert f"/runs/{run_id}/compare/{fork_id}" in [link["href"] for link in page.one("#task").all("a")]


def test_the_tree_shows_each_branch_with_what_was_changed_decided_and_said(
    client: Client, branches: tuple[str, str, int]
) -> None:
    run_id, fork_id, parked = branches
    first, fork = parse(client.get(f"/runs/{run_id}/branches").text).all(".branch")

    assert first["aria-current"] == "true"
    assert f"Fork after event {parked}" in fork.text
    assert "amount = 3" in fork.text
    assert "check rejected" in fork.text
    assert "False None None" in fork.text
    assert fork.one(".button")["href"] == f"/runs/{run_id}/compare/{fork_id}"


def test_the_tree_for_htmx_is_the_part_of_the_run_page_alone(
    client: Client, branches: tuple[str, str, int]
) -> None:
    part = client.get(f"/runs/{branches[0]}/branches", headers={"hx-request": "true"})

    assert part.text.startswith('<hx-partial hx-target="#branches"')
    assert "<html" not in part.text


def test_a_run_without_forks_says_how_to_get_one(client: Client) -> None:
    run_id = client.start("greets", "completed")

    assert "fork there" in parse(client.get(f"/runs/{run_id}/branches").text).one("#branches").text


@pytest.mark.parametrize(("lang", "said"), [("en", "Both begin with the same"), ("zh", "两者开头的")])
def test_two_branches_are_shown_from_where_they_part(
    client: Client, branches: tuple[str, str, int], lang: str, said: str
) -> None:
    run_id, fork_id, parked = branches
    page = compared(client, run_id, fork_id, lang)

    assert said in page.one(".comparison__shared").text
    assert f" {parked} " in page.one(".comparison__shared").text
    left, right = page.one(".comparison__first").all(".side")
    assert left.one("[data-kind=resumed]")["data-at"] == str(parked + 1)
    assert right.one("[data-kind=forked]")["data-at"] == str(parked + 1)


def test_the_channels_that_differ_have_their_value_where_the_two_part_and_in_each(
    client: Client, branches: tuple[str, str, int]
) -> None:
    page = compared(client, *branches[:2])

    cells = [cell.text for cell in page.one("[data-channel=amount]").all("td")]
    assert cells == ["40", "40", "3"]


def test_both_outputs_are_shown(client: Client, branches: tuple[str, str, int]) -> None:
    text = compared(client, *branches[:2]).one(".comparison").text

    assert "True None None" in text
    assert "False None None" in text


def test_a_run_beside_itself_has_no_difference(client: Client, branches: tuple[str, str, int]) -> None:
    assert "Nothing sets them apart" in compared(client, branches[0], branches[0]).one(".comparison").text


def test_runs_of_two_scenarios_can_be_compared_too(client: Client, branches: tuple[str, str, int]) -> None:
    other = client.start("greets", "completed")

    assert "nothing in common" in compared(client, branches[0], other).one(".comparison").text


@pytest.mark.parametrize("path", ["/branches", "/compare/{known}"])
def test_a_run_that_is_not_there_is_a_page_that_says_so(
    client: Client, branches: tuple[str, str, int], path: str
) -> None:
    answer = client.get("/runs/run-nobody" + path.format(known=branches[0]))

    assert answer.status_code == 404
    assert client.get(f"/runs/{branches[0]}/compare/run-nobody").status_code == 404


# What if


def test_an_event_that_wrote_can_be_switched_off_on_a_page_that_says_it_is_unreal(client: Client) -> None:
    run_id = client.start("asks", "suspended")
    at = client.kinds(run_id).index("state_delta") + 1
    event = parse(client.get(f"/runs/{run_id}/moment?at={at}&before=1&after={at}").text)
    page = parse(client.get(f"/runs/{run_id}/without/{at}").text)

    assert f"/runs/{run_id}/without/{at}" in [link["href"] for link in event.all("a")]
    assert "Unreal." in page.one(".unreal").text
    assert [cell.text.strip() for cell in page.one("[data-channel=amount]").all("td")] == [
        "null",
        "40",
        "null",
    ]


@pytest.mark.parametrize(("at", "status"), [("1", 409), ("99", 404), ("x", 422)])
def test_an_event_that_wrote_nothing_cannot_be_switched_off(client: Client, at: str, status: int) -> None:
    run_id = client.start("asks", "suspended")

    assert client.get(f"/runs/{run_id}/without/{at}", headers={"accept": "text/html"}).status_code == status
