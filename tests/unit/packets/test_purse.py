"""The purse: what a line costs, what room is left, what a page is counted at, and how a text is made shorter."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from muniment.contracts.packet import PacketBudget
from muniment.packets.compose.budget import OVERHEAD, Purse, Usage, cut_text, cut_value, measure
from muniment.packets.page.layout import Page
from muniment.packets.page.lines import BLOCK_NAMES, SECTIONS, Section
from muniment.packets.page.opening import PREAMBLE
from strategies import CountBy


def purse_of(max_tokens: int = 1000, counter: CountBy | None = None, **caps: int) -> Purse:
    wire = {"max_tokens": max_tokens, "per_section": {name: caps.get(name, max_tokens) for name in SECTIONS}}
    return Purse(PacketBudget.from_wire(wire), counter or CountBy())


# -- prices --------------------------------------------------------------------------------------------


def test_a_line_is_priced_once_with_its_line_break() -> None:
    counter = CountBy(len)
    purse = purse_of(counter=counter)
    before = counter.calls
    assert [purse.price("four"), purse.price("four"), purse.price("")] == [5, 5, 1]
    assert counter.calls == before + 2
    purse.price_many(["a", "bb", "a", "four"])
    assert counter.calls == before + 4
    assert [purse.price("a"), purse.price("bb")] == [2, 3]
    assert counter.calls == before + 4


def test_what_cannot_fit_is_not_counted() -> None:
    counter = CountBy(lambda text: 1)
    purse = purse_of(256, counter)
    limit = 256 * 64
    assert purse.price("x" * limit) == 1
    assert purse.price("x" * (limit + 1)) == limit + 1
    calls = counter.calls
    purse.price_many(["y" * (limit + 1)])
    assert counter.calls == calls
    purse.price_many(["y" * limit])
    assert counter.calls == calls + 1


def test_an_estimates_margin_is_learnt_from_a_pages_worth_of_lines() -> None:
    """Ten more for whatever is counted: of a page that is little, of a line it is most."""
    estimate = CountBy(lambda text: text.count("x") + 10, is_exact=False)
    purse = purse_of(256, estimate)
    lines = ["x" * (20 + at) for at in range(9)]
    single = [len(line) + 10 for line in lines]
    purse.price_many(lines)
    held = [line for at, line in enumerate(lines) if sum(single[: at + 1]) <= 256]
    scale = (sum(map(len, held)) + 10) / sum(single[: len(held)])
    assert 0.5 < scale < 1
    assert [purse.price(line) for line in lines] == [max(1, round(count * scale)) for count in single]
    purse.price_many(["z" * 5 + "x" * at for at in range(9)])
    assert purse.price(lines[0]) == round(single[0] * scale), "it is learnt once"


def test_what_is_learnt_is_at_least_half_and_at_most_all_and_needs_half_a_page() -> None:
    for count, expected in ((lambda text: 10, 5), (lambda text: 10 * max(1, text.count("\n")) ** 2, 10)):
        purse = purse_of(256, CountBy(count, is_exact=False))
        purse.price_many([f"line {at}" for at in range(40)])
        assert purse.price("line 1") == expected
    short = purse_of(256, CountBy(lambda text: 10, is_exact=False))
    short.price_many([f"line {at}" for at in range(12)])
    assert short.price("line 1") == 10
    exact = purse_of(256, CountBy(lambda text: 10))
    exact.price_many([f"line {at}" for at in range(40)])
    assert exact.price("line 1") == 10
    tiny = purse_of(256, CountBy(lambda text: 1 if text.startswith("tiny") else 10, is_exact=False))
    tiny.price_many([f"line {at}" for at in range(40)])
    assert tiny.price("tiny") == 1, "nothing is free"


# -- room ----------------------------------------------------------------------------------------------


def test_a_block_pays_for_its_heading_once_and_within_both_limits() -> None:
    purse = purse_of(1000, facts=100)
    heading = purse.price(BLOCK_NAMES["facts"].heading)
    start = purse.room("procedures") + purse.opening("procedures")
    assert heading > 0
    assert purse.opening("facts") == heading
    assert purse.room("facts") == 100 - heading
    purse.pay("facts", 30)
    assert (purse.opening("facts"), purse.spent["facts"], purse.room("facts")) == (0, 30 + heading, 70 - heading)
    assert purse.room("procedures") + purse.opening("procedures") == start - 30 - heading
    purse.pay("facts", 10)
    purse.take_back("facts", 30)
    assert (purse.spent["facts"], purse.room("facts")) == (10 + heading, 90 - heading)
    purse.pay("procedures", start - 50)
    assert purse.room("facts") == 50 - 10 - heading - purse.price(BLOCK_NAMES["procedures"].heading)


def usage_of(whole: int, **alone: int) -> Usage:
    return Usage({section: alone.get(section, 0) for section in SECTIONS}, whole)


def test_what_is_overspent_is_named_by_the_last_section_over_its_cap() -> None:
    purse = purse_of(1000, facts=100, episodes=50)
    assert purse.overspent(usage_of(1000, facts=100, episodes=50)) == (None, 0)
    assert purse.overspent(usage_of(1003, facts=100)) == (None, 3)
    assert purse.overspent(usage_of(900, facts=107, episodes=50)) == ("facts", 7)
    assert purse.overspent(usage_of(900, facts=107, episodes=52)) == ("episodes", 2)


def test_the_accounts_are_set_to_what_the_page_was_counted_at() -> None:
    purse = purse_of(1000)
    first = purse.room("facts")
    purse.pay("facts", 500)
    heading = purse.price(BLOCK_NAMES["facts"].heading)
    purse.settle(usage_of(200, facts=200))
    assert purse.spent["facts"] == 200
    assert purse.room("facts") == 800
    purse.settle(usage_of(0))
    assert purse.room("facts") == first + heading, "the line that explains the marks is paid for in any case"


def test_parts_that_count_for_more_than_the_whole_share_it() -> None:
    usage = usage_of(10, facts=6, episodes=5, insights=4)
    assert usage.sections["facts"] + usage.sections["episodes"] + usage.sections["insights"] == 10
    assert (usage.sections["facts"], usage.sections["episodes"], usage.sections["insights"]) == (5, 3, 2)
    assert (usage.overhead, usage.total, usage.alone["facts"]) == (0, 10, 6)
    roomy = usage_of(20, facts=6, episodes=5)
    assert roomy.sections["facts"] == 6
    assert roomy.to_report() == {section: {"facts": 6, "episodes": 5}.get(section, 0) for section in SECTIONS} | {
        OVERHEAD: 9
    }


# -- the page ------------------------------------------------------------------------------------------


class Additive(CountBy):
    """A counter of words whose lines add up."""

    adds_lines = True

    def __init__(self) -> None:
        super().__init__(lambda text: len(text.split()))
        self.asked: list[str] = []

    def count_many(self, texts: Sequence[str]) -> list[int]:
        self.asked += texts
        return super().count_many(texts)


def page_of(marks: dict[str, str] | None = None, **lines: Sequence[str]) -> Page:
    held: dict[Section, list[str]] = {section: list(lines.get(section, ())) for section in SECTIONS}
    opening = list(PREAMBLE) if marks else []
    every = [*opening, *(line for section in SECTIONS for line in held[section])]
    return Page("".join(f"{line}\n" for line in every), marks or {}, held, opening, 0)


def test_a_page_whose_lines_add_up_is_counted_line_by_line_with_any_mark() -> None:
    counter = Additive()
    lines = {"facts": ["## Facts", "city: Berlin [7]", "tea: green [123]"], "episodes": ["a b"]}
    usage = measure(page_of({"7": "e1"}, **lines), counter)
    opening = len(" ".join(PREAMBLE).split())
    assert (usage.alone["facts"], usage.alone["episodes"]) == (8, 2)
    assert (usage.total, usage.overhead) == (10 + opening, opening)
    assert measure(page_of(**lines), counter).total == 10
    assert "city: Berlin [88]\n" in counter.asked
    assert "tea: green [88]\n" in counter.asked
    assert "## Facts\n" in counter.asked
    assert not any("city" in text and "tea" in text for text in counter.asked)


@pytest.mark.parametrize("odd", ["", " indented", "/slash", "\ttab"])
def test_a_line_that_may_be_read_with_the_break_before_it_is_counted_with_its_page(odd: str) -> None:
    counter = Additive()
    page = page_of(facts=["city: Berlin [7]", odd])
    usage = measure(page, counter)
    assert page.text in counter.asked
    assert usage.total == len(page.text.split())
    assert usage.alone["facts"] == 3 + len(odd.split())


def test_any_other_counter_is_asked_for_whole_texts_and_nothing_for_none() -> None:
    counter = CountBy(len)
    page = page_of(facts=["ab", "cd"], episodes=["e"])
    usage = measure(page, counter)
    assert (usage.alone["facts"], usage.alone["episodes"], usage.alone["insights"]) == (6, 2, 0)
    assert usage.total == len(page.text)
    blank = measure(page_of(), CountBy(lambda text: 99))
    assert (blank.total, blank.overhead, sum(blank.alone.values())) == (0, 0, 0)


# -- shorter texts -------------------------------------------------------------------------------------

STORY = "The sea was calm. We saw a whale near Oslo. It dived. Then we went home."


def test_a_text_keeps_whole_sentences_around_the_one_that_is_asked_for() -> None:
    def cut(size: int, *terms: str) -> str | None:
        return cut_text(STORY, lambda text: len(text) <= size, terms)

    assert cut(100) == STORY
    assert cut(20) == "The sea was calm."
    assert cut(26, "whale") == "We saw a whale near Oslo."
    assert cut(40, "whale") == "We saw a whale near Oslo. It dived."
    assert cut(44, "whale", "oslo") == "We saw a whale near Oslo. It dived."
    assert cut(53, "whale") == "The sea was calm. We saw a whale near Oslo. It dived."
    assert cut(20, "whale") == "We saw a whale near"
    assert cut(1, "whale") is None
    assert cut_text("", lambda text: True) is None
    assert cut_text("北海是一个很大的海" * 9, lambda text: len(text) <= 7) == "北海是一个很大"


def test_a_value_keeps_its_first_items_or_words() -> None:
    def fits(value: str | list[int]) -> bool:
        return len(value) <= 3

    assert cut_value([1, 2, 3, 4, 5], fits) == [1, 2, 3]
    assert cut_value([1, 2], lambda value: len(value) <= 1) == [1]
    assert cut_value([1, 2, 3], lambda value: False) is None
    assert cut_value([1], lambda value: True) is None
    assert cut_value("ab cd", fits) == "ab"
    assert cut_value(17, lambda value: True) is None
