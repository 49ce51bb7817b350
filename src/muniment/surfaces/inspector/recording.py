"""The API's answers to the page's requests about one run: the content of a bundle.

A bundle is passed on, so it holds only that run and the sources of its packets, nothing else of its user.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain, pairwise, product
from pathlib import Path
from typing import Any
from urllib.parse import quote

from muniment.core.listing import PAGE_MAX
from muniment.errors import MunimentError
from muniment.handles.memory import Memory
from muniment.handles.study import TASK_TYPE
from muniment.store.ledger import RunState
from muniment.surfaces.http._calls import AdmittedRequest, Router, body_arguments, carry_out, query_arguments, routes_of
from muniment.surfaces.inspector.views import View, preview_body
from muniment.surfaces.operations.rows import OPERATIONS
from muniment.surfaces.operations.works import Works

__all__ = ["record_run"]

Answers = dict[str, Any]
PAIRS_MAX = 200
"""The most pairs of builds compared."""
PAIRS_BYTES_MAX = 3_000_000
"""The approximate limit of their size in the file."""
_NAMES_EVENTS = ("id", "evidence", "evidence_id", "chunk_id", "ref", "sources")
_AS_IN_JAVASCRIPT = "!*'()"
"""Characters that `encodeURIComponent` leaves unchanged and `quote` would not."""


def record_run(memory: Memory, run: RunState, view: View | None = None) -> Answers:
    """Answers by "GET /v1/…" or "POST /v1/… {…}": those of the run, and others that a view of its user needs."""
    with closing(Works(memory._ctx.engine, memory._ctx.clock, memory._ctx.ids, 1)) as works:
        recorder = _Recorder(memory, works, ("tenants", run.scope.tenant_id, "users", run.scope.user_id))
        recorder.keep(("runs",), {"items": [run.to_wire()]})
        own = ("runs", run.run_id)
        recorder.one(*own)
        events = recorder.all(*own, "events")
        recorder.keep(("turns",), {"items": list(recorder.listed("turns", run_id=run.run_id))})
        claims = recorder.all(*own, "claims") + recorder.all(*own, "conflicts")
        _record_snapshots(recorder, own)
        pools = _record_builds(recorder, run.run_id, view)
        previews = _record_preview(recorder, view)
        _record_facts(recorder, {each["id"] for each in events}, pools)
        _record_episodes(recorder, run.scope.session_id, pools)
        _record_events(recorder, events, [*claims, *pools, *previews])
        if run.task_type == TASK_TYPE:
            _record_study(recorder, run.run_id)
        return recorder.answers


class _Recorder:
    """Makes the page's requests to the same code, and records the answers."""

    def __init__(self, memory: Memory, works: Works, base: tuple[str, ...]) -> None:
        self._memory, self._works, self._base = memory, works, base
        self._router = Router(routes_of(OPERATIONS))
        self.answers: Answers = {}

    def keep(self, parts: tuple[str, ...], answer: Any, **query: str) -> None:
        said = "&".join(f"{name}={quote(value, safe=_AS_IN_JAVASCRIPT)}" for name, value in query.items())
        self.answers[f"GET {self._path(parts)}{'?' if said else ''}{said}"] = answer

    def post(self, *parts: str, body: dict[str, Any]) -> Any:
        """Make a request with a body, which is part of its key, serialized as the page does."""
        found = self._router.find("POST", ("v1", *self._base, *parts))
        answer = self._answer(AdmittedRequest(found, body_arguments(found.route, body), {}, False, None, None, Path()))
        written = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        self.answers[f"POST {self._path(parts)} {written}"] = answer
        return answer

    def _path(self, parts: tuple[str, ...]) -> str:
        return "/v1/" + "/".join(quote(part, safe=_AS_IN_JAVASCRIPT) for part in (*self._base, *parts))

    def one(self, *parts: str, **query: str) -> Any:
        answer = self._ask(parts, query)
        self.keep(parts, answer, **query)
        return answer

    def all(self, *parts: str, wanted: Callable[[Any], bool] | None = None, **query: str) -> list[Any]:
        """Record a whole list, or the wanted items, as one page."""
        items = [each for each in self.listed(*parts, **query) if wanted is None or wanted(each)]
        self.keep(parts, {"items": items}, **query)
        return items

    def listed(self, *parts: str, **query: str) -> Iterator[Any]:
        """A whole list, without recording it."""
        more: dict[str, str] = {"limit": str(PAGE_MAX)}
        while True:
            page = self._ask(parts, query | more)
            yield from page["items"]
            if "next" not in page:
                return
            more["cursor"] = page["next"]

    def _ask(self, parts: tuple[str, ...], query: dict[str, str]) -> Any:
        found = self._router.find("GET", ("v1", *self._base, *parts))
        given = query_arguments(found.route, list(query.items()))
        return self._answer(AdmittedRequest(found, given["own"], given["run"], False, None, None, Path()))

    def _answer(self, asked: AdmittedRequest) -> Any:
        answer = carry_out(self._memory, self._works, asked)
        assert isinstance(answer.body, bytes)
        return json.loads(answer.body) if answer.media == "application/json" else answer.body.decode()


def _record_builds(recorder: _Recorder, run_id: str, view: View | None) -> list[Any]:
    """Record the builds of the run and of the view, with their sources; returns the pools."""
    named = () if view is None else view.builds
    for build_id in named:
        recorder.one("builds", build_id)  # another user's is refused
    listed = recorder.all("builds", wanted=lambda each: each["run_id"] == run_id or each["build_id"] in named)
    builds = [each["build_id"] for each in listed]
    pools = []
    for build_id in builds:
        recorder.one("builds", build_id)
        pools.append(recorder.one("builds", build_id, "inputs")["pool"])
    room = PAIRS_BYTES_MAX
    for a, b in _pairs(builds, named):
        if room <= 0:
            break
        room -= len(json.dumps(recorder.one("builds", a, "diff", b)))
    return pools


def _pairs(builds: Sequence[str], named: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs to compare: those the view shows, each with the one before it, then the rest, both ways round."""
    near = [*pairwise(named), *((before, after) for after, before in pairwise(builds))]
    every = chain(near, ((after, before) for before, after in near), product(builds, builds))
    seen: set[tuple[str, str]] = set()
    for pair in every:
        if len(seen) >= PAIRS_MAX:
            return
        if pair[0] != pair[1] and pair not in seen:
            seen.add(pair)
            yield pair


def _record_preview(recorder: _Recorder, view: View | None) -> list[Any]:
    """Record a preview of a packet, if the view shows one."""
    if view is None or view.page != "whatif" or not view.ids:
        return []
    return [recorder.post("builds", view.ids[0], "preview", body=preview_body(view.query))]


def _record_snapshots(recorder: _Recorder, own: tuple[str, ...]) -> None:
    for snapshot in recorder.all(*own, "snapshots"):
        sequence = str(snapshot["sequence"])
        recorder.one(*own, "narrative", sequence=sequence)
        recorder.one(*own, "snapshot", "check", sequence=sequence)


def _record_facts(recorder: _Recorder, events: set[str], pools: Iterable[Any]) -> None:
    """Record facts that the packets could choose, or that rest on entries of the run."""
    shown = {each["fact"]["fact_id"] for pool in pools for each in pool["facts"]}

    def wanted(fact: Any) -> bool:
        return fact["fact_id"] in shown or not events.isdisjoint(fact["sources"])

    recorder.all("facts", wanted=wanted, include_all="true")


def _record_episodes(recorder: _Recorder, session_id: str, pools: Iterable[Any]) -> None:
    shown = {each["episode_id"] for pool in pools for each in pool["episodes"]}
    recorder.all("episodes", wanted=lambda each: each["session_id"] == session_id or each["episode_id"] in shown)


def _record_events(recorder: _Recorder, events: Iterable[Any], citing: Iterable[Any]) -> None:
    """Record the entries of the run, and those of other runs that the bundle cites."""
    for entry in events:
        recorder.keep(("events", entry["id"]), entry)
    known = {entry["id"] for entry in events}
    for event_id in sorted(_named_in(list(citing)) - known):
        try:
            recorder.one("events", event_id)
        except MunimentError:
            continue  # forgotten, or above the user's level: the page shows it as missing


def _named_in(value: Any, key: str = "") -> set[str]:
    """Collect possible event ids of a value; false ones are simply not found later."""
    if isinstance(value, dict):
        return set().union(*(_named_in(each, name) for name, each in value.items()))
    if isinstance(value, list):
        return set().union(*(_named_in(each, key) for each in value))
    return {value} if isinstance(value, str) and key in _NAMES_EVENTS else set()


def _record_study(recorder: _Recorder, run_id: str) -> None:
    """Record a research run if its files are available."""
    own = ("research", run_id)
    try:
        recorder.one(*own, "status")
        recorder.all(*own, "claims")
        recorder.all(*own, "sources")
    except MunimentError:
        return  # its folder is elsewhere: the rest of the run is still recorded
