"""The page that Prometheus reads: text exposition format 0.0.4, written from what was counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from muniment.surfaces.http.metrics.cells import Counted
from muniment.surfaces.http.metrics.families import BUCKETS_S, FAMILIES, Family

__all__ = ["MEDIA_TYPE", "added", "written"]

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def added(parts: Iterable[Iterable[Counted]]) -> list[Counted]:
    """The same sets of labels of several processes, added up."""
    sums: dict[tuple[str, tuple[str, ...]], tuple[float, ...]] = {}
    for part in parts:
        for name, labels, numbers in part:
            before = sums.get((name, labels))
            more = numbers if before is None else tuple(a + b for a, b in zip(before, numbers, strict=True))
            sums[name, labels] = more
    return [Counted(name, labels, numbers) for (name, labels), numbers in sums.items()]


def written(kept: Iterable[Counted]) -> bytes:
    """The page: every family that has a number, in one order, each with its help and type."""
    by_name: dict[str, list[Counted]] = {}
    for each in kept:
        by_name.setdefault(each.name, []).append(each)
    lines = [line for family in FAMILIES if family.name in by_name for line in _family(family, by_name[family.name])]
    return "".join(f"{line}\n" for line in lines).encode()


def _family(family: Family, kept: list[Counted]) -> Iterator[str]:
    yield f"# HELP {family.name} {_one_line(family.help)}"
    yield f"# TYPE {family.name} {family.kind}"
    for each in sorted(kept, key=lambda one: one.labels):
        named = list(zip(family.labels, each.labels, strict=True))
        if family.kind == "histogram":
            yield from _histogram(family.name, named, each.numbers)
        else:
            yield f"{family.name}{_labels(named)} {_number(each.numbers[0])}"


def _histogram(name: str, named: list[tuple[str, str]], numbers: tuple[float, ...]) -> Iterator[str]:
    *counts, total = numbers
    bounds = (*map(_number, BUCKETS_S), "+Inf")
    for bound, count in zip(bounds, accumulate(counts), strict=True):
        yield f"{name}_bucket{_labels([*named, ('le', bound)])} {_number(count)}"
    yield f"{name}_sum{_labels(named)} {_number(total)}"
    yield f"{name}_count{_labels(named)} {_number(sum(counts))}"


def _labels(named: list[tuple[str, str]]) -> str:
    if not named:
        return ""
    told = (f'{name}="{_escaped(value)}"' for name, value in named)
    return "{" + ",".join(told) + "}"


def _one_line(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _escaped(value: str) -> str:
    return _one_line(value).replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
