"""Which turns answer alike, whose words count, what ends what: each rule by itself, over turns made of bare terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from muniment.core.policy import RecallPolicy
from muniment.core.text.analyzer import term_hash
from muniment.core.text.stated.attributes import ADDS, CHANGE, QUANTITY, ended, other, own
from muniment.core.text.times.when import Window
from muniment.memory.recall.index import QUESTION, Kept, role_number
from muniment.memory.recall.newest import Order, newest_first
from muniment.memory.recall.query import Kind, Query, Slot
from muniment.memory.recall.said import Said
from products import for_each

POLICY = RecallPolicy()
NOTHING = Query(
    slots=(), kinds=(), window=None, speaker=None, asker=False, addressed=False, looks_back=False, current=False,
    state=False, gathers=False, quantity=False, likes=False,
)  # fmt: skip
ONLY_ASKS = f"{QUESTION} {QUESTION}"
HOME, HERS = own("home"), other("home")


class Turn(NamedTuple):
    """What is said, as terms; when, in seconds; in which session, by whom."""

    terms: str
    at: int
    session: int = 0
    speaker: int = 0
    role: str = "user"


class Turns(Kept):
    """A scope of such turns."""

    def __init__(self, turns: Sequence[Turn], speakers: Sequence[str] = ("user", "Ann Lee")) -> None:
        super().__init__()
        self.session = np.array([turn.session for turn in turns])
        self.speaker = np.array([turn.speaker for turn in turns])
        self.role = np.array([role_number(turn.role) for turn in turns])
        self.ts = np.array([turn.at for turn in turns])
        self.length = np.array([len(turn.terms.split()) for turn in turns])
        self.speakers = speakers
        self.parts = None
        self._said = [Counter(map(term_hash, turn.terms.split())) for turn in turns]

    def prepare(self, terms: Sequence[int]) -> None:
        """Nothing: they are at hand."""

    def postings(self, term: int) -> tuple[Any, Any]:
        found = [place for place, said in enumerate(self._said) if said[term]]
        return np.array(found, int), np.array([self._said[place][term] for place in found], int)

    part_postings = postings

    def terms(self, ordinal: int) -> frozenset[int]:
        return frozenset(self._said[ordinal])


def asking(words: str, **fields: Any) -> Query:
    return NOTHING._replace(slots=tuple(Slot(word, term_hash(word), 1) for word in words.split()), **fields)


def ordered(
    query: Query,
    *turns: Turn,
    pool: Sequence[int] | None = None,
    scores: Sequence[float] | None = None,
    policy: RecallPolicy = POLICY,
    exact: dict[int, str] | None = None,
    speakers: Sequence[str] = ("user", "Ann Lee"),
) -> Order:
    """The turns, found in this order, put in order of time."""
    index = Turns(turns, speakers)
    found = np.array(range(len(turns)) if pool is None else pool)
    said = Said(query, index, found)
    worth = np.array(scores if scores is not None else [1.0] * len(found))
    told = None if exact is None else lambda ordinals: [exact[at] for at in ordinals]
    return newest_first(query, index, policy, said, found, worth, told)


TOWER = asking("tower brick")
OLD, NEW = Turn("tower brick red", 10), Turn("tower brick blue", 20)


# -- when nothing is turned round ----------------------------------------------------------------------


def test_of_two_that_say_the_same_of_it_the_newer_stands_first() -> None:
    assert ordered(TOWER, OLD, NEW) == Order([1, 0], [1, 0])
    assert ordered(TOWER, NEW, OLD) == Order([0, 1], [0, 1])


@pytest.mark.parametrize(
    "query",
    [
        TOWER._replace(looks_back=True),
        TOWER._replace(window=Window(np.datetime64("2023-01-01").item(), np.datetime64("2023-01-02").item(), "day")),
        asking("zebra"),
        NOTHING,
    ],
)
def test_what_is_asked_of_a_former_time_or_said_by_nobody_is_left_alone(query: Query) -> None:
    assert ordered(query, OLD, NEW) == Order([0, 1], [])


def test_a_time_in_a_question_for_the_present_does_not_matter() -> None:
    window = Window(np.datetime64("2023-01-01").item(), np.datetime64("2023-01-02").item(), "day")
    assert ordered(TOWER._replace(window=window, current=True), OLD, NEW).ordinals == [1, 0]


def test_one_alone_answers_like_nobody() -> None:
    assert ordered(TOWER, OLD) == Order([0], [])
    assert ordered(TOWER, OLD, Turn("garden", 20)) == Order([0, 1], [])
    assert ordered(TOWER._replace(state=True), OLD, Turn("garden", 20)) == Order([0, 1], [])


def test_only_so_many_of_the_best_are_compared() -> None:
    turns = (OLD, Turn("garden", 15), NEW)
    assert ordered(TOWER, *turns, policy=RecallPolicy(newest_pool=2)) == Order([0, 1, 2], [])
    assert ordered(TOWER, *turns, policy=RecallPolicy(newest_pool=3)) == Order([2, 1, 0], [2, 0])


# -- what restates -------------------------------------------------------------------------------------


@for_each(
    "later",
    [
        Turn("tower brick red", 20),  # the very same
        Turn("tower red blue", 20),  # less of what is asked
        Turn("tower brick blue", 20, speaker=1),
        Turn(f"tower brick blue {ONLY_ASKS}", 20),
        Turn(f"tower brick red {CHANGE} {ADDS}", 20),  # marks are no words
    ],
)
def test_what_does_not_restate_the_best_stays_where_it_is(later: Turn) -> None:
    assert ordered(TOWER, OLD, later) == Order([0, 1], [])


def test_half_of_the_shorter_ones_words_are_enough_to_restate() -> None:
    long = Turn("tower brick a b c d e f", 10)
    assert ordered(TOWER, long, Turn("tower brick x y", 20)).ordinals == [1, 0]
    assert ordered(TOWER, long, Turn("tower brick x y z", 20)).ordinals == [0, 1]


def test_one_word_in_common_is_no_statement_of_the_same_thing() -> None:
    turns = (Turn("tower red", 10), Turn("tower blue", 20))
    assert ordered(asking("tower"), *turns) == Order([0, 1], [])
    assert ordered(asking("tower", state=True), *turns) == Order([0, 1], [])
    sure = {"state": True, "current": True}
    apart = (Turn("tower red", 10), Turn("tower blue", 20, session=1))
    assert ordered(asking("tower", **sure), *apart).ordinals == [1, 0]
    assert ordered(asking("tower", state=True), *apart).ordinals == [0, 1]


def test_at_one_moment_the_later_one_of_the_session_is_the_newer() -> None:
    turns = [Turn(f"tower brick {colour}", 10) for colour in ("red", "blue", "green")]
    assert ordered(TOWER, *turns).ordinals == [2, 1, 0]
    elsewhere = [turn._replace(session=at) for at, turn in enumerate(turns)]
    assert ordered(TOWER, *elsewhere).ordinals == [0, 1, 2]


def test_at_one_moment_what_another_session_says_keeps_its_place() -> None:
    """The anchor is the user's; another's turn of the same second stands where it was found."""
    mine_, theirs = Turn("tower brick red", 10), Turn("tower brick blue", 10, session=1, role="tool")
    asked = TOWER._replace(asker=True)
    assert ordered(asked, mine_, theirs, pool=[1, 0]).ordinals == [1, 0]
    assert ordered(asked, mine_, theirs, pool=[0, 1]).ordinals == [0, 1]


def test_within_one_second_the_exact_moment_tells() -> None:
    turns = [Turn("tower brick red", 10), Turn("tower brick blue", 10, session=1)]
    assert ordered(TOWER, *turns, exact={0: "a", 1: "b"}).ordinals == [1, 0]
    assert ordered(TOWER, *turns, exact={0: "b", 1: "a"}).ordinals == [0, 1]
    state = TOWER._replace(state=True, current=True)
    assert ordered(state, *turns, exact={0: "a", 1: "b"}).ordinals == [1, 0]
    assert ordered(state, *turns, exact={0: "b", 1: "a"}).ordinals == [0, 1]


# -- the anchor ----------------------------------------------------------------------------------------

PAIRS = (
    Turn("tower brick red", 10),
    Turn("tower brick blue", 20),
    Turn("tower brick red", 10, speaker=1, role="assistant"),
    Turn("tower brick blue", 20, speaker=1, role="assistant"),
)
FIRST, SECOND = Order([1, 0, 2, 3], [1, 0]), Order([0, 1, 3, 2], [3, 2])


PEOPLE = ("Bea", "Ann Lee")


def test_the_best_turn_is_compared_with_unless_somebody_else_is_asked_about() -> None:
    assert ordered(TOWER, *PAIRS, speakers=PEOPLE) == FIRST
    assert ordered(TOWER._replace(speaker=1), *PAIRS, speakers=PEOPLE) == SECOND
    assert ordered(TOWER._replace(speaker=0), *PAIRS, speakers=PEOPLE) == FIRST
    swapped = [turn._replace(role="user" if turn.role != "user" else "assistant") for turn in PAIRS]
    assert ordered(TOWER._replace(asker=True), *swapped, speakers=PEOPLE) == SECOND
    assert ordered(TOWER._replace(asker=True), *PAIRS, speakers=PEOPLE) == FIRST
    assert ordered(TOWER._replace(asker=True, speaker=0), *swapped, speakers=PEOPLE) == FIRST
    nobody = [turn._replace(role="tool") for turn in PAIRS]
    assert ordered(TOWER._replace(asker=True), *nobody, speakers=PEOPLE) == FIRST


def test_an_assistant_without_a_name_repeats_and_is_no_newer_answer_unless_it_is_asked_what_it_said() -> None:
    turns = (Turn("tower brick red", 10, role="assistant"), Turn("tower brick blue", 20, role="assistant"))
    assert ordered(TOWER, *turns, speakers=("assistant",)).ordinals == [0, 1]
    assert ordered(TOWER._replace(addressed=True), *turns, speakers=("assistant",)).ordinals == [1, 0]
    assert ordered(TOWER, *turns, speakers=("Rex",)).ordinals == [1, 0]


def test_what_only_asks_is_compared_with_only_where_nothing_else_is_there() -> None:
    doubting = [turn._replace(terms=f"{turn.terms} {ONLY_ASKS}") for turn in PAIRS[:2]]
    assert ordered(TOWER, *doubting, *PAIRS[2:]) == SECOND
    assert ordered(TOWER, *doubting) == Order([0, 1], [])


def test_what_says_little_of_it_is_not_compared_with() -> None:
    less = (Turn("tower red", 10, speaker=1), Turn("tower blue", 20, speaker=1))
    turns = (*less, *(turn._replace(speaker=0) for turn in PAIRS[2:]))
    assert ordered(TOWER, *turns, speakers=PEOPLE) == SECOND
    low = RecallPolicy(anchor_match=0.1)
    assert ordered(TOWER, *turns, policy=low, speakers=PEOPLE).ordinals == [0, 1, 2, 3]


def test_the_name_of_the_one_asked_about_is_nothing_that_a_turn_says() -> None:
    """Who is asked about says their own name seldom: it must not weigh."""
    asked = asking("lee tower brick", speaker=1)
    turns = (Turn("lee tower brick red", 10, speaker=1), Turn("tower brick blue", 20, speaker=1))
    assert ordered(asked, *turns).ordinals == [1, 0]
    assert ordered(asked._replace(speaker=None), *turns).ordinals == [0, 1]


# -- how things stand now ------------------------------------------------------------------------------

NOW = asking("tower brick", state=True, current=True)


def test_what_the_newest_session_says_goes_up_and_what_stands_beside_the_old_goes_down() -> None:
    turns = (
        Turn("tower brick red", 10, session=0),
        Turn("tower stair", 11, session=0),
        Turn("garden", 12, session=1),
        Turn("tower brick blue", 20, session=2),
    )
    apart = RecallPolicy(restated_overlap=1.0)  # so that nothing is ordered but by session
    assert ordered(NOW, *turns, policy=apart) == Order([3, 0, 2, 1], [3, 0])
    assert ordered(NOW, *turns) == Order([3, 1, 2, 0], [3, 0])
    assert ordered(NOW._replace(state=False), *turns) == Order([3, 1, 2, 0], [3, 0])


def test_turns_of_one_session_stay_together_in_the_order_they_were_found() -> None:
    turns = (
        Turn("tower brick red", 10, session=0),
        Turn("tower brick blue", 21, session=1),
        Turn("tower brick green", 20, session=1),
        Turn("tower brick white", 5, session=2),
    )
    apart = RecallPolicy(restated_overlap=1.0)  # so that nothing is ordered but by session
    assert ordered(NOW, *turns, policy=apart) == Order([1, 2, 0, 3], [1, 2, 0, 3])
    same = [turn._replace(session=0) for turn in turns]
    assert ordered(NOW, *same, policy=apart) == Order([0, 1, 2, 3], [])


@pytest.mark.parametrize(("score", "expected"), [(0.3, [1, 0]), (0.29, [0, 1])])
def test_a_weak_match_is_not_lifted_for_being_late(score: float, expected: list[int]) -> None:
    turns = (Turn("tower brick red", 10), Turn("tower brick blue", 20, session=1))
    apart = RecallPolicy(restated_overlap=1.0)
    assert ordered(NOW, *turns, scores=[1.0, score], policy=apart).ordinals == expected
    assert ordered(NOW, *turns, scores=[10.0, 10 * score], policy=apart).ordinals == expected


@pytest.mark.parametrize(("score", "expected"), [(0.25, [1, 0]), (0.24, [0, 1])])
def test_what_tells_of_a_change_may_match_less(score: float, expected: list[int]) -> None:
    said, changed = Turn("tower brick red", 10), Turn(f"tower stair {CHANGE}", 20, session=1)
    rest = Turn("brick", 1, session=2, speaker=1)  # so that both words weigh alike
    assert ordered(NOW, said, changed, rest, scores=[1.0, score, 0.01]).ordinals[:2] == expected
    assert ordered(NOW, said._replace(at=30), changed, rest).ordinals[:2] == [0, 1]
    assert ordered(NOW, said, changed._replace(terms="tower stair"), rest).ordinals[:2] == [0, 1]


def test_what_gives_it_up_is_newer_however_little_it_says() -> None:
    turns = (Turn("tower brick red", 10), Turn(f"{ended('brick')} {CHANGE}", 20, session=1))
    assert ordered(NOW, *turns, scores=[1.0, 0.01]).ordinals == [1, 0]
    other_ = (turns[0], Turn(f"{ended('stair')} {CHANGE}", 20, session=1))
    assert ordered(NOW, *other_, scores=[1.0, 0.01]).ordinals == [0, 1]


@pytest.mark.parametrize(
    "later",
    [
        Turn("tower brick blue", 20, session=1, speaker=1),
        Turn(f"tower brick blue {ONLY_ASKS}", 20, session=1),
    ],
)
def test_another_speaker_or_a_question_tells_nothing_newer(later: Turn) -> None:
    assert ordered(NOW, Turn("tower brick red", 10), later) == Order([0, 1], [])


def test_where_a_number_is_asked_for_only_one_answers() -> None:
    many = asking("tower brick", state=True, quantity=True)
    turns = (Turn(f"tower brick 3 {QUANTITY}", 10), Turn("tower brick blue", 20, session=1))
    assert ordered(many, *turns) == Order([0, 1], [])
    counted = (turns[0], Turn(f"tower brick 4 {QUANTITY}", 20, session=1))
    assert ordered(many, *counted) == Order([1, 0], [1, 0])


def test_from_farther_down_comes_only_what_the_newest_session_says() -> None:
    """Attributes are searched for beyond the pool, as far as it reaches."""
    query = asking(HOME, state=True)
    turns = (
        Turn(f"{HOME} lisbon", 10, session=0),
        Turn("garden", 11, session=0),
        Turn(f"{HOME} rome", 20, session=1),
        Turn(f"{HOME} oslo", 30, session=2),
        Turn(f"{HOME} turin", 40, session=3),
    )
    near = RecallPolicy(newest_pool=2, newest_reach=4)
    assert ordered(query, *turns, policy=near).ordinals == [3, 1, 2, 0, 4]
    far = RecallPolicy(newest_pool=2, newest_reach=5)
    assert ordered(query, *turns, policy=far).ordinals == [4, 1, 2, 3, 0]
    assert ordered(query, *turns, policy=far).alike == [4, 0]
    whole = RecallPolicy(newest_pool=5, newest_reach=5)
    assert ordered(query, *turns, policy=whole) == Order([4, 1, 3, 2, 0], [4, 3, 2, 0])


def test_what_is_farther_down_and_older_answers_nothing() -> None:
    turns = (Turn(f"{HOME} lisbon", 50), Turn("garden", 11), Turn(f"{HOME} rome", 20, session=1))
    assert ordered(asking(HOME, state=True), *turns, policy=RecallPolicy(newest_pool=2)) == Order([0, 1, 2], [])


def test_a_session_is_as_new_as_the_newest_that_it_says_of_it() -> None:
    turns = (
        Turn("tower brick red", 22, session=1),
        Turn("tower brick blue", 18, session=1),
        Turn("tower brick green", 20, session=0),
    )
    apart = RecallPolicy(restated_overlap=1.0)
    for pool, expected in (([0, 1, 2], [0, 1, 2]), ([2, 1, 0], [1, 0, 2]), ([1, 2, 0], [1, 0, 2])):
        assert ordered(NOW, *turns, pool=pool, policy=apart).ordinals == expected


def test_the_edge_of_the_pool_is_not_in_it() -> None:
    turns = (Turn("tower brick red", 10), Turn("garden", 11), Turn("tower brick blue", 20, session=1))
    edge = RecallPolicy(newest_pool=2)
    assert ordered(NOW, *turns, policy=edge).ordinals == [0, 1, 2]


@pytest.mark.parametrize(
    ("sure", "expected"), [({"current": True}, [1, 0]), ({"quantity": True}, [1, 0]), ({}, [0, 1])]
)
def test_where_it_is_only_likely_that_things_change_more_must_be_alike(
    sure: dict[str, bool], expected: list[int]
) -> None:
    """Two of three in common: enough where the present is asked for, too little where it is not."""
    query = asking("tower brick stair", state=True, **sure)
    turns = (
        Turn(f"tower brick stair red {QUANTITY}", 10),
        Turn(f"tower brick blue {QUANTITY}", 20, session=1),
        Turn("stair", 30, session=2, speaker=1),
    )
    assert ordered(query, *turns, scores=[1.0, 1.0, 0.1]).ordinals[:2] == expected


# -- attributes of a person ----------------------------------------------------------------------------


def test_an_attribute_is_stated_in_whatever_words_and_within_a_session_too() -> None:
    query = asking(f"live {HOME}", state=True)
    turns = (Turn(f"live lisbon {HOME}", 10), Turn(f"moved berlin {HOME}", 10), Turn(f"based turin {HOME}", 5))
    assert ordered(query, *turns) == Order([1, 0, 2], [1, 0, 2])
    plain = [turn._replace(terms=turn.terms.replace(HOME, "")) for turn in turns]
    assert ordered(query, *plain) == Order([0, 1, 2], [])


def test_what_is_said_of_another_is_of_the_same_one_only_if_much_the_same_is_said() -> None:
    query = asking(f"sister {HERS}", state=True)
    mine_ = Turn(f"sister porto {HERS}", 10)
    assert ordered(query, mine_, Turn(f"sister rome {HERS}", 20, session=1)) == Order([1, 0], [1, 0])
    assert ordered(query, mine_, Turn(f"brother rome {HERS}", 20, session=1)) == Order([0, 1], [])
    assert ordered(query, mine_, Turn("sister rome", 20, session=1)) == Order([0, 1], [])
    common = [Turn(f"aunt{at} {HERS}", 1, session=9, speaker=1) for at in range(6)]
    unstated = (mine_, Turn("sister rome", 20, session=1), *common)
    assert ordered(query, *unstated).ordinals[:2] == [0, 1], "however much else is the same"
    far = (mine_, Turn("garden", 11), Turn(f"sister rome {HERS}", 20, session=1))
    assert ordered(query, *far, policy=RecallPolicy(newest_pool=2)) == Order([2, 1, 0], [2, 0])


def test_what_may_stand_for_a_word_counts_for_how_things_are_but_not_for_restating() -> None:
    kind = Kind((0,), (term_hash("dog"),))
    turns = (Turn("pet brick red tall", 10), Turn("dog brick red blue", 20, session=1))
    query = asking("pet brick", kinds=(kind,))
    assert ordered(query, *turns) == Order([0, 1], [])
    assert ordered(query._replace(state=True, current=True), *turns) == Order([1, 0], [1, 0])
    unsaid = asking("pet brick", kinds=(kind,), state=True, current=True)
    only = (Turn("dog brick red", 10), Turn("dog brick blue", 20, session=1), Turn("garden", 5, session=2))
    assert ordered(unsaid, *only).ordinals == [1, 0, 2]
    half = (only[0], Turn("brick blue", 20, session=1), only[2])
    assert ordered(unsaid, *half).ordinals == [0, 1, 2], "what nobody says in that word weighs all the same"
