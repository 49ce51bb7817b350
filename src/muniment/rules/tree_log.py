"""The answers of a tree search in its run's ledger: as many to an entry as the policy says, each told once.

A search is made by its answers, so this is all that it takes to go on with one. An entry whose content is not what was
written (the door redacts secrets) is passed over, and what it held is asked for again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from muniment.core.canonical import Written, canonical_text, digest_of, read_canonical
from muniment.errors import MunimentError
from muniment.rules.tree_search.answers import Answer, Child, Verified, answer_wire, read_answer

if TYPE_CHECKING:
    from muniment.contracts.learning import ReuseSelectMeta, ReuseStateRecord
    from muniment.core.policy import TreePolicy
    from muniment.handles.run import Run
    from muniment.rules.tree_search.search import TreeSearch
    from muniment.store.ledger import LedgerEntry

__all__ = ["TOOL", "AnswerLog"]

TOOL = "tree_search"
_CHUNK_CHARS = 256 * 1024


class AnswerLog:
    """One search, as its run's entries tell it."""

    def __init__(self, run: Run, search_id: str, policy: TreePolicy) -> None:
        self._run, self._id, self._policy = run, search_id, policy
        own = [
            entry
            for entry in run.ledger.entries()
            if entry.kind == "step" and _search_fields(entry).get("id") == search_id
        ]
        self._first = next((entry for entry in own if "begun" not in _search_fields(entry)), None)
        self._begun = None if self._first is None else self._read(self._first)
        self._as = None if self._first is None else self._first.id
        self._rest = [entry for entry in own if _search_fields(entry).get("begun") == self._as]
        self._is_finished = any(_search_fields(entry).get("ended") for entry in self._rest)
        self._count = 0
        self._pending: list[Written] = []
        self._since = run._ctx.clock()
        self.passed: dict[str, Any] | None = None
        """What the verifier said of the state that was found, where it said more than that it holds."""

    def begun(self) -> dict[str, Any] | None:
        """What the search was begun with, where it was."""
        return self._begun if isinstance(self._begun, dict) else None

    def begin(self, starts: Iterable[Child], seed: ReuseStateRecord | None, reuse: ReuseSelectMeta | None) -> None:
        held = {
            "starts": [list(child) for child in starts],
            "seed": None if seed is None else seed.state_id,  # by name: a seed that is forgotten is gone from here too
            "reuse": None if reuse is None else reuse.to_wire(),
        }
        self._as = self._write(canonical_text(held), {}).id
        self._rest, self._is_finished = [], False

    def replay(self, search: TreeSearch) -> int:
        """Tell a search all that is known; answers how much that was."""
        for entry in self._rest:
            rows = self._read(entry) if _search_fields(entry).get("from") == self._count else None
            for row in rows if isinstance(rows, list) else ():
                try:
                    answer = read_answer(row, search.policy.state_bytes_max)
                    search.take(answer)
                except MunimentError:  # not an answer to this search: what follows it is none either
                    break
                self._count += 1
                self._note(answer)
        return self._count

    def add(self, answer: Answer) -> None:
        self._note(answer)
        self._pending.append(Written(canonical_text(answer_wire(answer))))
        waited = (self._run._ctx.clock() - self._since).total_seconds()
        many = len(self._pending) >= self._policy.checkpoint_answers or sum(map(len, self._pending)) > _CHUNK_CHARS
        if many or waited >= self._policy.checkpoint_s:
            self.flush()

    def flush(self) -> None:
        """Write what was not yet written."""
        if self._pending:
            self._write(canonical_text(self._pending), {"begun": self._as, "from": self._count})
            self._count += len(self._pending)
            self._pending = []
        self._since = self._run._ctx.clock()

    def finish(self, search: TreeSearch) -> None:
        """Tell the run, once, that the search is over."""
        if self._is_finished:
            return
        fields = {"id": self._id, "begun": self._as, "ended": True}
        action = {"tool": TOOL, "args": {"algo": search.policy.algo, "search": self._id}}
        self._run.log.step("ACT_DONE", search.notes, action=action, metadata={TOOL: fields})

    def _note(self, answer: Answer) -> None:
        if isinstance(answer, Verified) and answer.result is not None:
            self.passed = answer.result

    def _write(self, content: str, fields: dict[str, Any]) -> LedgerEntry:
        fields = {"id": self._id, "digest": digest_of(content), **fields}
        return self._run.log.step("ACT_TREE", content, metadata={TOOL: fields})

    def _read(self, entry: LedgerEntry) -> Any:
        """What an entry held, where it still does."""
        if entry.body is None:
            return None
        content = self._run.ledger.content(entry.id)
        return read_canonical(content) if digest_of(content) == _search_fields(entry).get("digest") else None


def _search_fields(entry: LedgerEntry) -> dict[str, Any]:
    """What an entry says of a search; empty where it says nothing."""
    fields = entry.metadata.get(TOOL)
    return fields if isinstance(fields, dict) else {}
