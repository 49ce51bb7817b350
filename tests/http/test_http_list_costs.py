"""A page of any list reads what it shows: not one row more where its scope holds twenty times as much.

Rows are counted as readers hand them out, never time. A list that is new and not bounded fails here.
"""

from __future__ import annotations

from typing import Any

import pytest
from grown_store import LISTS, Grown
from http_support import count_rows

from muniment.core.ports.engine import Row
from muniment.surfaces.http._calls import Route, routes_of

UNBOUNDED = {
    "run.fact_history": "of one key, by when each began to hold, which no index has",
    "run.failures": "each is counted over the whole run, from its latest snapshot",
    "study.perspectives": "a study is one record, and its policy bounds it",
    "study.claims": "a study is one record, and its policy bounds it",
    "study.sources": "a study is one record, and its policy bounds it",
    "works.list": "what this process carries out, at most so many",
}
"""Lists that are read whole, and why that is no more than they show."""
LIMIT = 3
SMALL, LARGE = 6, 60


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> tuple[Grown, Grown]:
    return tuple(Grown(count, tmp_path_factory.mktemp(f"of{count}")) for count in (SMALL, LARGE))  # type: ignore[return-value]


def pages(store: Grown, path: str, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """The rows that the first pages of a list have read, and whether each shows as many as it may."""
    found: list[tuple[int, bool]] = []
    with monkeypatch.context() as patched:
        rows: list[Row] = []
        count_rows(store.memory, rows, patched)
        cursor: dict[str, str] = {}
        for _ in range(2):
            store.memory._ctx.clear_caches()
            rows.clear()
            answer = store.client.get(path, params={"limit": LIMIT, **asked, **cursor})
            assert answer.status_code == 200, answer.text
            told = answer.json()
            found.append((len(rows), len(told["items"]) == LIMIT))
            if "next" not in told:
                break
            cursor = {"cursor": told["next"]}
    return found


@pytest.mark.soak
@pytest.mark.parametrize("operation", [each for each in LISTS if each.id not in UNBOUNDED], ids=lambda each: each.id)
def test_a_page_reads_what_it_shows(
    operation: Any, stores: tuple[Grown, Grown], monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = stores
    was_full = False
    for route in routes_of([operation]):
        if "{rule_id}" in route.template and route.level != "user":
            continue  # the rule is a user's
        orders = ["asc", "desc"] if "order" in operation.takes_names else [None]
        for order in orders:
            asked = ({} if order is None else {"order": order}) | (
                {"key": "user.city"} if "key" in required(route) else {}
            )
            if operation.id == "memory.turns" and route.level == "tenant":  # of a tenant as a whole there are none
                asked |= {"run_id": small.own["run"]}
            if operation.id == "memory.attention":  # a trial is looked for among all rules, 2,000 for a page
                asked |= {"kind": "candidate_waiting"}
            less = pages(small, small.path(route), asked, monkeypatch)
            more = pages(large, large.path(route), asked, monkeypatch)
            assert len(less) == len(more)
            for (few, _), (many, is_full) in zip(less, more, strict=True):
                was_full |= is_full
                assert many <= 1.5 * few + 2 * LIMIT, f"{route.template} {asked}: {few} rows, and {many} of more"
    assert was_full, "no page of it was full, so nothing was shown"


def required(route: Route) -> set[str]:
    return {each.name for each in route.operation.parameters(route.template) if each.is_required}
