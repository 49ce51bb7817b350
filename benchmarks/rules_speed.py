"""What rules cost: a selection among 100,000 beside a bare indexed query, and a run with rules beside one without.

    python -m benchmarks.rules_speed            100,000 rules in 300 families (ten minutes or so, most of it writing)
    python -m benchmarks.rules_speed --quick    3,000 rules in 9 families, for a look

One SQLite file, one rulebook. The rules are on trial (an active rule needs a report that nobody wrote here), a share of
a half, as the store keeps them: each an entry of the ledger and an item, and the report of a gate that lets it act;
every thousand a revision.

- `selection, warm`: the whole of `run.learning.select_rules(keep=False)` for a run of a family that was asked before,
  against the rows that stand in the index under the same names, read by a bare SQL query on a connection of its own,
  bodies and all. A selection reads these rows once, and then the number of the revision in force.
- `selection, cold`: the same with nothing kept in memory: rows are read, parsed and made ready.
- `selection, told`: with `keep=True`: written into the run, and each rule that is handed out looked up again.
- `after a change elsewhere`: warm, but a rule of another family was changed since.
- `learn`: a judged run in a store with the rules and in one without any, each told what it was given.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import muniment
from benchmarks.harness import report
from benchmarks.learning_speed import PASS, WORDS, Clocked, compare
from muniment.learning.stored_memory import StoredMemory
from muniment.rules._gate import rule_digest
from muniment.rules._records import GateCheck, GateReport, TestOutcome
from muniment.rules.activation import rule_in
from muniment.rules.rulebook import Book, RulebookEdit, edit_rulebook, report_draft
from muniment.rules.selection import RuleCache, names_for

USER = "ana"
OWNER = f"bank:user:{USER}"
TENANT = "default"
BATCH = 1_000
NOW = "2026-01-01T00:00:00Z"
ROWS = "SELECT id, version, body FROM items WHERE tenant_id = ? AND kind = 'rule' AND user_id = ? AND name IN ({names})"


# -- a rulebook ---------------------------------------------------------------------------------------


def family_of(number: int) -> dict[str, str]:
    return {"domain_tag": f"domain {number // 30}", "task_family": f"family {number}"}


def make_rule(number: int, families: int, random: Random) -> StoredMemory:
    """A rule on trial: of a family; one in a hundred of a domain, one in a thousand of none."""
    where: dict[str, Any] = family_of(number % families)
    if number % 1_000 == 0:
        where = {}
    elif number % 100 == 0:
        where.pop("task_family")
    record: dict[str, Any] = {
        "schema_version": "0.5.15",
        "rule_id": f"rule_{number}",
        "version": "1",
        "type": "GuardrailRule" if number % 5 == 0 else "StrategyRule",
        "status": "temporary",
        "title": f"Rule {number}",
        "body": f"When it comes to {' '.join(random.choices(WORDS, k=12))}, do what was done before.",
        "applicability": where | ({"predicates": ['run.mode == "main"']} if number % 4 == 0 else {}),
        "priority": {"guardrail_first": number % 5 == 0},
        "evidence": {"trace_ids": [f"trace_{number}"]},
        "tests": {"regression_tests": [], "counterexample_tests": []},
        "metrics": {"pass_p_hat": random.random(), "pass_p_lb95": 0.2, "pass_p_K": 40},
    }
    plan = {"canary_id": f"canary_{number}", "share": 0.5, "bucket_keys": [], "started_at": NOW}
    plain = {"id": f"rule_{number}", "kind": "rule", "level": "user", "version": 1, "record": record}
    standing = {"status": "temporary", "created_at": NOW, "stage": "canary", "layer": "learned", "canary": plan}
    return StoredMemory.from_wire(plain | standing | {"report_id": f"gate_{number}"})


def make_gate(rule: StoredMemory) -> GateReport:
    """What a gate would have said of it: no rule is tried without one."""
    passed = TestOutcome(test_id="test", test_type="regression", status="passed", ok=True)
    return GateReport(
        report_id=rule.report_id or "",
        rule_id=rule.id,
        rule_digest=rule_digest(rule_in(rule)),
        passed=True,
        checks=(GateCheck(name="every test passes", ok=True, found="none against it", needed="none"),),
        outcomes=(passed,),
        policy_digest="",
        created_at=NOW,
    )


def fill(mem: muniment.Memory, count: int, families: int) -> None:
    """Write the rules, every thousand as a revision."""
    random, book = Random(1), Book(mem._ctx, TENANT, OWNER)
    for at in range(0, count, BATCH):
        rules = [make_rule(number, families, random) for number in range(at, min(count, at + BATCH))]
        gates = [report_draft("gate", make_gate(rule)) for rule in rules]
        edit = RulebookEdit(action="canary", answer=None, rules=rules, drafts=gates, reason="written for a benchmark")
        edit_rulebook(book, lambda _tx, edit=edit: edit)  # type: ignore[misc]
        print(f"{at + len(rules):,} of {count:,} rules", file=sys.stderr, flush=True)


# -- selection ----------------------------------------------------------------------------------------


class Bench:
    """A store with rules, and a connection beside it."""

    def __init__(self, mem: muniment.Memory, path: Path, families: int) -> None:
        self.mem, self.families = mem, families
        self.book = Book(mem._ctx, TENANT, OWNER)
        self.bare = sqlite3.connect(path)
        self.run = mem.run(user_id=USER, agent_id="agent")

    def intent(self, round_: int) -> dict[str, str]:
        return family_of(round_ * 7 % self.families)

    def query(self, round_: int) -> Callable[[], object]:
        """The same rows, by the index, and nothing more."""
        asked = self.intent(round_)
        names = names_for(asked["domain_tag"], asked["task_family"])
        text = ROWS.format(names=", ".join("?" * len(names)))
        return lambda: self.bare.execute(text, (TENANT, OWNER, *names)).fetchall()

    def warm(self, round_: int) -> Callable[[], object]:
        self.run.learning.select_rules(intent=self.intent(round_), keep=False)
        return self.select(round_)

    def cold(self, round_: int) -> Callable[[], object]:
        self.mem._ctx.cache(RuleCache).clear()
        return self.select(round_)

    def changed(self, round_: int) -> Callable[[], object]:
        """A rule comes to a family that nobody asks for here."""
        self.run.learning.select_rules(intent=self.intent(round_), keep=False)
        rule = make_rule(10_000_001 + 5 * round_, 1, Random(round_))
        rule.record["applicability"] = {"domain_tag": "elsewhere", "task_family": "elsewhere"}
        gates = [report_draft("gate", make_gate(rule))]
        edit = RulebookEdit(action="canary", answer=None, rules=[rule], drafts=gates, reason="written for a benchmark")
        edit_rulebook(self.book, lambda _tx: edit)
        return self.select(round_)

    def told(self, round_: int) -> Callable[[], object]:
        run = self.mem.run(user_id=USER, agent_id="agent")
        self.run.learning.select_rules(intent=self.intent(round_), keep=False)
        return lambda: run.learning.select_rules(intent=self.intent(round_), state={"mode": "main"})

    def select(self, round_: int) -> Callable[[], object]:
        return lambda: self.run.learning.select_rules(intent=self.intent(round_), state={"mode": "main"}, keep=False)

    def facts(self) -> dict[str, Any]:
        found = self.run.learning.select_rules(intent=self.intent(1), state={"mode": "main"}, keep=False)
        rows = self.query(1)()
        assert isinstance(rows, list)
        plan = self.bare.execute("EXPLAIN QUERY PLAN " + ROWS.format(names="?"), (TENANT, OWNER, "x")).fetchall()
        return {
            "rows_of_a_family": len(rows),
            "selected": len(found.response.selected_rules),
            "refused": len(found.refused),
            "plan": plan[0][-1],
        }


@contextmanager
def a_book(count: int, families: int) -> Iterator[Bench]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.db")
        with muniment.open(path, embedder="none") as mem:
            if count:
                fill(mem, count, families)
            bench = Bench(mem, path, families)
            with closing(bench.bare):
                yield bench


def selections(bench: Bench, rounds: int) -> dict[str, dict[str, Any]]:
    names = ("selection", "query")
    rows: dict[str, dict[str, Any]] = {"rulebook": bench.facts()}
    for label, ours, times in (
        ("selection, warm", bench.warm, rounds),
        ("selection, cold", bench.cold, rounds),
        ("selection, after a change elsewhere", bench.changed, max(5, rounds // 4)),
        ("selection, told to the run", bench.told, rounds),
    ):
        rows[label] = compare(Clocked(ours), Clocked(bench.query), times, names)
    return rows


# -- a judged run -------------------------------------------------------------------------------------


def learning(bench: Bench, bare: Bench, rounds: int) -> dict[str, Any]:
    """`learn` of a run that was given rules, against one of a store that has none."""

    def work(which: Bench) -> Callable[[int], Callable[[], object]]:
        def ready(round_: int) -> Callable[[], object]:
            intent = bench.intent(round_)
            run = which.mem.run(user_id=USER, agent_id="agent")
            run.learning.select_rules(intent=intent, state={"mode": "main"})
            run.observe("user", f"Do number {round_}.")
            run.observe("assistant", "Done.")
            return lambda: run.learning.learn(PASS, intent=intent)

        return ready

    return compare(Clocked(work(bench)), Clocked(work(bare)), rounds, ("with_rules", "without"))


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small rulebook, for a look")
    parser.add_argument("--rules", type=int, default=100_000)
    given = parser.parse_args(argv)
    count, families, rounds = (3_000, 9, 20) if given.quick else (given.rules, 300, 60)
    with a_book(count, families) as bench, a_book(0, families) as bare:
        rows = selections(bench, rounds)
        rows["learn"] = learning(bench, bare, max(10, rounds // 3))
    report("rules_speed", rows, {"rules": count, "families": families, "rounds": rounds})


if __name__ == "__main__":
    main()
