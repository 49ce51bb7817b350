"""The inspector shows no wrong absence: what is there is counted, found, reached and read, however much there is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import browser_lengths
import pytest
from browser_lengths import ENTRIES, LONG, RUNS, USERS, Lengths
from browser_room import Reader, missing, serve
from tests.effort import SOAK

import muniment

HELD_MAX = 300
"""How much of a list a page holds."""


@pytest.fixture(scope="module")
def lengths(tmp_path_factory: pytest.TempPathFactory) -> Lengths:
    if reason := missing():
        pytest.skip(f"BROWSER TESTS SKIPPED: {reason}")
    return browser_lengths.tell(tmp_path_factory.mktemp("lengths"))


@pytest.fixture(scope="module")
def address(lengths: Lengths) -> Iterator[str]:
    with muniment.open(lengths.path) as memory:
        yield from serve(memory)


@pytest.fixture
def looking(browser: Any, address: str) -> Iterator[Reader]:
    reader = Reader(browser, address)
    reader.page.set_default_timeout(60_000)
    yield reader
    assert reader.complaints == []
    reader.context.close()


def _numbers(page: Any) -> list[int]:
    return [int(each) for each in page.locator(".ledger .seq").all_inner_texts()]


def test_a_long_run_is_counted_and_walked_both_ways(looking: Reader) -> None:
    page = looking.go("default/big/run/run_long", "Message 2 tells")
    page.get_by_text(f"{ENTRIES:,} entries · 100 shown here").wait_for()
    for last in (200, 300, 400, 500):
        page.get_by_role("button", name="Later").click()
        page.locator(".seq", has_text=re.compile(f"^{last}$")).wait_for()
    assert _numbers(page) == list(range(201, 501)), "what is held is bounded, and nothing of it is missing"
    page.get_by_role("button", name="Earlier").click()
    page.locator(".seq", has_text=re.compile("^101$")).wait_for()
    assert _numbers(page) == list(range(101, 401))
    page.get_by_role("button", name="To the last").click()
    page.get_by_text(f"Message {ENTRIES} tells").wait_for()
    assert _numbers(page) == list(range(ENTRIES - 99, ENTRIES + 1))
    page.get_by_role("button", name="Earlier").click()
    page.locator(".seq", has_text=re.compile(f"^{ENTRIES - 199}$")).wait_for()
    assert _numbers(page) == list(range(ENTRIES - 199, ENTRIES + 1))
    page.get_by_role("button", name="To the first").click()
    page.get_by_text("Message 2 tells").wait_for()


def test_words_are_looked_for_in_the_whole_run(looking: Reader) -> None:
    wanted = 49_000 if SOAK else ENTRIES - 2  # the server looks at 2,000 for one page
    page = looking.go("default/big/run/run_long", "Message 2 tells")
    field = page.get_by_role("searchbox", name="Filter")
    field.fill(f"message {wanted} tells")
    page.get_by_text("1 entries", exact=True).wait_for()
    assert _numbers(page) == [wanted]
    assert page.get_by_text("Nothing fits the filter.").count() == 0
    field.fill("words that nobody said")
    page.get_by_text("Nothing fits the filter.").wait_for()
    field.fill("")
    page.get_by_role("button", name="system", exact=True).click()
    page.get_by_text("1 entries", exact=True).wait_for()
    assert _numbers(page) == [1]


@pytest.mark.parametrize("which", ["last", "near_end"])
def test_an_event_leads_to_its_place_in_the_ledger(looking: Reader, lengths: Lengths, which: str) -> None:
    event = getattr(lengths, which)
    page = looking.go(f"default/big/event/{event}", "Builds that told a model this")
    page.get_by_role("link", name="In its ledger").click()
    here = page.locator(f"#e-{event}.here")
    here.wait_for()
    assert here.locator(".said").inner_text().startswith("Message ")
    assert page.get_by_text(f"{ENTRIES:,} entries").is_visible()
    numbers = _numbers(page)
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert len(numbers) <= HELD_MAX


def test_of_many_runs_the_newest_come_first_and_none_vanishes(looking: Reader) -> None:
    page = looking.go("default/many/runs", f"Task {RUNS - 1}")
    page.get_by_text(f"{RUNS:,} Runs · 100 shown here").wait_for()
    rows = page.locator("tbody tr a")
    assert rows.all_inner_texts() == [f"run_{number:05}" for number in range(RUNS - 1, RUNS - 101, -1)]
    page.get_by_role("button", name="To the oldest").click()
    page.get_by_text("Task 0", exact=True).wait_for()
    page.get_by_role("searchbox", name="Filter").fill("task 7")
    page.get_by_text(re.compile("^(11 Runs|100 Runs shown, and there are more)$")).wait_for()
    page.get_by_role("searchbox", name="Filter").fill("run_00007")
    page.get_by_text("1 Runs", exact=True).wait_for()
    assert rows.all_inner_texts() == ["run_00007"]


def test_users_are_found_by_typing(looking: Reader) -> None:
    page = looking.go("default", "Newest runs")
    looking.settle()
    table = page.get_by_role("region", name="Users")
    page.locator("main").get_by_role("searchbox", name="Type a user").fill("OR-007")
    page.get_by_text("1 Users", exact=True).wait_for()
    assert table.get_by_role("link").all_inner_texts() == ["visitor-007"]
    assert looking.axe() == []
    field = page.get_by_label("User", exact=True)
    field.fill("nobody-of-that-name")
    field.press("Enter")
    page.get_by_text("No user has this id.").wait_for()
    field.fill("visitor-01")
    page.locator(".offered").get_by_role("button", name="visitor-013").click()
    page.get_by_role("link", name="visit_13").wait_for()


@pytest.mark.parametrize("width", [390, 1280])
def test_long_texts_are_read_in_parts_and_stretch_nothing(
    browser: Any, address: str, lengths: Lengths, width: int
) -> None:
    reader = Reader(browser, address, viewport={"width": width, "height": 860})
    page = reader.go("default/kim/run/run_2023", "A long text: ")
    entry = page.locator(f"#e-{lengths.long_text}")
    entry.get_by_role("button", name="Show the text").click()
    entry.get_by_text("line 7: the report").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "a long argument stays in its box"
    reader.shoot(f"long_{width}")
    assert reader.axe() == []
    reader.go(f"default/kim/event/{lengths.long_text}", "line 7: the report")
    said = page.locator("blockquote .said")
    while (more := page.get_by_role("button", name="Show the next part")).count():
        before = len(said.inner_text())
        more.click()
        page.wait_for_function("n => document.querySelector('blockquote .said').innerText.length > n", arg=before)
        reader.settle()
    assert said.inner_text() == LONG
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert reader.complaints == []
    reader.context.close()


def test_times_are_when_it_was_said(looking: Reader) -> None:
    page = looking.go("default/kim/runs", "Brought in from elsewhere")
    told = page.locator("tbody tr").inner_text()
    assert "4 May 2023, 10:00" in told
    assert "recorded" in told
    page.get_by_role("link", name="run_2023").click()
    entry = page.locator(".entry", has_text="I moved to Lisbon")
    entry.wait_for()
    assert entry.locator("time").first.get_attribute("datetime").startswith("2023-05-04T10:00")
    assert "recorded" in entry.inner_text()
    page.get_by_text("4 May 2023, 10:00 – 4 May 2023, 10:07").wait_for()


# -- the answer first -------------------------------------------------------------------------------------


def test_from_a_pasted_answer_to_the_evidence_of_a_line_in_two_clicks(looking: Reader, lengths: Lengths) -> None:
    page = looking.go("default", "Paste an answer")
    looking.settle()
    page.get_by_role("textbox", name="Paste an answer").fill(browser_lengths.ANSWER)
    page.get_by_role("button", name="Who was told this?").click()
    page.locator(".badge", has_text="[77] names nothing in its packet").wait_for()
    assert page.locator(".hits a.mark").first.inner_text() == "[1]"
    page.locator(".told-line a", has_text="I moved to Lisbon in the spring.").first.click()
    evidence = page.get_by_role("region", name="Evidence")
    evidence.locator("mark", has_text="I moved to Lisbon in the spring.").wait_for()
    looking.settle()
    assert "4 May 2023" in evidence.inner_text()
    assert evidence.get_by_text("Why it was chosen").is_visible()
    looking.shoot("answer")
    assert looking.axe() == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_packets_stand_between_the_turns_and_marks_are_links(looking: Reader, lengths: Lengths) -> None:
    page = looking.go(f"default/kim/answer/run_2023?at={lengths.answer}", "6 turns")
    looking.settle()
    order = page.locator(".turns > li").evaluate_all("all => all.map(each => each.id)")
    assert order[-2:] == [f"t-{lengths.build}", f"t-{lengths.answer}"]
    answer = page.locator(f"#t-{lengths.answer}")
    assert answer.locator(".mark.unknown").inner_text().startswith("[77]")
    answer.get_by_role("link", name="[1]").click()
    chosen = page.locator(".line a[aria-current]")
    page.wait_for_url(re.compile("mark=1"))
    assert chosen.inner_text().startswith("[1] Kim: I moved to Lisbon")
    other = page.locator(".line a", has_text="goal: Brought in from elsewhere")
    other.click()
    page.locator(".line a[aria-current]", has_text="goal:").wait_for()
    assert page.get_by_role("region", name="Evidence").get_by_text("no event of its own").is_visible()
    meter = page.get_by_role("meter", name="tokens")
    assert 0 < int(meter.get_attribute("aria-valuenow")) <= int(meter.get_attribute("aria-valuemax"))
    looking.go(f"default/kim/run/run_2023/ledger?e={lengths.answer}", "Kim lives in Lisbon")
    assert page.locator(".ledger a.mark").inner_text() == "[1]"


def test_a_long_talk_is_shown_around_a_turn(looking: Reader, lengths: Lengths) -> None:
    page = looking.go(f"default/big/answer/run_long?at={lengths.near_end}", "None of the turns shown here is a packet.")
    assert page.locator(f"#t-{lengths.near_end}").is_visible()
    page.get_by_text(f"{ENTRIES:,} turns").wait_for()
    assert page.locator(".turns > li").count() <= HELD_MAX


def test_a_run_that_only_composed_has_a_conversation(looking: Reader, lengths: Lengths) -> None:
    page = looking.go(f"default/kim/answer/run_silent?at={lengths.silent}", "1 turns")
    assert page.locator(".packet-turn").inner_text().startswith("planner")
    page.get_by_role("meter", name="tokens").wait_for()
    looking.settle()
    assert looking.axe() == []
    assert looking.complaints == []
    looking.go("default/kim/run/run_silent", "No event was written in this run.")
    page.get_by_role("link", name="Conversation and prompt").click()
    page.locator(f"#t-{lengths.silent}").wait_for()
    assert all("404" in each for each in looking.complaints), "the run itself is not there"
    looking.complaints.clear()


def test_all_sessions_of_a_user_stand_in_one_talk(looking: Reader, lengths: Lengths) -> None:
    page = looking.go(f"default/kim/answer/run_2023?at={lengths.answer}", "6 turns")
    page.get_by_role("link", name="All sessions").click()
    page.get_by_text("7 turns").wait_for()
    assert page.locator(".turns > li").last.get_attribute("id") == f"t-{lengths.silent}"
    assert page.locator(f"#t-{lengths.answer}.here").is_visible()
    page = looking.go(f"default/big/answer?at={lengths.last}", "session by session")
    page.locator(f"#t-{lengths.last}.here").wait_for()
    page.get_by_text("Nothing was composed here.").wait_for()
    looking.settle()
    assert looking.axe() == []


def test_every_line_can_be_chosen_and_one_that_goes_on_rests_on_what_it_goes_on(
    looking: Reader, lengths: Lengths
) -> None:
    page = looking.go(f"default/kim/answer/run_2023?at={lengths.build}", "Why it was chosen")
    looking.settle()
    lines = page.locator(".lines > li").evaluate_all(
        "all => all.filter(each => each.textContent.trim()).map(each => each.querySelector('a') !== null)"
    )
    assert lines
    assert all(lines)
    evidence = page.get_by_role("region", name="Evidence")
    page.locator(".line a", has_text="line 5: the report about harbour 5").click()
    evidence.get_by_text("line 0: the report about harbour 0").first.wait_for()
    page.locator(".line a", has_text="## Said").click()
    evidence.get_by_text("This line belongs to the page itself").wait_for()
    assert evidence.get_by_text("Short term").first.is_visible()


def test_a_line_says_what_became_of_it_since(looking: Reader, lengths: Lengths) -> None:
    page = looking.go(f"default/lea/answer/run_lea?at={lengths.moved}", "Why it was chosen")
    page.locator(".line a", has_text="Oslo").first.click()
    evidence = page.get_by_role("region", name="Evidence")
    evidence.get_by_text("What became of it since").wait_for()
    evidence.get_by_role("link", name="user.city = Bergen").click()
    page.get_by_text("Bergen").first.wait_for()


def test_the_start_page_says_how_much_there_is_and_what_waits(looking: Reader) -> None:
    page = looking.go("default", "Needs attention")
    looking.settle()
    assert page.locator(".how-much li").first.inner_text() == f"{USERS + 4} Users"
    waits = page.get_by_role("region", name="Needs attention")
    assert waits.locator("h3").all_inner_texts() == ["Disputed facts", "Candidates that wait"]
    assert looking.axe() == []
    waits.get_by_role("link", name="user.drink: green tea (she never said so)").click()
    page.get_by_text("disputed").first.wait_for()
    page.go_back()
    page.get_by_role("link", name="user.diet: vegetarian").click()
    page.get_by_role("region", name="Candidates that wait").get_by_text("vegetarian").wait_for()
    looking.settle()
    assert looking.axe() == []


def test_who_was_told_says_how_far_it_looked_and_goes_on(looking: Reader, lengths: Lengths) -> None:
    page = looking.go("default/kim/search/why?q=nobody%20ever%20said%20this", "Looked through all packets: 2")
    looking.context.route("**/builds?limit=1", lambda route: route.fulfill(json={"items": [], "count": 5000}))
    page.reload()
    page.get_by_text("Looked through the newest packets and answers: 1,000 of 5,000").wait_for()
    with page.expect_request("**/why") as asked:
        page.get_by_role("button", name="Look further back").click()
    assert asked.value.post_data_json["looked_max"] == 10_000
    page.get_by_text("Looked through all packets: 5,000").wait_for()
