"""Judged runs as examples for tests of rules and for replay: their task, their answer, what was said of them.

An example is read from the run's own ledger each time. What is kept of it in a test is a reference to the task, never
its words: a test whose task was forgotten cannot be asked any more, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from muniment.errors import Forgotten, NotFound
from muniment.learning.folding import list_event_logs
from muniment.learning.recalling import features_of
from muniment.learning.stored_memory import RunFacts
from muniment.rules.promotion.examples import Example
from muniment.runs.reading import get_run
from muniment.store.items import latest
from muniment.store.reading import content_of, list_entries
from muniment.verify.constraint_files import parse_constraints
from muniment.verify.outputs import Output
from muniment.verify.regression import make_packs

if TYPE_CHECKING:
    from muniment.contracts.rules import RegressionTestSpec
    from muniment.core.ports.engine import Reader
    from muniment.store.context import Context
    from muniment.store.ledger import LedgerEntry

__all__ = ["Examples"]

_SPARE = 3
"""An answer may be so many times as long as one that passed."""
_CHARS_MIN = 400


class Examples:
    """The judged runs that a bank knows of, read as they are needed, each once."""

    def __init__(self, ctx: Context, tenant_id: str, owner: str) -> None:
        self._ctx, self._tenant_id, self._owner = ctx, tenant_id, owner
        self._known: dict[str, Example | None] = {}

    def of(self, trace_ids: Iterable[str]) -> list[Example]:
        """The examples of these runs, as far as they are still there."""
        return [found for found in map(self._read, dict.fromkeys(trace_ids)) if found is not None]

    def newest(self, most: int) -> list[Example]:
        """The newest judged runs of the bank."""
        bodies = self._ctx.engine.read(
            self._tenant_id, lambda reader: list_event_logs(reader, self._owner, newest=most)
        )
        return self.of(body["facts"]["trace_id"] for body in bodies)

    def asked(self, x_ref: str) -> str | None:
        """The task that an event is, if it is still there."""
        try:
            return content_of(self._ctx, self._tenant_id, x_ref)
        except (NotFound, Forgotten):
            return None

    def _read(self, trace_id: str) -> Example | None:
        if trace_id not in self._known:
            self._known[trace_id] = self._example(trace_id)
        return self._known[trace_id]

    def _example(self, trace_id: str) -> Example | None:
        item = self._ctx.engine.read(self._tenant_id, lambda reader: self._log(reader, trace_id))
        if item is None or not item["is_final"]:
            return None
        facts = RunFacts.from_wire(item["facts"])
        if facts.verdict is None:
            return None
        scope = get_run(self._ctx, self._tenant_id, item["run_id"]).scope
        entries = [
            entry
            for entry in list_entries(self._ctx, self._tenant_id, scope.user_id, scope.session_id, scope.run_id)
            if entry.body is not None
        ]
        asked = next((each for each in entries if each.kind == "message" and each.role == "user"), None)
        answers = [each for each in entries if each.kind == "message" and each.role == "assistant"]
        if asked is None or asked.content is None:
            return None
        output = _output(answers, entries)
        return Example(
            trace_id=trace_id,
            x_ref=asked.id,
            prompt=asked.content,
            output=output,
            passed=facts.passed,
            violated=facts.violated,
            reason_codes=facts.reason_codes,
            cluster_id=facts.cluster_id,
            features=features_of(facts.intent, facts.state, facts.bucket_key, facts.given_features),
            packs=_own_packs(output, asked.id) if facts.passed else (),
        )

    def _log(self, reader: Reader, trace_id: str) -> dict[str, Any] | None:
        item = latest(reader, trace_id)
        if item is None or item.kind != "event_log" or item.user_id != self._owner or item.body is None:
            return None
        return item.plain()


def _output(answers: list[LedgerEntry], entries: list[LedgerEntry]) -> Output:
    calls = [
        {
            "name": entry.tool.name,
            "args": entry.tool.args or {},
            **({} if entry.tool.ok is None else {"ok": entry.tool.ok}),
        }
        for entry in entries
        if entry.kind == "tool_result" and entry.tool is not None
    ]
    return Output.from_wire({"text": (answers[-1].content or "") if answers else "", "tool_calls": calls})


def _own_packs(output: Output, x_ref: str) -> tuple[RegressionTestSpec, ...]:
    """What an answer that passed kept without being asked: it was one, and not endless."""
    limit = max(_CHARS_MIN, _SPARE * len(output.text))
    asked: list[Any] = [{"regex_present": {"pattern": r"\S"}}, {"length": {"max": limit}}]
    if output.text.lstrip()[:1] in ("{", "["):
        asked.append("json_only")
    packs = make_packs(parse_constraints(asked).constraints, x_ref=x_ref)
    return tuple(spec for specs in packs.values() for spec in specs)
