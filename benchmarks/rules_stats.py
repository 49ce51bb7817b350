"""The statistics of rules: do the bounds hold, and what do decisions by them cost, beside point rules and fixed sizes?

    python -m benchmarks.rules_stats            everything, 10,000 rules a figure (a few minutes)
    python -m benchmarks.rules_stats --quick    1,000 rules a figure

- `wilson`: rules whose pass rate is uniform, n runs each, looked at once: how often p_lb95 is at most the true rate.
  `exact` is the same by integration. p_lb95 is the lower end of the *two-sided* 95 % interval, so 97.5 % is its aim;
  `z 1.645` is the one-sided 95 % bound, which it is not.
- `sequence`: the confidence sequence at a fixed rate, looked at after every run: how often it holds at *all* looks,
  at the worst single look, and how often Wilson's interval, made for one look, would hold at all of them.
- `decide`: a candidate beside a baseline, decided by `Comparison` (harmful: rolled back; not_harmful: kept) and by the
  point rules that the source rolls back on, at 200 outcomes an arm and at canary sizes. Neutral rules that are rolled
  back are false rollbacks, rules of −.05 that are not are missed.
- `time`: outcomes an arm until the right decision, beside a test of fixed size that finds −.05 as often
  and errs in .05 of neutral rules: one made for −.05, which takes its size whatever the effect is, and one that
  knows the effect beforehand. Rules that stay undecided count with all the outcomes they had.

`Comparison` is run here as arrays over all rules at once; `check` says that both do the same, stream by stream.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, lgamma, log
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.harness import RESULTS, report
from muniment.core.stats import (
    STAKES,
    Beta,
    Comparison,
    Tally,
    confidence_sequence,
    normal_quantile,
    p_lb95,
    wilson_bounds,
)

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Random = np.random.Generator

ALPHA = 0.05
MARGIN = 0.05
SIZES = (3, 6, 10, 20, 50, 100, 200, 1_000)
RATES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
LOOKS = 1_000
ROUNDS = 4_000
CANARY = 19
"""Baseline outcomes for each of the candidate: a canary of 5 %."""


# -- wilson -------------------------------------------------------------------------------------------


def wilson(rules: int, random: Random) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    held_in_all = 0
    for n in SIZES:
        rates = random.random(rules)
        passes = random.binomial(n, rates)
        lower = np.array([p_lb95(Tally(k, n)) for k in range(n + 1)], dtype=float)
        both = np.array([wilson_bounds(k, n) for k in range(n + 1)])
        one_sided = np.array([wilson_bounds(k, n, 0.90).lower for k in range(n + 1)])
        held = lower[passes] <= rates
        held_in_all += int(held.sum())
        rows[f"wilson, n {n}"] = {
            "lower_holds": float(held.mean()),
            "lower_holds_exact": _exact(lower, n),
            "interval_holds": float(((both[passes, 0] <= rates) & (rates <= both[passes, 1])).mean()),
            "lower_z_1.645_holds_exact": _exact(one_sided, n),
        }
    rows["wilson, all sizes"] = {"lower_holds": held_in_all / rules / len(SIZES), "rules": rules * len(SIZES)}
    return rows


def _exact(lower: Floats, n: int) -> float:
    """With a uniform rate every count is as likely, and the rate given the count is Beta(k + 1, n − k + 1)."""
    return sum(1 - Beta(k + 1, n - k + 1).cdf(float(bound)) for k, bound in enumerate(lower)) / (n + 1)


# -- sequences ----------------------------------------------------------------------------------------


def sequence(rate: float, rules: int, random: Random) -> dict[str, Any]:
    """Paths of `LOOKS` runs at one rate: the share in which the rate is inside at every look."""
    looks = np.arange(1, LOOKS + 1)
    mixed = np.array([lgamma(0.5 + k) for k in range(LOOKS + 1)])
    whole = np.array([lgamma(1.0 + n) for n in looks]) + 2 * lgamma(0.5) - lgamma(1.0)
    edge = -log(ALPHA)
    z2 = normal_quantile(0.975) ** 2
    ever, ever_below, wilson_ever, missed_at = 0, 0, 0, np.zeros(LOOKS)
    for start in range(0, rules, 1_000):
        count = min(1_000, rules - start)
        passes = np.cumsum(random.random((count, LOOKS)) < rate, axis=1)
        fails = looks - passes
        log_game = mixed[passes] + mixed[fails] - whole - passes * log(rate) - fails * log(1 - rate)
        missed = log_game >= edge
        ever += int(missed.any(axis=1).sum())
        ever_below += int((missed & (passes > rate * looks)).any(axis=1).sum())
        missed_at += missed.sum(axis=0)
        share = passes / looks
        outside = looks * (share - rate) ** 2 > z2 * rate * (1 - rate)  # where the score test refuses the rate
        wilson_ever += int(outside.any(axis=1).sum())
    return {
        "holds_at_all_looks": 1 - ever / rules,
        "lower_holds_at_all_looks": 1 - ever_below / rules,
        "holds_at_worst_look": float(1 - missed_at.max() / rules),
        "wilson_holds_at_all_looks": 1 - wilson_ever / rules,
    }


def check_sequences(random: Random) -> dict[str, Any]:
    """That the game above and `confidence_sequence` are the same thing, at random counts and rates."""
    edge, agreed, tried = -log(ALPHA), 0, 2_000
    for _ in range(tried):
        n = int(random.integers(1, LOOKS))
        k, rate = int(random.integers(0, n + 1)), float(random.uniform(0.01, 0.99))
        game = lgamma(0.5 + k) + lgamma(0.5 + n - k) - lgamma(1.0 + n) - 2 * lgamma(0.5)
        game -= k * log(rate) + (n - k) * log(1 - rate)
        bounds = confidence_sequence(Tally(k, n), ALPHA)
        agreed += (bounds.lower <= rate <= bounds.upper) == (game < edge)
    return {"checked": tried, "agreed": agreed}


# -- comparisons --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Decided:
    """When each rule was first shown to be worse, and not to be harmful: rounds, 0 where never."""

    worse: Counts
    not_harmful: Counts

    @property
    def rolled_back(self) -> Mask:
        first: Mask = (self.worse > 0) & ((self.not_harmful == 0) | (self.worse < self.not_harmful))
        return first

    @property
    def kept(self) -> Mask:
        return (self.not_harmful > 0) & ~self.rolled_back

    @property
    def when(self) -> Counts:
        """The round of the decision; the last where there was none."""
        first = np.where(self.rolled_back, self.worse, self.not_harmful)
        return np.where(first > 0, first, ROUNDS)


def compare(candidate: Floats, baseline: Floats, random: Random, others: int = 1, rounds: int = ROUNDS) -> Decided:
    """`Comparison` of all rules at once; `others` baseline outcomes a round. The rates are those of each rule."""
    rules = len(candidate)
    stakes = np.array(STAKES)[:, np.newaxis]
    worse, safe = np.ones((len(STAKES), rules)), np.ones((len(STAKES), rules))
    first_worse, first_safe = np.zeros(rules, dtype=np.int64), np.zeros(rules, dtype=np.int64)
    for round_ in range(1, rounds + 1):
        gap = (random.random(rules) < candidate) - random.binomial(others, baseline) / others
        worse *= 1 - stakes * gap
        safe *= 1 + stakes * (gap + MARGIN)
        np.minimum(worse, 1e100, out=worse)
        np.minimum(safe, 1e100, out=safe)
        first_worse[(first_worse == 0) & (worse.mean(axis=0) >= 1 / ALPHA)] = round_
        first_safe[(first_safe == 0) & (safe.mean(axis=0) >= 1 / ALPHA)] = round_
    return Decided(first_worse, first_safe)


def check_comparison(random: Random) -> dict[str, Any]:
    """`Comparison` itself on the same streams."""
    rules, rounds = 40, 600
    rates = random.uniform(0.3, 0.95, (2, rules))
    seed = int(random.integers(1 << 30))
    fast = compare(rates[0], rates[1], np.random.default_rng(seed), rounds=rounds)
    states = [Comparison(margin=MARGIN, alpha=ALPHA) for _ in range(rules)]
    slow = Decided(np.zeros(rules, dtype=np.int64), np.zeros(rules, dtype=np.int64))
    drawn = np.random.default_rng(seed)
    for round_ in range(1, rounds + 1):
        ours = drawn.random(rules) < rates[0]
        theirs = drawn.binomial(1, rates[1]).astype(bool)
        for at in range(rules):
            states[at] = states[at].add_pair(bool(ours[at]), bool(theirs[at]))
            claims = states[at].claims
            if "worse" in claims and not slow.worse[at]:
                slow.worse[at] = round_
            if "not_harmful" in claims and not slow.not_harmful[at]:
                slow.not_harmful[at] = round_
    agreed = (fast.worse == slow.worse) & (fast.not_harmful == slow.not_harmful)
    return {"checked": rules, "agreed": int(agreed.sum())}


def point_rules(candidate: Floats, baseline: Floats, sizes: tuple[int, int], random: Random) -> tuple[float, float]:
    """The share rolled back by the pass rate alone (below −.01), and by any of the five rules of the source.

    Confirmed passes are 80 % of passes, a twentieth of answers violates the schema, a task takes 1 to 3 attempts, and
    the five top clusters share 60 % of the failures. Only the pass rate, and what follows from it, differs.
    """
    arms = [_arm(rates, size, random) for rates, size in zip((candidate, baseline), sizes, strict=True)]
    ours, theirs = arms
    falls = ours["passed"] - theirs["passed"] < -0.01
    others = (
        (ours["confirmed"] - theirs["confirmed"] < -0.01)
        | (ours["violated"] - theirs["violated"] > 0.02)
        | ((ours["attempts"] - theirs["attempts"] > 0.25) & (ours["passed"] <= theirs["passed"]))
        | (ours["clusters"] - theirs["clusters"] > 0.05).any(axis=0)
    )
    return float(falls.mean()), float((falls | others).mean())


def _arm(rates: Floats, size: int, random: Random) -> dict[str, Floats]:
    passes = random.binomial(size, rates)
    left, clusters = size - passes, []
    for share in np.array([0.12] * 5) / (1 - 0.12 * np.arange(5)):
        taken = random.binomial(left, share)
        clusters.append(taken / size)
        left = left - taken
    return {
        "passed": passes / size,
        "confirmed": random.binomial(passes, 0.8) / size,
        "violated": random.binomial(size, 0.05, len(rates)) / size,
        "attempts": 1 + random.binomial(2 * size, 0.25, len(rates)) / size,
        "clusters": np.array(clusters),
    }


def decide(rules: int, random: Random) -> dict[str, dict[str, Any]]:
    """Neutral rules and rules of −.05, of pass rates from .5 to .95: who rolls back what."""
    rows: dict[str, dict[str, Any]] = {}
    base = random.uniform(0.5, 0.95, rules)
    worlds = {"neutral": base, "harmful": base - MARGIN}
    for name, others in (("sequential, equal arms", 1), ("sequential, canary 5 %", CANARY)):
        made = {world: compare(rates, base, random, others) for world, rates in worlds.items()}
        neutral, harmful = made["neutral"], made["harmful"]
        rows[f"decide: {name}"] = {
            "false_rollbacks": float(neutral.rolled_back.mean()),
            "neutral_kept": float(neutral.kept.mean()),
            "neutral_undecided": float((~neutral.kept & ~neutral.rolled_back).mean()),
            "missed": float((~harmful.rolled_back).mean()),
            "harmful_kept": float(harmful.kept.mean()),
            "harmful_undecided": float((~harmful.kept & ~harmful.rolled_back).mean()),
            "candidate_runs_median": float(np.median(harmful.when)),
        }
    for name, sizes in {
        "200 an arm": (200, 200),
        "50 of 1,000 (5 %)": (50, 950),
        "10 of 1,000 (1 %)": (10, 990),
        "1,000 an arm": (1_000, 1_000),
    }.items():
        alone, any_of = {}, {}
        for world, rates in worlds.items():
            alone[world], any_of[world] = point_rules(rates, base, sizes, random)
        for what, told in (("pass rate", alone), ("any of five", any_of)):
            rows[f"decide: point rule, {what}, {name}"] = {
                "false_rollbacks": told["neutral"],
                "missed": 1 - told["harmful"],
                "candidate_runs_median": float(sizes[0]),
            }
    return rows


# -- time ---------------------------------------------------------------------------------------------


def fixed_size(rate: float, effect: float, power: float) -> int:
    """Outcomes an arm for a one-sided test at `ALPHA` that finds this effect with this power."""
    spread = rate * (1 - rate) + (rate + effect) * (1 - rate - effect)
    wanted: float = (normal_quantile(1 - ALPHA) + normal_quantile(power)) ** 2
    return ceil(wanted * spread / effect**2)


def fixed_error(rate: float, effect: float, size: int, rules: int, random: Random) -> float:
    """The share of rules that the fixed-size test calls worse."""
    ours, theirs = (random.binomial(size, each, rules) / size for each in (rate + effect, rate))
    spread = np.sqrt((ours * (1 - ours) + theirs * (1 - theirs)) / size)
    return float((ours - theirs < -normal_quantile(1 - ALPHA) * spread).mean())


def times(rules: int, random: Random) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for rate in (0.5, 0.8, 0.95):
        at_margin = compare(np.full(rules, rate - MARGIN), np.full(rules, rate), random)
        power = float(at_margin.rolled_back.mean())
        size = fixed_size(rate, -MARGIN, power)
        for effect in (-0.2, -0.1, -MARGIN, 0.0, 0.05):
            if rate + effect > 1:
                continue
            made = (
                at_margin if effect == -MARGIN else compare(np.full(rules, rate + effect), np.full(rules, rate), random)
            )
            right = made.rolled_back if effect < 0 else made.kept
            row: dict[str, Any] = {
                "right": float(right.mean()),
                "wrong": float((made.kept if effect < 0 else made.rolled_back).mean()),
                "runs_median": float(np.median(made.when)),
                "runs_mean": float(made.when.mean()),
                "runs_p90": float(np.quantile(made.when, 0.9)),
                "fixed_runs": size,
                "of_fixed": float(made.when.mean() / size),
                "of_fixed_median": float(np.median(made.when) / size),
                "fixed_calls_worse": fixed_error(rate, effect, size, rules, random),
            }
            if effect < 0:
                known = fixed_size(rate, effect, min(0.999, row["right"]))
                row |= {"fixed_runs_if_known": known, "of_fixed_if_known": float(made.when.mean() / known)}
            rows[f"time: pass rate {rate:g}, effect {effect:+g}"] = row
    shown = [row for name, row in rows.items() if name.startswith("time: pass")]
    rows["time: all, equal shares"] = {
        "runs_mean": float(np.mean([row["runs_mean"] for row in shown])),
        "fixed_runs": float(np.mean([row["fixed_runs"] for row in shown])),
        "of_fixed": float(np.sum([row["runs_mean"] for row in shown]) / np.sum([row["fixed_runs"] for row in shown])),
        "right": float(np.mean([row["right"] for row in shown])),
    }
    return rows


# -- all of it ----------------------------------------------------------------------------------------


def plot(rows: dict[str, dict[str, Any]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(13, 9))
    first, second, third, fourth = axes.flat
    first.plot(SIZES, [rows[f"wilson, n {n}"]["lower_holds"] for n in SIZES], "o-", label="p_lb95, simulated")
    first.plot(SIZES, [rows[f"wilson, n {n}"]["lower_holds_exact"] for n in SIZES], "x:", label="p_lb95, exact")
    first.plot(SIZES, [rows[f"wilson, n {n}"]["interval_holds"] for n in SIZES], "s-", color="0.6", label="two-sided")
    first.set_xscale("log")
    first.set_xlabel("runs")
    first.set_title("Wilson, pass rate uniform: share that holds, one look")
    for key, label in (("holds_at_all_looks", "sequence"), ("wilson_holds_at_all_looks", "Wilson")):
        second.plot(RATES, [rows[f"sequence, p {rate:g}"][key] for rate in RATES], "o-", label=label)
    second.set_xlabel("true pass rate")
    second.set_title(f"share that holds at each of {LOOKS:,} looks")
    for axis in (first, second):
        axis.axhline(0.95, color="0.3", linestyle=":")
        axis.legend()
    names = [name for name in rows if name.startswith("decide")]
    places = np.arange(len(names))[::-1]
    third.barh(places + 0.2, [rows[name]["false_rollbacks"] for name in names], 0.38, label="neutral, rolled back")
    third.barh(places - 0.2, [rows[name]["missed"] for name in names], 0.38, label="−.05, not rolled back")
    third.set_yticks(places, [name.removeprefix("decide: ") for name in names], fontsize=7)
    third.axvline(0.05, color="0.3", linestyle=":")
    third.legend(fontsize=8)
    third.set_title("wrong decisions (dotted: .05)")
    names = [name for name in rows if name.startswith("time: pass")]
    places = np.arange(len(names))[::-1]
    fourth.barh(places, [rows[name]["of_fixed"] for name in names], 0.6, color="tab:blue", label="mean")
    fourth.plot([rows[name]["of_fixed_median"] for name in names], places, "k|", markersize=10, label="median")
    fourth.axvline(1, color="0.3", linestyle=":")
    fourth.set_yticks(places, [name.removeprefix("time: ") for name in names], fontsize=7)
    fourth.legend(fontsize=8)
    fourth.set_title("outcomes to a decision ÷ those of a fixed-size test for −.05")
    figure.tight_layout()
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rules", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args(argv)
    rules = 1_000 if given.quick else given.rules
    random = np.random.default_rng(given.seed)
    start = time.process_time()
    rows = {"check: sequence": check_sequences(random), "check: comparison": check_comparison(random)}
    rows |= wilson(rules, random)
    rows |= {f"sequence, p {rate:g}": sequence(rate, rules, random) for rate in RATES}
    rows["sequence, worst"] = {
        name: min(rows[f"sequence, p {rate:g}"][name] for rate in RATES) for name in rows["sequence, p 0.5"]
    }
    rows |= decide(rules, random)
    rows |= times(rules, random)
    rows["cost"] = {"cpu_s": time.process_time() - start}
    plot(rows, RESULTS / "rules_stats.png")
    report("rules_stats", rows, {"rules": rules, "seed": given.seed, "looks": LOOKS, "rounds": ROUNDS, "alpha": ALPHA})


if __name__ == "__main__":
    main()
