"""Two packets side by side, and what one would be with other settings: marked, explained, shared, and never written."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from browser_pages import ANA, build_of
from browser_room import Reader

import muniment
from muniment.core.ports.engine import Select
from muniment.core.ports.schema import TABLES
from muniment.surfaces.operations.parts import builds

MODES = {
    "dark": {"color_scheme": "dark"},
    "mobile": {"viewport": {"width": 390, "height": 844}},
    "mobile_dark": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
}


def _friday(story: Path) -> list[str]:
    """The packets of a run, oldest first: planner, tool, responder, and a responder with more room."""
    with muniment.open(story) as mem:
        return [each.build_id for each in builds(mem, user_id="ana", order="asc") if each.run_id == "run_friday"]


def _rows(story: Path) -> str:
    with muniment.open(story, read_only=True) as mem:
        return repr(
            mem._ctx.engine.read(
                "default", lambda reader: [row for each in TABLES for row in reader.do(Select(each.name))]
            )
        )


def _shown(reader: Reader) -> str:
    return str(reader.page.locator(".beside-lines").inner_text())


def _elsewhere(browser: Any, reader: Reader) -> str:
    """What the same address shows in a browser that has never been here."""
    other = Reader(browser, reader.url)
    other.page.goto(reader.page.url)
    other.page.locator(".beside-row").first.wait_for()
    other.settle()
    shown = _shown(other)
    other.context.close()
    return shown


@pytest.mark.soak
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("page", "awaited"),
    [("diff/{before}/{last}?row=19", "Chosen because"), ("whatif/{last}?max_tokens=300&episodes=0", "moved on")],
    ids=["diff", "whatif"],
)
def test_both_are_accessible_at_any_width_in_light_and_dark(
    browser: Any, url: str, story: Path, page: str, awaited: str, mode: str
) -> None:
    *_, before, last = _friday(story)
    reader = Reader(browser, url, **MODES[mode])
    reader.go(f"{ANA}/{page.format(before=before, last=last)}", awaited)
    reader.page.locator("summary", has_text="Share this view").click()
    reader.settle()
    reader.shoot(f"{page.partition('/')[0]}_{mode}")
    assert reader.axe() == []
    assert reader.complaints == []
    width = reader.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width[0] <= width[1], "the page is wider than the screen"
    reader.context.close()


def test_a_packet_beside_the_one_before_it(browser: Any, reader: Reader, story: Path) -> None:
    """Each change has a sign, a word and a reason; a line leads to its evidence; the address says all of it."""
    first, _, before, last = _friday(story)
    page = reader.go(f"{ANA}/packet/{last}", "Left out")
    page.get_by_role("link", name="Compare", exact=True).click()
    page.wait_for_url(f"**/diff/{before}/{last}")  # the one before it in its run
    added = page.locator(".beside-row.added", has_text="Alte Mühle")
    assert "+ Added" in added.inner_text()
    assert "Not here: It came later." in added.inner_text()
    short = page.locator(".beside-row.added", has_text="It gets loud after nine")
    assert "Not here: It did not fit into the budget." in short.inner_text()
    reworded = page.locator(".beside-row.reworded")
    assert reworded.locator("del").count() >= 1
    assert reworded.locator("ins").count() >= 1
    assert "± Budget" in page.locator(".budgets summary").inner_text()
    added.get_by_role("link", name="Why").click()
    added.locator("blockquote").get_by_text("Jiwoo says the best thing is the new place now").wait_for()
    reader.settle()
    assert _elsewhere(browser, reader) == _shown(reader)

    page.get_by_label("Only what changed").check()
    page.wait_for_url("**only=1**")
    page.get_by_text("lines that are the same are not shown").wait_for()  # the address is there before the rows
    assert page.locator(".beside-row.same").count() == 0
    page.get_by_role("heading", name="Two packets side by side").click()
    for _ in range(3):  # past an episode that was removed and one that was added
        page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.locator(".beside-row.reworded .beside-more").wait_for()

    page.get_by_role("link", name="Swap sides").click()
    page.wait_for_url(f"**/diff/{last}/{before}**")
    page.locator(".beside-row.removed", has_text="Alte Mühle").wait_for()
    page.get_by_role("combobox", name="Left").fill(first)  # pasted
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/diff/{first}/{before}**")
    gone = page.locator(".beside-row.removed", has_text="book a table")
    gone.wait_for()
    assert "Not here: This purpose does not get it." in gone.inner_text()
    page.goto(f"{reader.url}/#/{ANA}/diff/{first}")
    page.get_by_text("This is the first packet of its run.").wait_for()


def test_settings_that_are_moved_recompose_and_write_nothing(browser: Any, reader: Reader, story: Path) -> None:
    """By the keyboard; asked once they rest; what was asked before is let go of; the address has the settings."""
    last = _friday(story)[-1]
    held = _rows(story)
    asked: list[dict[str, Any]] = []
    stopped: list[str] = []
    page = reader.go(f"{ANA}/packet/{last}", "Left out")
    page.on("request", lambda request: "/preview" in request.url and asked.append(request.post_data_json))
    page.on("requestfailed", lambda request: "/preview" in request.url and stopped.append(request.failure))
    page.get_by_role("link", name="What if?").click()
    page.get_by_text("Nothing is written").wait_for()
    page.locator(".beside-row").first.wait_for()
    assert page.locator(".beside-row.same").count() == page.locator(".beside-row").count()
    asked.clear()
    slider = page.get_by_role("slider", name="Tokens in all")
    slider.focus()
    for _ in range(8):
        page.keyboard.press("ArrowLeft")
    page.get_by_text("Removed").first.wait_for()
    reader.settle()
    assert asked == [{"max_tokens": 272}], "one request for eight steps"
    assert "max_tokens=272" in page.url
    page.get_by_role("checkbox", name="Episodes").uncheck()
    page.locator(".beside-row.removed", has_text="Nice to meet you").wait_for()
    page.get_by_label("Purpose").select_option("planner")
    page.locator(".beside-row.added", has_text="book a table").wait_for()
    reader.settle()
    moved = page.locator(".beside-row.moved", has_text="Alte Mühle")
    assert "from line" in moved.inner_text()
    assert "Said" in moved.inner_text()
    assert asked[-1] == {"purpose": "planner", "max_tokens": 272, "per_section": {"episodes": 0}}
    with muniment.open(story, read_only=True) as mem:
        shown = mem.log.preview(last, purpose="planner", max_tokens=272, per_section={"episodes": 0})
    right = [line.text for pair in shown.diff.lines if (line := pair.b) is not None]
    assert page.locator(".beside-row .beside-cell:nth-of-type(3) .text").all_text_contents() == right
    assert _elsewhere(browser, reader) == _shown(reader)

    unanswered: list[Any] = []
    page.context.route("**/preview", lambda route: route.continue_() if unanswered else unanswered.append(route))
    query = page.get_by_label("Query")
    query.fill("what may she not eat?")
    page.wait_for_timeout(400)  # sent, and not answered yet
    query.fill("where does she live?")
    page.get_by_text("Made from the store as it stands now.").wait_for()
    reader.settle()
    assert stopped, "what is no longer wanted is let go of"
    assert asked[-1]["query"] == "where does she live?"
    page.get_by_role("link", name="Back to what it was").click()
    page.locator(".beside-row.same").first.wait_for()
    assert _rows(story) == held
    assert [each for each in reader.complaints if "ERR_" not in each] == []


def test_a_view_is_shared_by_its_address_or_by_a_command(reader: Reader, story: Path) -> None:
    last = build_of(story, "responder")
    page = reader.go(f"{ANA}/whatif/{last}?max_tokens=300&query=it's", "Nothing is written")
    page.locator("summary", has_text="Share this view").click()
    assert page.get_by_label("As a link").input_value() == page.url
    command = page.get_by_label("As a file").input_value()
    assert command.startswith("muniment run view view.html --run run_friday --link ")
    assert shlex.split(command)[-1] == "#" + page.url.partition("#")[2]
