"""Every page of the inspector in a real browser: it shows what the store holds, and axe finds nothing wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browser_room import Reader

import muniment

ANA, ROSA = "default/ana", "default/rosa"


def _build(story: Path, purpose: str, run_id: str = "run_friday") -> str:
    """The first build for a purpose in a run."""
    from muniment.surfaces.operations.parts import builds

    with muniment.open(story) as mem:
        found = [each for each in builds(mem, user_id="ana") if (each.purpose, each.run_id) == (purpose, run_id)]
    return found[-1].build_id


def _rule(story: Path) -> str:
    with muniment.open(story) as mem:
        return mem.rulebook(user_id="rosa").rules(stage="active")[0].id


def _event(story: Path, words: str) -> str:
    with muniment.open(story) as mem:
        return next(each.id for each in mem.entries(user_id="ana") if words in (each.content or ""))


PAGES = {
    "runs": (f"{ANA}/runs", "Find a table for six in Berlin"),
    "ledger": (f"{ANA}/run/run_dinner", "A table for six at seven, please. No meat."),
    "event": (f"{ANA}/event/{{event}}", "Builds that told a model this"),
    "run_packets": (f"{ANA}/run/run_friday/packets", "Who found Canal Kitchen"),
    "claims": (f"{ANA}/run/run_dinner/claims", "Lokal Nord serves no meat."),
    "snapshots": (f"{ANA}/run/run_dinner/snapshots", "Run narrative"),
    "packets": (f"{ANA}/packets", "Which places are free at seven?"),
    "packet": (f"{ANA}/packet/{{responder}}", "insight wall"),
    "packet_text": (f"{ANA}/packet/{{responder}}/prompt_text", "Jiwoo and I ate at Canal Kitchen."),
    "packet_json": (f"{ANA}/packet/{{responder}}/raw", "schema_version"),
    "purposes": (f"{ANA}/purposes/{{responder}}", "planner"),
    "search": (f"{ANA}/search/hits?q=where%20does%20she%20live", "I moved to Berlin last week."),
    "why": (f"{ANA}/search/why?q=mushroom%20dumplings", "the best thing there"),
    "facts": (f"{ANA}/facts", "in the quiet corner"),
    "episodes": (f"{ANA}/episodes", "It gets loud after nine."),
    "rules": (f"{ROSA}/rules", "on trial with a share of 0.5"),
    "rule": (f"{ROSA}/rule/{{rule}}", "micro-regressions"),
    "flow": (f"{ROSA}/flow", "main→verify"),
    "research": (f"{ANA}/research", "Should the town of Alder"),
    "study": (f"{ANA}/study/ferries", "The trial cut emissions by 84 percent."),
}


def _address(name: str, story: Path) -> tuple[str, str]:
    address, awaited = PAGES[name]
    if "{responder}" in address:
        address = address.format(responder=_build(story, "responder"))
    elif "{rule}" in address:
        address = address.format(rule=_rule(story))
    elif "{event}" in address:
        address = address.format(event=_event(story, "mushroom dumplings"))
    return address, awaited


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_what_the_store_holds_and_is_accessible(reader: Reader, story: Path, name: str) -> None:
    address, awaited = _address(name, story)
    reader.go(address, awaited)
    reader.page.wait_for_load_state("networkidle")
    reader.shoot(name)
    assert reader.complaints == []
    assert reader.page.locator(".trouble").count() == 0
    assert reader.axe() == []


@pytest.mark.parametrize("name", ["runs", "packet", "facts", "flow", "study"])
@pytest.mark.parametrize(
    "options", [{"color_scheme": "dark"}, {"viewport": {"width": 390, "height": 844}}], ids=["dark", "mobile"]
)
def test_dark_and_narrow_pages_are_accessible_too(
    browser: Any, url: str, story: Path, name: str, options: dict[str, Any]
) -> None:
    reader = Reader(browser, url, **options)
    reader.go(*_address(name, story))
    reader.page.wait_for_load_state("networkidle")
    reader.shoot(f"{name}_{next(iter(options))}")
    assert reader.axe() == []
    width = reader.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width[0] <= width[1], "the page is wider than the screen"
    reader.context.close()


def test_chinese(browser: Any, url: str, story: Path) -> None:
    reader = Reader(browser, url, locale="zh-CN")
    reader.go(f"{ANA}/packet/{_build(story, 'responder')}", "只是推测，而回应者只陈述已知。")
    reader.shoot("packet_zh")
    assert reader.page.locator("html").get_attribute("lang") == "zh-Hans"
    assert reader.page.get_by_role("link", name="运行").first.is_visible()
    assert reader.axe() == []
    reader.context.close()


def test_a_packet_says_why_and_leads_to_the_event(reader: Reader, story: Path) -> None:
    page = reader.go(f"{ANA}/packet/{_build(story, 'responder')}", "Left out")
    meter = page.get_by_role("meter", name="Short term")
    assert int(meter.get_attribute("aria-valuenow")) <= int(meter.get_attribute("aria-valuemax")) == 130
    item = page.locator(".items > li", has_text="the mushroom dumplings").first
    assert item.get_by_text("says canal, kitchen, jiwoo, best").is_visible()
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
    mine = _build(story, "responder")
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
    assert page.locator(".changes li", has_text="Added").count() > 0
    reader.page.wait_for_load_state("networkidle")
    reader.shoot("diff")
    assert reader.axe() == []


def test_claims_mark_the_words_they_rest_on(reader: Reader) -> None:
    page = reader.go(f"{ANA}/run/run_dinner/claims", "Lokal Nord has a table at 19:00.")
    marked = page.locator("mark")
    marked.first.wait_for()
    page.wait_for_load_state("networkidle")
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
