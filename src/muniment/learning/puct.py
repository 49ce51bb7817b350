"""PUCT = Q + c·P·√T/(1+N) (RC-21), and the choice of a seed by it, with every term reported."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, fsum, isfinite, sqrt
from typing import NamedTuple

from muniment.contracts.learning import Puct, ReuseSelectMeta, ReuseStateRecord
from muniment.core.policy import PuctPolicy
from muniment.core.record import RULECRAFT_VERSION
from muniment.errors import InvalidInput

__all__ = ["PuctTerms", "SeedState", "puct_score", "rank_priors", "ranks_of", "select_seed"]


class SeedState(NamedTuple):
    """A seed, with the results of starting from it."""

    record: ReuseStateRecord
    rewards: tuple[float, ...] = ()
    """Rewards of the runs that started from it. Its own reward, from its source run, determines its rank instead."""
    visits: int = 0
    """N: the number of times it was chosen."""


class PuctTerms(NamedTuple):
    """A seed's score, with its terms."""

    state_id: str
    rank: int
    """0 is the best; seeds of equal reward share a rank."""
    q: float
    p: float
    t_total: int
    n: int
    score: float


def select_seed(
    seeds: Sequence[SeedState], policy: PuctPolicy, policy_name: str
) -> tuple[ReuseSelectMeta, tuple[PuctTerms, ...]]:
    """Choose a seed to start from; also returns all seeds with their terms, best first. Ties go by rank, then id."""
    _check(seeds)
    ranks = ranks_of([_own_reward(seed.record) for seed in seeds])
    priors = rank_priors(ranks, policy)
    total = sum(seed.visits for seed in seeds)
    terms = [_terms(seed, rank, prior, total, policy) for seed, rank, prior in zip(seeds, ranks, priors, strict=True)]
    terms.sort(key=lambda term: (-term.score, term.rank, term.state_id))
    return _meta(terms, policy, policy_name), tuple(terms)


def puct_score(q: float, prior: float, total: int, visits: int, c: float) -> float:
    """Q + c·P·√T/(1+N)."""
    return q + c * prior * sqrt(total) / (1 + visits)


def _terms(seed: SeedState, rank: int, prior: float, total: int, policy: PuctPolicy) -> PuctTerms:
    q = _q(seed.rewards, policy)
    score = puct_score(q, prior, total, seed.visits, policy.c)
    return PuctTerms(seed.record.state_id, rank, q, prior, total, seed.visits, score)


def _q(rewards: tuple[float, ...], policy: PuctPolicy) -> float:
    if not rewards:
        return 0.0
    return max(rewards) if policy.q_method == "max_reward" else fsum(rewards) / len(rewards)


def rank_priors(ranks: Sequence[int], policy: PuctPolicy) -> list[float]:
    """P ∝ exp(−α·rank), or uniform; they sum to 1."""
    alpha = policy.alpha if policy.p_method == "rank_prior" else 0.0
    weights = [exp(-alpha * rank) for rank in ranks]
    whole = fsum(weights)
    return [weight / whole for weight in weights]


def ranks_of(own: Sequence[float | None]) -> list[int]:
    """The rank of each reward: the number of better ones. Unknown rewards come last."""
    better = sorted((reward for reward in own if reward is not None), reverse=True)
    first = {reward: place for place, reward in reversed(list(enumerate(better)))}
    return [len(better) if reward is None else first[reward] for reward in own]


def _own_reward(record: ReuseStateRecord) -> float | None:
    if record.reward is not None and record.reward.total is not None:
        return record.reward.total
    return None if record.verifier is None else record.verifier.score


def _meta(terms: list[PuctTerms], policy: PuctPolicy, policy_name: str) -> ReuseSelectMeta:
    chosen = terms[0] if terms else None
    used = {"c": policy.c, "Q_method": policy.q_method, "P_method": policy.p_method, "T_total": 0}
    if chosen is not None:
        used |= {"Q": chosen.q, "P": chosen.p, "T_total": chosen.t_total, "N": chosen.n}
    return ReuseSelectMeta(
        schema_version=RULECRAFT_VERSION,
        enabled=True,
        policy=policy_name,
        selected_state_id=None if chosen is None else chosen.state_id,
        selected_score=None if chosen is None else chosen.score,
        puct=Puct.model_validate(used),
    )


def _check(seeds: Sequence[SeedState]) -> None:
    ids = [seed.record.state_id for seed in seeds]
    for seed in seeds:
        if seed.visits < 0 or not all(map(isfinite, seed.rewards)):
            raise InvalidInput(
                f"seed {seed.record.state_id!r} has visits or rewards that are no counts or numbers",
                hint="visits are 0 or more, rewards are finite",
            )
    if len(set(ids)) < len(ids):
        twice = next(name for name in ids if ids.count(name) > 1)
        raise InvalidInput(f"seed {twice!r} stands there twice", hint="each seed once, with all of its rewards")
