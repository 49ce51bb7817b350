"""The arms of an eval: ways to get from a question to what a model would read, compared on the same questions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from muniment.core.policy import Policy
from muniment.errors import InvalidInput

__all__ = ["BUDGETS", "Arm", "ArmKind", "K", "make_arms"]

ArmKind = Literal["packet", "search", "bm25"]
BUDGETS = (512, 1024)
"""Tokens of the packets, unless others are asked for."""
K = 10
"""How many a search gives, unless another number is asked for."""


class Arm(NamedTuple):
    """One way. A packet and a text of BM25's best turns have a budget, a search and BM25's own list a length."""

    name: str
    kind: ArmKind
    max_tokens: int | None = None
    k: int | None = None
    purpose: str = "responder"
    policy: Policy | None = None
    """Of a packet, where it is not the store's own."""


def make_arms(
    *,
    budgets: Iterable[int] = BUDGETS,
    purposes: Iterable[str] = ("responder",),
    policies: Mapping[str, Policy] | None = None,
    k: int = K,
    reference: bool = True,
) -> tuple[Arm, ...]:
    """Packets at every budget, for every purpose, under the store's policy and each that is named; a search; and what
    plain BM25 has at the same sizes. The first is the one that others are compared with.
    """
    sizes, wanted = tuple(dict.fromkeys(budgets)), tuple(dict.fromkeys(purposes))
    if not sizes or not wanted:
        raise InvalidInput("an eval has at least one packet", path="$.budgets", hint="such as 512")
    chosen: list[tuple[str, Policy | None]] = [("", None), *(policies or {}).items()]
    arms = [
        Arm(_packet_name(purpose, size, name), "packet", size, purpose=purpose, policy=policy)
        for name, policy in chosen
        for purpose in wanted
        for size in sizes
    ]
    arms.append(Arm(f"search@{k}", "search", k=k))
    if reference:
        arms += [Arm(f"bm25 {size}", "bm25", size) for size in sizes]
        arms.append(Arm(f"bm25@{k}", "bm25", k=k))
    return tuple(arms)


def _packet_name(purpose: str, max_tokens: int, policy: str) -> str:
    kind = "packet" if purpose == "responder" else purpose
    return " ".join(filter(None, (kind, str(max_tokens), policy)))
