"""What stands between an engine and its server is tried with some cases of each test; the engine itself with all."""

from __future__ import annotations

from collections import Counter

import pytest

from effort import SOAK

BETWEEN = ("TestPostgresBehindAPooler", "TestPostgresWithAReplica")
"""A pooler or a replica does not know one table from another."""
STEP = 4


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Each fourth case of a test, beginning with another one for each test; all of them under a soak."""
    if SOAK:
        return
    tests: dict[str, int] = {}
    seen: Counter[str] = Counter()
    kept, left = [], []
    for item in items:
        name = item.nodeid.partition("[")[0]
        if not any(f"::{each}::" in name for each in BETWEEN):
            kept.append(item)
            continue
        start = tests.setdefault(name, len(tests))
        chosen = "[" not in item.nodeid or seen[name] % STEP == start % STEP
        seen[name] += 1
        (kept if chosen else left).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept
