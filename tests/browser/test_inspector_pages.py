"""Every page of the inspector in a real browser: it shows what the store holds, and axe finds nothing wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from browser_pages import ANA, PAGES, ROSA, address_of, build_of
from browser_room import Reader

import muniment


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_what_the_store_holds_and_is_accessible(reader: Reader, story: Path, name: str) -> None:
    address, awaited = address_of(name, story)
    reader.go(address, awaited)
    reader.settle()
    reader.shoot(name)
    assert reader.complaints == []
    assert reader.page.locator(".trouble").count() == 0
    assert reader.axe() == []


@pytest.mark.soak
@pytest.mark.parametrize("name", ["runs", "packet", "facts", "flow", "study"])
@pytest.mark.parametrize(
    "options", [{"color_scheme": "dark"}, {"viewport": {"width": 390, "height": 844}}], ids=["dark", "mobile"]
)
def test_dark_and_narrow_pages_are_accessible_too(
    browser: Any, url: str, story: Path, name: str, options: dict[str, Any]
) -> None:
    reader = Reader(browser, url, **options)
    reader.go(*address_of(name, story))
    reader.settle()
    reader.shoot(f"{name}_{next(iter(options))}")
    assert reader.axe() == []
    width = reader.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width[0] <= width[1], "the page is wider than the screen"
    reader.context.close()


def test_chinese(browser: Any, url: str, story: Path) -> None:
    reader = Reader(browser, url, locale="zh-CN")
    reader.go(f"{ANA}/packet/{build_of(story, 'responder')}", "只是推测，而回应者只陈述已知。")
    reader.shoot("packet_zh")
    assert reader.page.locator("html").get_attribute("lang") == "zh-Hans"
    assert reader.page.get_by_role("link", name="运行").first.is_visible()
    assert reader.axe() == []
    reader.context.close()


def test_a_packet_says_why_and_leads_to_the_event(reader: Reader, story: Path) -> None:
    page = reader.go(f"{ANA}/packet/{build_of(story, 'responder')}", "Left out")
    meter = page.get_by_role("meter", name="Short term")
    assert int(meter.get_attribute("aria-valuenow")) <= int(meter.get_attribute("aria-valuemax")) == 130
    item = page.locator(".items > li", has_text="the mushroom dumplings").first
    assert item.get_by_text("says Canal, Kitchen, Jiwoo, best").is_visible()
    assert item.get_by_text("words").is_visible()  # a part of its score
    item.get_by_role("button", name="Show source").click()
    source = item.locator("blockquote")
    source.get_by_text("visit").wait_for()
    source.get_by_role("link", name="In its ledger").click()
    page.get_by_role("heading", name="Builds that told a model this").wait_for()
    page.get_by_role("link", name="In its ledger").click()
    page.locator("li.entry.here", has_text="mushroom dumplings").wait_for()
    reader.shoot("ledger_jump")


def test_replay_diff_and_three_purposes(reader: Reader, story: Path) -> None:
    mine = build_of(story, "responder")
    page = reader.go(f"{ANA}/packet/{mine}", "Left out")
    page.get_by_role("button", name="Replay check").click()
    page.get_by_text("the same bytes").wait_for()
    with muniment.open(story) as mem:
        from hashlib import sha256

        digest = sha256(mem.replay(mine).packet_bytes).hexdigest()
    assert page.locator(".replay code").get_attribute("title") == digest
    page.get_by_role("link", name="Three purposes").click()
    row = page.get_by_role("row", name="plan: book a table (todo)")
    row.wait_for()
    assert [cell.strip() for cell in row.get_by_role("cell").all_inner_texts()] == ["✓ score 1", "✓ score 1", "purpose"]
    page.go_back()
    other = page.get_by_label("Compare with").locator("option", has_text="responder").first
    other.wait_for(state="attached")
    page.get_by_label("Compare with").select_option(label=other.inner_text())
    page.get_by_text("Asked differently").wait_for()
    assert page.locator(".beside-row.added").count() > 0


def test_claims_mark_the_words_they_rest_on(reader: Reader) -> None:
    page = reader.go(f"{ANA}/run/run_dinner/claims", "Lokal Nord has a table at 19:00.")
    marked = page.locator("mark")
    marked.first.wait_for()
    reader.settle()
    assert marked.all_inner_texts() == ["19:00 free", "Menu: vegan", "at seven", "19:00 free"]


def test_a_snapshot_is_checked_again(reader: Reader) -> None:
    page = reader.go(f"{ANA}/run/run_dinner/snapshots", "Snapshot 1")
    page.get_by_role("button", name="Snapshot 1").click()
    page.get_by_text("number 1").wait_for()
    page.get_by_role("button", name="Check again").click()
    page.locator(".checks").nth(1).get_by_text("PASS").first.wait_for()


def test_the_keyboard(reader: Reader) -> None:
    page = reader.go(f"{ANA}/runs", "run_dinner")
    page.get_by_role("heading", name="Runs").click()
    for key, awaited in (("j", "ferries"), ("j", "run_private"), ("k", "ferries")):
        page.keyboard.press(key)
        page.wait_for_function("wanted => document.activeElement.textContent === wanted", arg=awaited)
    page.keyboard.press("/")
    page.keyboard.type("dinner")
    page.get_by_text("1 Runs").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("f")
    page.get_by_role("heading", name="Facts").wait_for()
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    reader.shoot("keyboard")
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    page.keyboard.press("t")
    assert page.locator("html").get_attribute("data-theme") == "light"
    page.keyboard.press("t")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 22, 26)"
    page.keyboard.press("l")
    page.get_by_role("heading", name="事实").wait_for()


def test_rules_and_flow_of_an_agent_or_the_tenant(reader: Reader) -> None:
    page = reader.go(f"{ROSA}/rules", "on trial with a share of 0.5")
    page.locator("main select").select_option(label="Agent counter")
    page.get_by_text("Nothing here yet.").wait_for()
    page.goto(f"{reader.url}/#/{ROSA}/flow?of=tenant")
    page.get_by_text("No run has been judged here yet.").wait_for()
    assert page.locator(".trouble").count() == 0


def test_what_is_written_meanwhile_appears(reader: Reader, story: Path) -> None:
    page = reader.go("default/live/runs", "Nothing here yet.")
    with muniment.open(story) as mem:
        run = mem.run(user_id="live", session_id="s", run_id="run_live")
        run.observe("user", "the first thing")
        page.get_by_role("link", name="run_live").click()
        page.get_by_text("the first thing").wait_for()
        run.observe("user", "and the second")
    page.get_by_text("and the second").wait_for()


ELSEWHERE = """
import sys, muniment
with muniment.open(sys.argv[1]) as mem:
    run = mem.run(user_id="told", session_id="s", run_id="run_told")
    run.observe("user", sys.argv[2])
"""


def test_what_another_process_writes_is_told_to_the_open_page(reader: Reader, story: Path) -> None:
    """By the server itself: the page asks for the list once when it opens, and once more when it was told."""

    def write(words: str) -> None:
        subprocess.run([sys.executable, "-c", ELSEWHERE, str(story), words], check=True)

    write("the first thing")
    page = reader.go("default/told/run/run_told", "the first thing")
    page.locator("[data-pulse=stream]").wait_for()
    page.wait_for_timeout(1000)  # it looks once more when the stream begins
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(3500)  # as long as a page that is not told would wait before it looks again
    assert [each for each in asked if "/events" in each] == []
    write("from another process")
    page.get_by_text("from another process").wait_for()
    assert reader.complaints == []


def test_a_page_without_a_stream_looks_again_by_itself(reader: Reader, story: Path) -> None:
    reader.context.route("**/changes", lambda route: route.abort())
    page = reader.go("default/untold/runs", "Nothing here yet.")
    page.locator("[data-pulse=poll]").wait_for()
    with muniment.open(story) as mem:
        mem.run(user_id="untold", session_id="s", run_id="run_untold").observe("user", "x")
    page.get_by_role("link", name="run_untold").wait_for()


def test_a_page_that_is_not_live_stands_still(reader: Reader, story: Path) -> None:
    page = reader.go("default/still/runs", "Nothing here yet.")
    page.locator("[data-pulse=stream]").wait_for()
    page.get_by_role("checkbox").uncheck()
    page.locator("[data-pulse=off]").wait_for()
    with muniment.open(story) as mem:
        mem.run(user_id="still", session_id="s", run_id="run_still").observe("user", "x")
    page.wait_for_timeout(1500)
    assert page.get_by_role("link", name="run_still").count() == 0
    page.get_by_role("checkbox").check()
    page.get_by_role("link", name="run_still").wait_for()


def test_runs_by_session_and_a_filter_that_fits_nothing(reader: Reader) -> None:
    page = reader.go(f"{ANA}/runs", "run_dinner")
    page.get_by_role("button", name="By session").click()
    page.get_by_role("heading", name="dinner 1").wait_for()
    page.get_by_role("searchbox", name="Filter").fill("no such run")
    page.get_by_text("Nothing fits the filter.").wait_for()
