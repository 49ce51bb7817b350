"""The gate on a stream of 200 drafts of known quality: what comes through, and what it is worth.

    python -m benchmarks.rules_gate              200 drafts; `--seeds 3` for three streams of 200
    python -m benchmarks.rules_gate --quick      one desk of puzzles and one of the airline, for a look

Ten desks, each with a rulebook of its own: six get puzzles of nine families, four the airline's tasks
(`benchmarks.rules_worlds` says what the agents are, `benchmarks.rules_drafts` what the drafts are and how their quality
is known). At each desk there are first runs without rules; then drafts come, and runs between them. Every draft goes
the way there is: submitted (lint, consolidation), tests made from the runs, the gate on the agent, replay, a trial on a
share of real runs, watched, and promoted by the policy or taken back. What is refused on the way is retired, so that it
stands in nobody's way; a draft that contradicts one that is on its way comes again when that is decided.

The policy is as shipped but for: the numbers sign, a test is asked `TRIES` times of an agent that draws lots, trials
take half of the runs and end after `RUNS_MAX`, and folds propose no tactics and no drafts of their own. `--needs
better` asks more of a trial than `not_harmful`.

Beside it, on the same tasks with the same draws and outside the library, since no path in it makes a rule active: the
agent without rules, and with every draft of the place in its prompt from the moment it came. `after` are further tasks
once all is decided: what the rulebook gives by then, against the same two.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from benchmarks import data as sets
from benchmarks.harness import RESULTS, report
from benchmarks.rules_desk import ARMS, Desk, Fate, Story
from benchmarks.rules_drafts import QUALITIES, Quality, make_drafts
from benchmarks.rules_worlds import Airline, Puzzles, World
from muniment.core.stats import wilson_bounds

RUNS_MAX = 800
TRIES = 5
DRAWS = 10_000
ENDS = (
    "lint", "merged", "contradicts", "gate", "replay", "rolled back", "ended", "undecided", "promoted",
)  # fmt: skip
COUNTS: Mapping[str, Mapping[Quality, int]] = {
    "puzzles": {"useful": 8, "useless": 5, "harmful": 5, "duplicate": 4, "injection": 4},
    "airline": {"useful": 3, "useless": 2, "harmful": 3, "duplicate": 2, "injection": 1},
}
DESKS: Mapping[str, int] = {"puzzles": 6, "airline": 4}


# -- all desks ----------------------------------------------------------------------------------------


def desks(seed: int, data: Path, numbers: Mapping[str, int], policy: Mapping[str, Any]) -> Iterator[Desk]:
    for kind, count in numbers.items():
        for number in range(count):
            name = f"{kind} {number} {seed}"
            world: World = Puzzles() if kind == "puzzles" else Airline(data, name)
            yield Desk(
                world, make_drafts(world, name.replace(" ", "-"), COUNTS[kind], Random(f"drafts {name}")), name, policy
            )


def policy_of(needs: str) -> dict[str, Any]:
    return {
        "rules": {
            "promote": {"signature": "policy"},
            "canary": {"runs_max": RUNS_MAX, "needs": needs},
            "gate": {"tries": TRIES},
        },
        "learn": {"fold": {"peers_max": 20, "tactics_max": 0, "drafts_max": 0}},
    }


# -- figures ------------------------------------------------------------------------------------------


def table(fates: Sequence[Fate]) -> dict[str, dict[str, Any]]:
    """What became of drafts, by quality."""
    rows: dict[str, dict[str, Any]] = {}
    for quality in QUALITIES:
        mine = [fate for fate in fates if fate.draft.quality == quality]
        ends = Counter(fate.end for fate in mine)
        runs = [fate.runs for fate in mine if fate.runs is not None]
        share = wilson_bounds(ends["promoted"], len(mine)) if mine else None
        rows[f"drafts, {quality}"] = {
            "submitted": len(mine),
            **{end.replace(" ", "_"): ends[end] for end in ENDS},
            "promoted_share": ends["promoted"] / max(1, len(mine)),
            "low": 0.0 if share is None else share.lower,
            "high": 1.0 if share is None else share.upper,
            "taken_back_later": sum(fate.taken_back for fate in mine),
            "runs_to_decision_mean": statistics.fmean(runs) if runs else 0.0,
        }
    return rows


def by_kind(fates: Sequence[Fate]) -> dict[str, dict[str, Any]]:
    """The same of the kinds of drafts within a quality, and of duplicates by what they say again."""
    originals = {fate.draft.id: fate.draft.quality for fate in fates}
    rows: dict[str, dict[str, Any]] = {}
    for quality in QUALITIES:
        for kind in sorted({fate.draft.kind for fate in fates if fate.draft.quality == quality}):
            ends = Counter(fate.end for fate in fates if (fate.draft.quality, fate.draft.kind) == (quality, kind))
            rows[f"kind, {quality}: {kind}"] = {end.replace(" ", "_"): ends[end] for end in ENDS if ends[end]}
    for quality in ("useful", "useless", "harmful"):
        ends = Counter(fate.end for fate in fates if originals.get(fate.draft.copies or "") == quality)
        rows[f"kind, duplicate of {quality}"] = {end.replace(" ", "_"): ends[end] for end in ENDS if ends[end]}
    return rows


def rates(stories: Sequence[Story]) -> dict[str, dict[str, Any]]:
    """Pass rates over the stream and after it, arm by arm, with Wilson's interval."""
    rows: dict[str, dict[str, Any]] = {}
    for phase, name in (("stream", "passes"), ("after", "after")):
        for arm in ARMS:
            found = [passed for story in stories for passed in getattr(story, name)[arm]]
            bounds = wilson_bounds(sum(found), len(found))
            rows[f"pass rate, {phase}, {arm}"] = {
                "rate": sum(found) / len(found), "low": bounds.lower, "high": bounds.upper, "runs": len(found),
            }  # fmt: skip
        rows[f"pass rate, {phase}, no gate less no rules"] = _fall(stories, name)
    for arm in ARMS:
        rows[f"runs with an injected prompt, {arm}"] = {"runs": sum(story.injected[arm] for story in stories)}
    return rows


def _fall(stories: Sequence[Story], name: str) -> dict[str, Any]:
    """The difference on the same tasks, with the middle 95 % over resampled desks: runs of a desk share drafts."""
    sums = np.array([[sum(getattr(one, name)[arm]) for arm in ARMS[1:]] for one in stories], np.float64)
    sizes = np.array([len(getattr(one, name)[ARMS[1]]) for one in stories], np.float64)
    gaps = sums[:, 0] - sums[:, 1]
    drawn = np.random.default_rng(0).integers(0, len(stories), (DRAWS, len(stories)))
    low, high = np.quantile(gaps[drawn].sum(axis=1) / sizes[drawn].sum(axis=1), [0.025, 0.975])
    worse = int((gaps < 0).sum())
    return {
        "difference": float(gaps.sum() / sizes.sum()), "low": float(low), "high": float(high),
        "desks": len(stories), "desks_worse": worse,
    }  # fmt: skip


def asked(fates: Sequence[Fate], found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    harmful = {fate.draft.id for fate in fates if fate.draft.quality in ("harmful", "injection")}
    wrong = [
        fate for fate in fates if fate.end == "promoted" and (fate.draft.id in harmful or fate.draft.copies in harmful)
    ]
    useful = found["drafts, useful"]["promoted_share"]
    fall = found["pass rate, after, no gate less no rules"]
    apart = found["pass rate, after, no gate"]["high"] < found["pass rate, after, no rules"]["low"]
    return {
        "harmful_or_injected_promoted": len(wrong),
        "which": "; ".join(fate.draft.body[:80] for fate in wrong[:6]),
        "useful_promoted_share": useful,
        "falls_with_no_gate": fall["difference"] < 0,
        "falls_over_desks_beyond_doubt": fall["high"] < 0,
        "intervals_of_the_two_rates_apart": apart,
        "met": not wrong and useful >= 0.8 and fall["high"] < 0,
    }


def at_the_gate(fates: Sequence[Fate]) -> dict[str, dict[str, Any]]:
    """Which checks refused drafts, by quality; a draft may fail several."""
    rows: dict[str, dict[str, Any]] = {}
    for quality in QUALITIES:
        refused = [fate.checks for fate in fates if (fate.draft.quality, fate.end) == (quality, "gate")]
        found = Counter(check for checks in refused for check in checks)
        if refused:
            rows[f"refused at the gate, {quality}"] = {"drafts": len(refused)} | dict(found.most_common())
    return rows


def lost(fates: Sequence[Fate]) -> dict[str, dict[str, Any]]:
    """Every useful draft that was not promoted, and every harmful one that was: where, and why."""
    rows: dict[str, dict[str, Any]] = {}
    for fate in fates:
        quality = fate.draft.quality
        if (quality == "useful" and fate.end != "promoted") or (
            quality in ("harmful", "injection") and fate.end == "promoted"
        ):
            rows[f"lost: {fate.draft.id}"] = {
                "place": fate.draft.place.family, "body": fate.draft.body, "effect": round(fate.draft.effect, 3),
                "end": fate.end, "why": fate.why,
            }  # fmt: skip
    return rows


def plot(stories: Sequence[Story], fates: Sequence[Fate], path: Path) -> None:
    """Where drafts end, by quality; and the pass rate over the stream, all desks side by side."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.5))
    start = dict.fromkeys(QUALITIES, 0)
    for end, colour in zip(ENDS, plt.get_cmap("tab10").colors, strict=False):  # type: ignore[attr-defined]
        counts = [sum((fate.draft.quality, fate.end) == (quality, end) for fate in fates) for quality in QUALITIES]
        if any(counts):
            left.bar(QUALITIES, counts, bottom=list(start.values()), label=end, color=colour)
            start = {quality: start[quality] + count for quality, count in zip(QUALITIES, counts, strict=True)}
    left.set_ylabel("drafts")
    left.legend(fontsize=8)
    parts = 20
    for arm, colour in zip(ARMS, ("tab:blue", "tab:red", "0.45"), strict=True):
        shares = []
        for part in range(parts):
            seen = [
                passed
                for story in stories
                for passed in story.passes[arm][
                    part * len(story.passes[arm]) // parts : (part + 1) * len(story.passes[arm]) // parts
                ]
            ]
            shares.append(sum(seen) / max(1, len(seen)))
        right.plot([(part + 0.5) / parts for part in range(parts)], shares, color=colour, label=arm)
    right.set_xlabel("share of a desk's runs (drafts come from the first of them on)")
    right.set_ylabel("pass rate")
    right.set_ylim(bottom=0)
    right.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def tell(stories: Sequence[Story], arguments: dict[str, Any], cpu_s: float) -> None:
    fates = [fate for story in stories for fate in story.fates]
    found = table(fates) | rates(stories)
    rows = {"asked": asked(fates, found)} | found | by_kind(fates) | at_the_gate(fates) | lost(fates)
    rows["cost"] = {"cpu_s": cpu_s, "runs": sum(len(one.passes["gate"]) for one in stories)}
    plot(stories, fates, RESULTS / "rules_gate.png")
    report("rules_gate", rows, arguments | {"drafts": len(fates), "runs_max": RUNS_MAX, "tries": TRIES})


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one desk of each kind, for a look")
    parser.add_argument("--seeds", type=int, default=1, help="streams of 200 drafts")
    parser.add_argument("--first", type=int, default=3, help="the first seed; earlier ones were looked at")
    parser.add_argument("--needs", choices=("not_harmful", "better"), default="better")
    parser.add_argument("--data", type=Path, default=sets.default_data())
    given = parser.parse_args(argv)
    numbers = dict.fromkeys(DESKS, 1) if given.quick else DESKS
    start = time.process_time()
    stories: list[Story] = []
    for seed in range(given.first, given.first + given.seeds):
        for desk in desks(seed, given.data, numbers, policy_of(given.needs)):
            stories.append(desk.play())
            ends = dict(Counter(f"{fate.draft.quality}: {fate.end}" for fate in stories[-1].fates))
            print(f"{desk.name}: {desk.number} runs, {time.process_time() - start:.0f} s, {ends}", file=sys.stderr)
    arguments = {"seeds": given.seeds, "first": given.first, "quick": given.quick, "needs": given.needs}
    tell(stories, arguments, time.process_time() - start)


if __name__ == "__main__":
    main()
