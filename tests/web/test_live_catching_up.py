"""A viewer who reads from the log may be ahead of what the others have heard."""

from __future__ import annotations

from playground import assets
from playground.backends import open_store
from playground.sessions import Catalog, Sessions, Told
from playground.web.live import PageTeller, Watch
from playground.web.story import Story
from playground.web.stream import Place


async def test_rows_from_the_log_are_shown_even_if_the_shared_story_has_not_come_so_far() -> None:
    sessions = Sessions(open_store("memory:"), Catalog([assets.path("scenarios")]))
    await sessions.open()
    run_id = await sessions.start("graph_demo")
    events = [event async for event in sessions.until_rest(run_id)]
    story = Story(run_id, sessions.blueprints.plan_of(events[:1], run_id))
    await story.reach(sessions, 2)
    teller = PageTeller(Watch(sessions, story), "en", Place())
    told = await teller.stored([Told(event, stored=True) for event in events[2:6]])
    assert [f'id="ev-{number}"' in told.decode() for number in range(2, 8)] == [False, *[True] * 4, False]
    await sessions.close()


async def test_a_question_of_a_child_run_is_shown_when_its_parent_knows_it_however_much_later() -> None:
    sessions = Sessions(open_store("memory:"), Catalog([assets.path("scenarios")]))
    await sessions.open()
    run_id = await sessions.start("nested_approval")
    events = [event async for event in sessions.until_rest(run_id)]
    asked = next(event for event in events if event.kind == "interrupted")
    story = Story(run_id, sessions.blueprints.plan_of(events[:1], run_id))
    await story.reach(sessions, asked.pos)
    teller = PageTeller(Watch(sessions, story), "en", Place())
    card = f'data-step="{asked.data["id"]}"'
    await teller.stored([Told(event, stored=True) for event in events[: asked.pos]])
    before = teller.level()
    await teller.stored([Told(event, stored=True) for event in events[asked.pos :]])
    after = teller.level()
    assert (card in before.decode(), card in after.decode()) == (False, True)
    await sessions.close()
