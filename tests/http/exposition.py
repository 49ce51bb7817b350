"""Prometheus' text exposition format 0.0.4, read strictly: with the official parser where it is installed, and always
with one written from the grammar."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import util
from typing import NamedTuple

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_SAMPLE = re.compile(rf"({_NAME})(?:\{{(.*)\}})? (\S+)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
_ENDINGS = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}
_UNESCAPED = {'\\"': '"', "\\\\": "\\", "\\n": "\n"}


class Page(NamedTuple):
    kinds: Mapping[str, str]
    samples: Mapping[tuple[str, frozenset[tuple[str, str]]], float]

    def of(self, name: str, **labels: str) -> float:
        """The sum of what has at least these labels."""
        wanted = frozenset(labels.items())
        return sum(value for (found, all_), value in self.samples.items() if found == name and wanted <= all_)

    def labels(self, name: str) -> set[str]:
        return {value for (_, labels) in self.samples for label, value in labels if label == name}


def read(body: str) -> Page:
    """The page; raises where it is not what the format says."""
    assert body.endswith("\n")
    kinds: dict[str, str] = {}
    helps: set[str] = set()
    samples: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    family = ""
    for line in body.splitlines():
        if line.startswith("# HELP "):
            family = line.split(" ", 3)[2]
            assert family not in helps, "told once, and all of it together"
            helps.add(family)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == family
            kinds[name] = kind
        else:
            match = _SAMPLE.fullmatch(line)
            assert match, line
            name, inner, value = match.groups()
            assert name in {family + ending for ending in _ENDINGS[kinds[family]]}, f"{name} under {family}"
            labels = _labels(inner or "")
            assert (name, labels) not in samples, f"twice: {line}"
            samples[name, labels] = float(value)
    assert set(kinds) == helps
    _check_histograms(kinds, samples)
    if util.find_spec("prometheus_client") is not None:
        _check_official(body, samples)
    return Page(kinds, samples)


def _labels(inner: str) -> frozenset[tuple[str, str]]:
    found, at = [], 0
    while at < len(inner):
        match = _LABEL.match(inner, at)
        assert match, inner
        found.append((match[1], re.sub(r'\\["\\n]', lambda each: _UNESCAPED[each[0]], match[2])))
        at = match.end()
    assert len({name for name, _ in found}) == len(found)
    return frozenset(found)


def _check_histograms(
    kinds: Mapping[str, str], samples: Mapping[tuple[str, frozenset[tuple[str, str]]], float]
) -> None:
    for family in (name for name, kind in kinds.items() if kind == "histogram"):
        for name, labels in [key for key in samples if key[0] == f"{family}_count"]:
            total = samples[name, labels]
            buckets = []
            for (bucket, own), value in samples.items():
                bound = dict(own).get("le", "")
                if bucket == f"{family}_bucket" and own - {("le", bound)} == labels:
                    buckets.append((float(bound), value))
            buckets.sort()
            assert buckets[-1] == (float("inf"), total)
            counts = [value for _, value in buckets]
            assert counts == sorted(counts)
            assert samples[f"{family}_sum", labels] >= 0


def _check_official(body: str, samples: Mapping[tuple[str, frozenset[tuple[str, str]]], float]) -> None:
    from prometheus_client.parser import text_string_to_metric_families  # type: ignore[import-not-found,unused-ignore]

    found = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(body)
        for sample in family.samples
    }
    assert found == samples
