"""Two places that are told apart never hold of one run, and a cut leaves all of the rest."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from muniment.contracts.rules import RuleApplicability
from muniment.core.predicates import Predicate, all_hold, predicate_of
from muniment.errors import InvalidInput
from muniment.rules._consolidate import are_apart, can_hold, cut_from, is_within, place_of

CONDITIONS = (
    'x_features.size == "large"',
    'x_features.size != "small"',
    'x_features.size in ["large", "small"]',
    "x_features.n > 3",
    "x_features.n <= 5",
    "x_features.urgent == true",
    '"vip" in tags',
    '!("vip" in tags)',
    "has(x_features.size)",
    "!has(x_features.n)",
    'tools.subset_of(["search", "book"])',
    'x_features.size == "large" || x_features.n > 3',
    '!has(x_features.size) || x_features.size != "large"',
)

places = st.builds(
    lambda texts, domain, buckets: RuleApplicability.from_wire(
        {
            **({"predicates": texts} if texts else {}),
            **({"domain_tag": domain} if domain else {}),
            **({"bucket_keys": buckets} if buckets else {}),
        }
    ),
    st.lists(st.sampled_from(CONDITIONS), max_size=4, unique=True),
    st.sampled_from((None, "travel", "retail")),
    st.lists(st.sampled_from(("A", "B", "C")), max_size=2, unique=True),
)


@st.composite
def runs(draw: st.DrawFn) -> dict[str, Any]:
    """A run of which anything may be unknown."""
    own: dict[str, Any] = {}
    for name, values in (("size", ("large", "small", "odd")), ("n", (2, 4, 6)), ("urgent", (True, False))):
        if draw(st.booleans()):
            own[name] = draw(st.sampled_from(values))
    run: dict[str, Any] = {"x_features": own}
    for name, several in (("tags", ("vip", "new")), ("tools", ("search", "pay"))):
        if draw(st.booleans()):
            run[name] = draw(st.lists(st.sampled_from(several), max_size=2))
    for name, words in (("domain_tag", ("travel", "retail", "other")), ("bucket_key", ("A", "B", "D"))):
        if draw(st.booleans()):
            run[name] = draw(st.sampled_from(words))
    return run


def conditions(where: RuleApplicability) -> list[Predicate]:
    return [predicate_of(part) for part in place_of(where)]


@pytest.mark.req("RC-18")
@settings(deadline=None)
@given(places, places, st.lists(runs(), min_size=1, max_size=30))
def test_what_is_said_of_two_places_is_true_of_every_run(
    one: RuleApplicability, other: RuleApplicability, several: list[dict[str, Any]]
) -> None:
    mine, theirs = place_of(one), place_of(other)
    apart, within, possible = are_apart(mine, theirs), is_within(mine, theirs), can_hold(mine)
    first, second = conditions(one), conditions(other)
    for run in several:
        in_one, in_other = bool(all_hold(first, run)), bool(all_hold(second, run))
        assert not (apart and in_one and in_other)
        assert in_other or not (within and in_one)
        assert possible or not in_one


@pytest.mark.req("RC-18")
@settings(deadline=None)
@given(places, places, st.lists(runs(), min_size=1, max_size=30))
def test_a_cut_takes_the_exception_out_and_nothing_else(
    wide: RuleApplicability, narrow: RuleApplicability, several: list[dict[str, Any]]
) -> None:
    inner = place_of(narrow)
    assume(can_hold(inner))
    try:
        cut = cut_from(wide, inner)
    except InvalidInput:
        reject()
    assert are_apart(place_of(cut), inner)
    left, whole, taken = conditions(cut), conditions(wide), conditions(narrow)
    for run in several:
        assert bool(all_hold(left, run)) == (bool(all_hold(whole, run)) and not all_hold(taken, run))
