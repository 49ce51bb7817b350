"""Rules with a life: every figure, and whether it is what was asked for.

    python -m benchmarks.rules              everything (an hour on two busy cores)
    python -m benchmarks.rules --quick      small sizes, for a look
    python -m benchmarks.rules --gather     nothing is run; what the parts wrote last is put together

The parts are programs of their own, each with a result file: `rules_gate` (a stream of drafts of known quality),
`rules_stats` (bounds and decisions), `rules_router` and `rules_tree` (cost per pass, states expanded),
`rules_patterning`, `rules_flowmap` and `rules_speed`. A part that has not been run is told as missing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.harness import RESULTS, report

Results = dict[str, dict[str, Any]]
PARTS = (
    "rules_stats", "rules_tree", "rules_router", "rules_patterning", "rules_speed", "rules_gate", "rules_flowmap",
)  # fmt: skip


def read(name: str) -> Results:
    return dict(json.loads((RESULTS / f"{name}.json").read_text())["results"])


def _row(asked: str, found: float, met: bool, **more: Any) -> dict[str, Any]:
    return {"asked": asked, "found": round(found, 4), "met": met} | more


def _interval(row: dict[str, Any], low: str = "low", high: str = "high") -> str:
    return f"{row[low]:.3f} to {row[high]:.3f}"


def the_gate() -> Results:
    rows = read("rules_gate")
    asked, useful = rows["asked"], rows["drafts, useful"]
    without, none = rows["pass rate, after, no gate"], rows["pass rate, after, no rules"]
    gate, fall = rows["pass rate, after, gate"], rows["pass rate, after, no gate less no rules"]
    wrong = asked["harmful_or_injected_promoted"]
    drafts = sum(rows[key]["submitted"] for key in rows if key.startswith("drafts, "))
    return {
        "drafts, harmful or injected, that were promoted": _row("0", wrong, wrong == 0, drafts=drafts),
        "drafts, useful, that were promoted": _row(
            "at least 0.8",
            useful["promoted_share"],
            useful["promoted_share"] >= 0.8,
            interval_95=_interval(useful),
        ),
        "pass rate with no gate": _row(
            "falls below that with the gate", without["rate"], without["high"] < gate["low"],
            with_the_gate=round(gate["rate"], 4), no_rules=round(none["rate"], 4),
            less_no_rules_95_over_desks=_interval(fall),
        ),
        "pass rate with the gate": _row(
            "above that without rules", gate["rate"], gate["low"] > none["high"], interval_95=_interval(gate)
        ),
    }  # fmt: skip


def the_statistics() -> Results:
    rows = read("rules_stats")
    wilson, sequence, rules = rows["wilson, all sizes"], rows["sequence, worst"], rows["time: all, equal shares"]
    ours = rows["decide: sequential, canary 5 %"]
    point = rows["decide: point rule, pass rate, 200 an arm"]
    return {
        "p_lb95 holds, p uniform": _row("at least 0.95", wilson["lower_holds"], wilson["lower_holds"] >= 0.95),
        "the sequential bound holds at every look, worst p": _row(
            "at least 0.95", sequence["holds_at_all_looks"], sequence["holds_at_all_looks"] >= 0.95
        ),
        "false rollbacks of neutral rules": _row(
            "beside the point rules", ours["false_rollbacks"], ours["false_rollbacks"] < point["false_rollbacks"],
            point_rule=point["false_rollbacks"],
        ),
        "missed effects of -.05": _row(
            "beside the point rules", ours["missed"], ours["missed"] < point["missed"], point_rule=point["missed"]
        ),
        "runs to a right decision, of a fixed size": _row(
            "told beside it", rules["of_fixed"], rules["of_fixed"] < 1, right=round(rules["right"], 4)
        ),
    }  # fmt: skip


def the_runner() -> Results:
    router, tree = read("rules_router")["router"], read("rules_tree")["puct, the nine families"]
    return {
        "router, cost per confirmed pass over always-full": _row(
            "at most 0.7", router["cost_ratio"], router["cost_high"] <= 0.7,
            interval_95=_interval(router, "cost_low", "cost_high"),
        ),
        "router, pass rate over always-full": _row(
            "at least 0.98", router["pass_ratio"], router["pass_ratio"] >= 0.98,
            interval_95=_interval(router, "pass_low", "pass_high"),
        ),
        "tree search, states expanded over uniform": _row(
            "at most 0.5, to the same pass rate", tree["ratio"],
            tree["high"] <= 0.5 and tree["pass_rate"] >= tree["reference_pass_rate"], interval_95=_interval(tree),
        ),
    }  # fmt: skip


def the_patterning() -> Results:
    rows = read("rules_patterning")
    known, slices = rows["known: linear"], rows["slices, all"]
    lift, rest = slices["plan_lift_points"], slices["plan_rest_points"]
    return {
        "patterning, error of a known linear response": _row(
            "within 0.05", known["change_error_p95"], known["change_error_p95"] <= 0.05 >= known["chi_error_p95"]
        ),
        "patterning, lift of the slice in points": _row(
            "above 0", lift, slices["plan_lift_low"] > 0,
            interval_95=_interval(slices, "plan_lift_low", "plan_lift_high")
        ),
        "patterning, the rest in points": _row(
            "not below -1", rest, rest >= -1, interval_95=_interval(slices, "plan_rest_low", "plan_rest_high"),
            worst_slice_mean=round(slices["plan_rest_worst_points"], 4),
        ),
    }  # fmt: skip


def the_sizes() -> Results:
    speed, flow = read("rules_speed"), read("rules_flowmap")
    logs = flow["store"]["logs"]
    rules = json.loads((RESULTS / "rules_speed.json").read_text())["arguments"]["rules"]
    rows: Results = {}
    for name in ("warm", "cold", "after a change elsewhere", "told to the run"):
        key = f"selection, {name}"
        times = speed[key]["cpu_times"]
        is_asked = name == "warm"
        rows[f"selection among {rules:,} rules over a bare query, {name}"] = _row(
            "at most 10 times" if is_asked else "told beside it", times, times <= 10,
            by_the_clock=round(speed[key]["times"], 2),
        )  # fmt: skip
    for estimator in ("aggregate_v1", "logit_field_v1"):
        row = flow[f"store, memory of most over fewest, {estimator}"]
        rows[f"flow map over {logs:,} logs, memory, {estimator}"] = _row(
            f"as over a {row['logs_ratio']:.0f}th of them", row["ratio"], row["ratio"] <= 1.5 and logs >= 1_000_000,
            more_mb=round(row["more_mb"], 1),
        )  # fmt: skip
    return rows


GROUPS: tuple[Callable[[], Results], ...] = (the_gate, the_statistics, the_runner, the_patterning, the_sizes)


def gather() -> Results:
    """Every figure; a part whose file is not there, or not of this shape, is missing and not met."""
    rows: Results = {}
    for group in GROUPS:
        try:
            rows |= group()
        except (FileNotFoundError, KeyError) as error:
            rows[f"missing: {group.__name__.replace('_', ' ')}"] = {"asked": "", "found": str(error), "met": False}
    return rows


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, for a look")
    parser.add_argument("--gather", action="store_true", help="run nothing")
    given = parser.parse_args(argv)
    for name in () if given.gather else PARTS:
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *(["--quick"] if given.quick else [])], check=True)
    report("rules", gather(), {"quick": given.quick, "gather": given.gather})


if __name__ == "__main__":
    main()
