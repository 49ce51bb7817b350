"""Guided search of a space of states (RC-22): PUCT or beam, within caps, step by step.

A search calls nothing. It says what it wants to know next (`next`), is told (`told`), and goes on; the same answers
make the same search. Between any two steps it can be written down (`to_wire`) and taken up elsewhere (`from_wire`).

search = TreeSearch.start({"at": 0}, TreePolicy())
while (ask := search.next()) is not None:
    search.take(answer_to(ask))
search.end, search.way(), search.block()

Both ways of searching are complete but for the caps: a beam that dies goes on with the best of what it had set aside.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from typing import Any, Self

from muniment.contracts.runs import TreeSearchBlock
from muniment.core.canonical import digest, read_canonical
from muniment.core.policy import TreePolicy
from muniment.core.record import JsonValue
from muniment.errors import InvalidInput, InvalidRecord, Issue
from muniment.rules.tree_search.answers import (
    NUMBER_MAX,
    SAID_CHARS_MAX,
    Answer,
    Ask,
    Child,
    Expanded,
    Failed,
    Scored,
    Verified,
    children_of,
    state_text,
)
from muniment.rules.tree_search.nodes import TOP, Node, Tree
from muniment.rules.tree_search.records import TreeEnd, TreeNodeRecord, TreeSearchRecord

__all__ = ["TreeSearch"]

_KEY_HEX = 32
_CAPS = ("depth", "frontier", "children")
"""Cuts that a wider policy would not make."""
_WANTED = {"expand": Expanded, "score": Scored, "verify": Verified}


class TreeSearch:
    """One search and where it stands. Not thread-safe: one caller steps it."""

    def __init__(self, policy: TreePolicy, *, scored: bool) -> None:
        self.policy = policy
        self.scored = scored
        """Is there a function that scores states?"""
        self.end: TreeEnd | None = None
        self.calls = 0
        self.cost = 0.0
        self.duplicates = 0
        self.frontier_max = 0
        self.cuts: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.said: str | None = None
        self._tree = Tree(policy.puct)
        self._known: set[str] = set()
        self._unjudged: deque[int] = deque()
        """New states, all of one parent, in the order in which they were told."""
        self._beam: list[int] = []
        self._level: list[int] = []
        self._chosen: int | None = None

    @classmethod
    def start(cls, root: Any, policy: TreePolicy, *, starts: Iterable[Any] = (), scored: bool = True) -> Self:
        """A search from `root` and, beside it, from other states (`Child`s or bare ones), such as a seed tells."""
        search = cls(policy, scored=scored)
        first = root if isinstance(root, Child) else Child(root)
        state_text(first.state, policy.state_bytes_max)  # a root that is no state is refused, and not searched from
        search._take(TOP, children_of([first, *starts], policy.state_bytes_max, more=False))
        search._look_up()
        return search

    # -- stepping -------------------------------------------------------------------------------------

    def next(self) -> Ask | None:
        """What the search wants to know; None once it is over. Asking twice changes nothing."""
        if self.end is not None:
            return None
        number = self._unjudged[0] if self._unjudged else self._pick()
        node = self._tree.nodes[number]
        kind = "expand" if node.status == "open" else node.status
        return Ask(kind, number, read_canonical(node.text), node.depth)  # type: ignore[arg-type]

    def take(self, answer: Answer) -> None:
        """Take the answer to what `next` asks for."""
        ask = self.next()
        if ask is None:
            raise InvalidInput("the search is over", path="$.answer", hint="`end` says how")
        if not isinstance(answer, _WANTED[ask.kind] | Failed):
            raise InvalidInput(f"the search asked to {ask.kind}, and was told {type(answer).__name__}", path="$.answer")
        if not 0 <= answer.cost <= NUMBER_MAX:
            raise InvalidInput(f"a cost is a number from 0 to {NUMBER_MAX:g}", path="$.answer.cost")
        if isinstance(answer, Scored) and not 0 <= (answer.value or 0) <= 1:
            raise InvalidInput("a value lies from 0 to 1", path="$.answer.value")
        if isinstance(answer, Failed) and not answer.code:
            raise InvalidInput("what failed has a reason code", path="$.answer.code")
        if isinstance(answer, Expanded):
            answer = self._checked(answer)
        self.calls += 1
        self.cost += answer.cost
        self._chosen = None
        match answer:
            case Expanded():
                self._tree.mark(ask.node, "expanded")
                self._take(ask.node, answer)
            case Scored(value):
                self._tree.nodes[ask.node].value = value
                self._judged(ask.node)
            case Verified(verdict):
                self._verified(ask.node, verdict)
            case Failed(code, said):
                self._failed(ask, code, said)
        self._look_up()

    def stop(self, cap: str = "stopped") -> None:
        """Give up, with what there is: the caller's time is up (`time`), or it wants no more."""
        if self.end is None:
            self.end = TreeEnd.from_wire({"kind": "budget", "cap": cap})

    # -- what answers do ------------------------------------------------------------------------------

    def _checked(self, offered: Expanded) -> Expanded:
        """The states as canonical text; those that are none are counted."""
        read = children_of(offered.children, self.policy.state_bytes_max, more=offered.more, cost=offered.cost)
        return read._replace(
            refused=offered.refused + read.refused, odd=offered.odd + read.odd, said=offered.said or read.said
        )

    def _take(self, parent: int, offered: Expanded) -> None:
        """New states below a parent; those that are known already are counted and not made again."""
        allowed = self.policy.children_max
        children = offered.children[:allowed] if parent != TOP else offered.children
        if offered.more or len(children) < len(offered.children):
            self.cuts["children"] += 1
        if offered.refused:
            self.cuts["refused"] += offered.refused
        if offered.refused or offered.odd:
            self._fault("tool_output_invalid", offered.said or "what was offered is no state")
        for child in children:
            key = digest((child.state if child.key is None else child.key).encode()).hex()[:_KEY_HEX]
            if key in self._known:
                self.duplicates += 1
                continue
            self._known.add(key)
            self._unjudged.append(self._tree.add(parent, child.state, key, child.prior))
        self._tree.refresh(parent)

    def _verified(self, number: int, verdict: str) -> None:
        if verdict == "pass":
            self.end = TreeEnd(kind="solved", node=number)
            return
        self._tree.nodes[number].unknown = verdict == "unknown"
        if self.scored:
            self._tree.mark(number, "score")
        else:
            self._judged(number)

    def _failed(self, ask: Ask, code: str, said: str) -> None:
        self._fault(code, f"{ask.kind} at node {ask.node}: {said}")
        if ask.kind == "verify":
            self._verified(ask.node, "unknown")
        elif ask.kind == "score":
            self._judged(ask.node)
        else:
            self.cuts["failed"] += 1
            self._tree.mark(ask.node, "left")
            self._tree.refresh(ask.node)

    def _fault(self, code: str, said: str) -> None:
        self.faults[code] += 1
        self.said = self.said or said[:SAID_CHARS_MAX]

    def _judged(self, number: int) -> None:
        """A new state is known for what it is; with the last of its siblings, all of them are weighed."""
        node = self._tree.nodes[number]
        is_deep = node.depth >= self.policy.depth_max
        if is_deep:
            self.cuts["depth"] += 1
        self._tree.mark(number, "left" if is_deep else "open")
        self._unjudged.popleft()
        if self._unjudged:
            return
        self._tree.weigh(node.parent)
        self._tree.refresh(node.parent)
        if self.policy.algo == "beam_guided_tree_v1":
            self._level += self._tree.nodes[node.parent].children
        self._drop()
        self.frontier_max = max(self.frontier_max, len(self._tree.open))

    def _drop(self) -> None:
        """Keep the frontier within its cap."""
        surplus = len(self._tree.open) - self.policy.frontier_max
        if surplus <= 0:
            return
        kept = set(self._tree.best(self._tree.open, self.policy.frontier_max))
        for number in [number for number in self._tree.open if number not in kept]:
            self._tree.mark(number, "dropped")
            self._tree.refresh(number)
            self._known.discard(self._tree.nodes[number].key)
        self.cuts["frontier"] += surplus

    def _look_up(self) -> None:
        """Is it over?"""
        policy = self.policy
        if self.end is not None:
            return
        if not self._unjudged and not self._tree.open:
            self.end = TreeEnd(kind="exhausted")
            return
        over = {
            "nodes": not self._unjudged and self.expanded >= policy.nodes_max,
            "calls": self.calls >= policy.calls_max,
            "cost": policy.cost_max is not None and self.cost >= policy.cost_max,
            "failures": self.faults.total() >= policy.failures_max,
        }
        for cap, is_over in over.items():
            if is_over:
                self.stop(cap)

    def _pick(self) -> int:
        """The state to expand next."""
        if self._chosen is None:
            is_beam = self.policy.algo == "beam_guided_tree_v1"
            self._chosen = self._next_of_beam() if is_beam else self._tree.best_by_puct()
        return self._chosen

    def _next_of_beam(self) -> int:
        nodes = self._tree.nodes
        self._beam = [number for number in self._beam if nodes[number].status == "open"]
        if not self._beam:
            new = [number for number in self._level if nodes[number].status == "open"]
            self._beam = self._tree.best(new or self._tree.open, self.policy.beam_width)
            self._level = []
        return self._beam[0]

    # -- looking --------------------------------------------------------------------------------------

    @property
    def expanded(self) -> int:
        return self._tree.nodes[TOP].n

    @property
    def made(self) -> int:
        """How many states were looked at."""
        return len(self._tree.nodes) - 1

    @property
    def depth(self) -> int:
        """How deep the deepest of them lies."""
        return max(node.depth for node in self._tree.nodes)

    @property
    def unknowns(self) -> int:
        """How many the verifier could not judge."""
        return sum(node.unknown for node in self._tree.nodes)

    @property
    def is_complete(self) -> bool:
        """Nothing was left out: what was not found is not there."""
        return self.end is not None and self.end.kind == "exhausted" and not +self.cuts and not self.unknowns

    @property
    def best_node(self) -> int | None:
        """The state that was verified; else one that may be right; else that of the highest value."""
        if self.end is not None and self.end.node is not None:
            return self.end.node
        known = [
            (node.unknown, node.value or 0.0, -number) for number, node in enumerate(self._tree.nodes) if node.is_known
        ]
        return -max(known)[2] if known else None

    def way(self, node: int | None = None) -> list[JsonValue]:
        """The states from the start to a node, or to the best."""
        number = self.best_node if node is None else node
        if number is None or not 0 < number < len(self._tree.nodes):
            return []
        return [read_canonical(self._tree.nodes[each].text) for each in self._tree.way_to(number)]

    @property
    def reason_codes(self) -> tuple[str, ...]:
        """Why it found nothing; none where it did, or goes on."""
        if self.end is None or self.end.kind == "solved":
            return ()
        is_cut = self.end.kind == "budget" or any(self.cuts[name] for name in _CAPS)
        codes = ["search_budget_exhausted" if is_cut else "proof_not_found"]
        return tuple(dict.fromkeys([*codes, *(["prover_incomplete"] if self.unknowns else []), *sorted(self.faults)]))

    @property
    def notes(self) -> str:
        """How it went, in figures alone: what functions said stands in `said`."""
        cap = "" if self.end is None or self.end.cap is None else f" ({self.end.cap})"
        parts = ["going on" if self.end is None else f"{self.end.kind}{cap}"]
        counts = {"states": self.made, "duplicates": self.duplicates, "calls": self.calls, "unknown": self.unknowns}
        parts += [f"{count} {name}" for name, count in counts.items() if count]
        parts += [f"cost {self.cost:g}"] if self.cost else []
        parts += [f"left out by {name}: {count}" for name, count in sorted(self.cuts.items()) if count]
        parts += [f"{code}: {count}" for code, count in sorted(self.faults.items())]
        return "; ".join(parts)

    def block(self, trace_id: str | None = None) -> TreeSearchBlock:
        """The search as an EventLog tells it: `depth_max` and `frontier_max` are what was reached, not the caps."""
        best = self.best_node
        return TreeSearchBlock(
            enabled=True,
            algo=self.policy.algo,
            node_expanded=self.expanded,
            depth_max=self.depth,
            frontier_max=self.frontier_max,
            best_node_ref=None if best is None else f"{trace_id}:node#{best}" if trace_id else f"node#{best}",
            notes=self.notes,
        )

    # -- written down ---------------------------------------------------------------------------------

    def to_wire(self) -> dict[str, Any]:
        """All that the rest of the search depends on, as JSON."""
        fields: dict[str, Any] = {
            "policy": self.policy.model_dump(exclude_none=True),  # all of it: what is usual may change
            "scored": self.scored,
            "nodes": [_record_of(node) for node in self._tree.nodes[1:]],
            "beam": self._beam,
            "level": self._level,
            "calls": self.calls,
            "cost": self.cost,
            "frontier_max": self.frontier_max,
            "duplicates": self.duplicates,
            "cuts": dict(self.cuts),
            "faults": dict(self.faults),
        }
        if self.said is not None:
            fields["said"] = self.said
        if self.end is not None:
            fields["end"] = self.end.to_wire()
        return TreeSearchRecord.from_wire(fields).to_wire()

    @classmethod
    def from_wire(cls, plain: Any) -> Self:
        """A search that was written down, to go on with."""
        record = TreeSearchRecord.from_wire(plain)
        search = cls(record.policy, scored=record.scored)
        for place, each in enumerate(record.nodes):
            search._read_node(each, f"$.nodes[{place}]")
        search._check(record)
        search._tree.refresh_all()
        search._beam, search._level = list(record.beam), list(record.level)
        search.calls, search.cost = record.calls, float(record.cost)
        search.frontier_max, search.duplicates = record.frontier_max, record.duplicates
        search.cuts, search.faults = Counter(record.cuts), Counter(record.faults)
        search.said, search.end = record.said, record.end
        return search

    def _read_node(self, each: TreeNodeRecord, path: str) -> None:
        number = len(self._tree.nodes)
        parent = 0 if each.parent is None else each.parent
        if parent >= number or self._tree.nodes[parent].status != "expanded":
            raise InvalidRecord("not a search", [Issue(path, "its parent comes later, or was not expanded")])
        if each.status != "dropped" and each.key in self._known:
            raise InvalidRecord("not a search", [Issue(path, "its key is that of another state")])
        text = state_text(each.state, self.policy.state_bytes_max)
        self._tree.add(parent, text, each.key, None if each.prior is None else float(each.prior))
        node = self._tree.nodes[number]
        node.value = None if each.value is None else float(each.value)
        node.unknown = bool(each.unknown)
        self._tree.mark(number, each.status)
        if each.status != "dropped":
            self._known.add(each.key)
        if each.status in ("verify", "score"):
            self._unjudged.append(number)

    def _check(self, record: TreeSearchRecord) -> None:
        """What the parts say of each other."""
        count = len(self._tree.nodes)
        solved = () if record.end is None or record.end.node is None else (record.end.node,)
        numbers = (*record.beam, *record.level, *solved)
        if any(not 0 < number < count for number in numbers):
            raise InvalidRecord("not a search", [Issue("$.beam", "names a state that is not there")])
        if len({self._tree.nodes[number].parent for number in self._unjudged}) > 1:
            raise InvalidRecord("not a search", [Issue("$.nodes", "states of several parents are not judged")])
        if record.end is None and not self._unjudged and not self._tree.open:
            raise InvalidRecord("not a search", [Issue("$.end", "nothing is left, and it has not ended")])
        if record.end is not None and (record.end.kind == "solved") != bool(solved):
            raise InvalidRecord("not a search", [Issue("$.end.node", "a state is named by what is solved alone")])


def _record_of(node: Node) -> dict[str, Any]:
    fields: dict[str, Any] = {"key": node.key, "state": read_canonical(node.text), "status": node.status}
    if node.parent != TOP:
        fields["parent"] = node.parent
    for name in ("prior", "value"):
        if getattr(node, name) is not None:
            fields[name] = getattr(node, name)
    if node.unknown:
        fields["unknown"] = True
    return fields
