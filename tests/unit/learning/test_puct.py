"""Which seed to start from: PUCT = Q + c·P·√T/(1+N), every term kept (RC-21)."""

from __future__ import annotations

from math import exp, inf, nan, sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.contracts.learning import ReuseSelectMeta, ReuseStateRecord, ReuseVerifier, Reward
from muniment.core.policy import PuctPolicy
from muniment.errors import InvalidInput
from muniment.learning.puct import SeedState, select_seed

pytestmark = pytest.mark.req("RC-21")


def seed(name: str, own: float | None = None, rewards: tuple[float, ...] = (), visits: int = 0) -> SeedState:
    fields = {} if own is None else {"reward": Reward(total=own)}
    record = ReuseStateRecord(
        schema_version="0.5.15", state_id=name, created_at="2026-05-01", seed_summary="start here", **fields
    )
    return SeedState(record, rewards, visits)


def test_the_formula_term_by_term() -> None:
    seeds = [seed("a", 0.9, (0.2, 0.6), 2), seed("b", 0.5, (1.0,), 1), seed("c", 0.7, (), 0)]
    meta, terms = select_seed(seeds, PuctPolicy(c=1.5, alpha=0.5), "puct_maxq_rankprior_v1")
    whole = 1 + exp(-0.5) + exp(-1)
    expected = {
        "a": (0, 0.6, 1 / whole, 3, 2, 0.6 + 1.5 * (1 / whole) * sqrt(3) / 3),
        "b": (2, 1.0, exp(-1) / whole, 3, 1, 1.0 + 1.5 * (exp(-1) / whole) * sqrt(3) / 2),
        "c": (1, 0.0, exp(-0.5) / whole, 3, 0, 1.5 * (exp(-0.5) / whole) * sqrt(3)),
    }
    assert {term.state_id: pytest.approx(term[1:]) for term in terms} == expected
    assert [term.state_id for term in terms] == ["b", "a", "c"]
    best = terms[0]
    assert meta.to_wire() == {
        "schema_version": "0.5.15",
        "enabled": True,
        "policy": "puct_maxq_rankprior_v1",
        "selected_state_id": "b",
        "selected_score": best.score,
        "puct": {
            "c": 1.5, "Q_method": "max_reward", "P_method": "rank_prior",
            "Q": 1.0, "P": best.p, "T_total": 3, "N": 1,
        },
    }  # fmt: skip
    assert ReuseSelectMeta.from_wire(meta.to_wire()) == meta


def test_mean_reward_and_uniform_prior() -> None:
    policy = PuctPolicy(q_method="mean_reward", p_method="uniform")
    _, terms = select_seed([seed("a", 1.0, (0.0, 1.0), 2), seed("b")], policy, "p")
    by_id = {term.state_id: term for term in terms}
    assert (by_id["a"].q, by_id["b"].q) == (0.5, 0.0)
    assert by_id["a"].p == by_id["b"].p == 0.5


def test_rewards_may_all_be_below_zero() -> None:
    _, terms = select_seed([seed("a", None, (-2.0, -1.0), 2)], PuctPolicy(), "p")
    assert terms[0].q == -1.0


def test_ties_go_by_rank_then_id() -> None:
    seeds = [seed("z", 0.5), seed("m", 0.9), seed("a", 0.5), seed("n")]
    meta, terms = select_seed(seeds, PuctPolicy(), "p")
    assert [(term.state_id, term.rank) for term in terms] == [("m", 0), ("a", 1), ("z", 1), ("n", 3)]
    assert meta.selected_state_id == "m"  # nobody was visited: T = 0, all scores are 0


def test_a_verifier_score_ranks_where_there_is_no_reward() -> None:
    scored = seed("a").record.model_copy(update={"verifier": ReuseVerifier(score=0.8)})
    _, terms = select_seed([seed("b", 0.7), SeedState(scored)], PuctPolicy(), "p")
    assert [term.state_id for term in terms] == ["a", "b"]


def test_no_seeds_is_no_choice() -> None:
    meta, terms = select_seed([], PuctPolicy(), "p")
    assert terms == ()
    assert meta.selected_state_id is None
    assert meta.selected_score is None
    assert ReuseSelectMeta.from_wire(meta.to_wire()) == meta


@pytest.mark.parametrize(
    "seeds",
    [
        [seed("a"), seed("a", 0.5)],
        [seed("a", None, (), -1)],
        [seed("a", None, (nan,))],
        [seed("a", None, (inf,))],
    ],
)
def test_what_is_no_count_or_number_is_refused(seeds: list[SeedState]) -> None:
    with pytest.raises(InvalidInput):
        select_seed(seeds, PuctPolicy(), "p")


SEEDS = st.lists(
    st.builds(
        seed,
        st.sampled_from("abcdefgh"),
        st.none() | st.floats(0, 1),
        st.lists(st.floats(-1, 1), max_size=3).map(tuple),
        st.integers(0, 50),
    ),
    unique_by=lambda state: state.record.state_id,
)
POLICIES = st.builds(
    PuctPolicy,
    c=st.floats(0, 10),
    alpha=st.floats(0, 1000),
    q_method=st.sampled_from(["max_reward", "mean_reward"]),
    p_method=st.sampled_from(["rank_prior", "uniform"]),
)


@given(SEEDS, POLICIES, st.randoms())
def test_selection_does_not_depend_on_order(seeds: list[SeedState], policy: PuctPolicy, chance: Random) -> None:
    shuffled = list(seeds)
    chance.shuffle(shuffled)
    meta, terms = select_seed(seeds, policy, "p")
    assert (meta, terms) == select_seed(shuffled, policy, "p")
    assert sum(term.p for term in terms) == pytest.approx(1 if seeds else 0)
    assert all(term.score == term.q + policy.c * term.p * sqrt(term.t_total) / (1 + term.n) for term in terms)
    assert list(terms) == sorted(terms, key=lambda term: (-term.score, term.rank, term.state_id))
