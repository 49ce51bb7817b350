"""The states a tree search knows, and what follows from them: priors, values, visits, what is still worth a look.

A state that was looked at to its end without success is worth nothing, however promising it seemed: its value no longer
counts above it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import nlargest
from math import fsum, inf, log

from muniment.core.canonical import Written
from muniment.core.policy import PuctPolicy
from muniment.learning.reuse.puct import puct_score, rank_priors, ranks_of
from muniment.rules.tree_search.records import TreeNodeStatus

__all__ = ["TOP", "UNSCORED", "Node", "Tree"]

TOP = 0
"""The number of the node above all starting states. It is no state."""
UNSCORED = 0.5
"""The value of a state that nobody scored: neither good nor bad."""
_LIVE: tuple[TreeNodeStatus, ...] = ("verify", "score", "open")


@dataclass(slots=True)
class Node:
    """A state. What stands below the line is worked out from the rest."""

    parent: int
    key: str
    text: Written
    depth: int
    prior: float | None = None
    value: float | None = None
    status: TreeNodeStatus = "verify"
    unknown: bool = False

    children: list[int] = field(default_factory=list)
    p: float = 1.0
    log_p: float = 0.0
    """Of all priors from the start to here."""
    n: int = 0
    """How many states were expanded from here down."""
    q: float = 0.0
    total: float = 0.0
    count: int = 1
    is_live: bool = True

    @property
    def is_known(self) -> bool:
        """Somebody had something to say of it."""
        return self.unknown or self.value is not None


class Tree:
    """The nodes by number, each after its parent."""

    def __init__(self, policy: PuctPolicy) -> None:
        self.policy = policy
        self.nodes: list[Node] = [Node(TOP, "", Written("null"), -1, status="expanded")]
        self.open: dict[int, None] = {}
        """The nodes that wait to be expanded, by number, in the order in which they came."""

    def add(self, parent: int, text: Written, key: str, prior: float | None) -> int:
        number = len(self.nodes)
        self.nodes.append(Node(parent, key, text, self.nodes[parent].depth + 1, prior))
        self.nodes[parent].children.append(number)
        return number

    def mark(self, number: int, status: TreeNodeStatus) -> None:
        self.nodes[number].status = status
        if status == "open":
            self.open[number] = None
        else:
            self.open.pop(number, None)

    # -- what follows ---------------------------------------------------------------------------------

    def weigh(self, number: int) -> None:
        """Share the priors of a node's children out among them: those given, else by the rank of their values."""
        node = self.nodes[number]
        children = [self.nodes[child] for child in node.children]
        given = [child.prior for child in children if child.prior is not None]
        if given:
            usual = fsum(given) / len(given)
            weights = [usual if child.prior is None else child.prior for child in children]
            whole = fsum(weights)
            shares = [weight / whole for weight in weights] if 0 < whole < inf else [1 / len(weights)] * len(weights)
        else:
            shares = rank_priors(ranks_of([child.value for child in children]), self.policy)
        for child, share in zip(children, shares, strict=True):
            child.p = share
            child.log_p = node.log_p + (log(share) if share > 0 else -inf)

    def refresh(self, number: int) -> None:
        """Work out anew what a node, its children and all above it are worth."""
        for child in self.nodes[number].children:
            self._work_out(child)
        while True:
            self._work_out(number)
            if number == TOP:
                return
            number = self.nodes[number].parent

    def refresh_all(self) -> None:
        for number, node in enumerate(self.nodes):
            if node.children:
                self.weigh(number)
        for number in reversed(range(len(self.nodes))):
            self._work_out(number)

    def _work_out(self, number: int) -> None:
        node = self.nodes[number]
        own = UNSCORED if node.value is None else node.value
        below = [self.nodes[child] for child in node.children]
        node.is_live = node.status in _LIVE or any(child.is_live for child in below)
        node.n = (node.status == "expanded" and number != TOP) + sum(child.n for child in below)
        node.count = 1 + sum(child.count for child in below)
        node.total = own + fsum(child.total for child in below) if node.is_live else 0.0
        if not node.is_live:
            node.q = 0.0
        elif self.policy.q_method == "mean_reward":
            node.q = node.total / node.count
        else:
            node.q = max((child.q for child in below if child.is_live), default=own)

    # -- choosing -------------------------------------------------------------------------------------

    def best_by_puct(self) -> int:
        """The waiting state that is reached from the top by children of the highest PUCT score. Ties: prior, age."""
        number = TOP
        while self.nodes[number].status != "open":
            children = self.nodes[number].children
            total = sum(self.nodes[child].n for child in children)
            number = max(
                (child for child in children if self.nodes[child].is_live),
                key=lambda child: (*self._puct(child, total), -child),
            )
        return number

    def _puct(self, number: int, total: int) -> tuple[float, float]:
        node = self.nodes[number]
        return puct_score(node.q, node.p, total, node.n, self.policy.c), node.p

    def worth(self, number: int) -> tuple[float, float, int]:
        """The key that compares waiting states across the tree: value, then priors of the whole way, then age."""
        node = self.nodes[number]
        return (UNSCORED if node.value is None else node.value, node.log_p, -number)

    def best(self, numbers: Iterable[int], count: int) -> list[int]:
        return nlargest(count, numbers, key=self.worth)

    def way_to(self, number: int) -> list[int]:
        """The states from the start to this one."""
        found = []
        while number != TOP:
            found.append(number)
            number = self.nodes[number].parent
        return found[::-1]
