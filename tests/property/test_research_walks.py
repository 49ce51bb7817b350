"""Random walks over a research run: any call in any order works or says by name why not, and files and store agree."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from muniment.core.outside.system import CountingIds, TickingClock
from muniment.core.policy import Policy
from muniment.errors import (
    ArtifactEdited,
    Conflict,
    GateFailed,
    InvalidInput,
    MunimentError,
    NotFound,
    StaleState,
    WrongStage,
)
from muniment.handles.derived import new_context
from muniment.handles.memory import Memory
from muniment.handles.study import Study
from muniment.research.records import CITABLE, STAGES
from muniment.store.engines.opening import open_engine
from muniment.testing.stories import PAGES, QUESTION, TOOL_USE, draft_for, output_for

ROUNDS = max(1, int(os.environ.get("MUNIMENT_SOAK", "40")) // 40)
POLICY = Policy.from_wire({"research": {"perspectives_min": 2, "attempts_max": 2}})
LIMITS = {"max_wave1_agents": 2, "max_wave2_agents": 1, "max_review_rounds": 2}
GAPS = "## Gaps\n\n- P0: nobody knows how old houses fare.\n"
NAMED = (ArtifactEdited, Conflict, GateFailed, InvalidInput, NotFound, StaleState, WrongStage)
Act = tuple[str, int, int]
numbers = itertools.count(1)


class Checker:
    """Answers, is blocked, or is not there: as the address says."""

    def check_many(self, urls: list[str]) -> list[Any]:
        said = [("valid", 200), ("blocked", 403), ("invalid", 404)]
        chosen = [said[len(url) % 3] for url in urls]
        nothing = {"final_url": None, "text": None, "title": None, "media_type": "text/plain"}
        return [SimpleNamespace(status=status, http_status=code, reason="so", **nothing) for status, code in chosen]


def perspective(study: Study, number: int) -> str:
    known = [each.id for each in study.perspectives()]
    return ([*known, "p9"])[number % (len(known) + 1)]


def ingest(study: Study, which: int, how: int) -> Any:
    id_ = perspective(study, which)
    text = output_for(id_)
    match how % 5:
        case 0:
            return study.ingest(id_, "Nothing here.")
        case 1:
            return study.ingest(id_, text.replace("## Gaps\n\nNone\n", GAPS), tool_use=TOOL_USE, change_note="gaps")
        case 2:
            return study.ingest(id_, text.replace("[1] https://energy", "[1] https://other"), tool_use=TOOL_USE)
        case _:
            return study.ingest(id_, text, tool_use=TOOL_USE, change_note="mended")


def check(study: Study, _: int, how: int) -> Any:
    given = study.synthesis_input()
    return study.check(draft_for(given) if how % 2 else "# Report\n\nNothing, 7 percent of it.")


ACTS: dict[str, Callable[[Study, int, int], Any]] = {
    "route": lambda study, *_: study.route(),
    "bad route": lambda study, *_: study.route([{"id": "p1"}]),
    "ingest": ingest,
    "ingest more": ingest,
    "ingest most": ingest,
    "give up": lambda study, which, _: study.give_up(perspective(study, which), "no"),
    "pivot": lambda study, which, _: study.pivot(second_wave=(None, True, False)[which % 3]),
    "supply": lambda study, which, _: study.supply(PAGES[: which % 4]),
    "supply all": lambda study, *_: study.supply(PAGES),
    "look": lambda study, *_: study.look(Checker()),
    "citations": lambda study, *_: study.citations(),
    "pack": lambda study, *_: study.pack(),
    "check": check,
    "stale": lambda study, *_: study.citations(expected_revision=study.manifest().revision + 1),
    "synthesis": lambda study, *_: study.synthesis_input(),
    "resume": lambda study, *_: study.resume(),
}
READS = {"supply", "supply all", "look", "synthesis", "resume"}
"""These make no revision."""
ROAD = [
    ("route", 0, 0), ("ingest", 0, 3), ("ingest", 1, 3), ("pivot", 0, 0), ("supply all", 0, 0), ("citations", 0, 0),
    ("pack", 0, 0), ("check", 0, 1),
]  # fmt: skip
"""Walks leave it here and there; without it few would come far."""
acts = st.tuples(st.sampled_from([*ACTS, "edit"]), st.integers(0, 11), st.integers(0, 9))


@st.composite
def walks(draw: st.DrawFn) -> list[Act]:
    walk: list[Act] = []
    for step in ROAD[: draw(st.integers(2, len(ROAD)))]:
        walk += draw(st.lists(acts, max_size=2))
        walk.append(step)
    return walk + draw(st.lists(acts, max_size=4))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("walks")


class Walker:
    """Takes a run through a walk and looks at it after each step."""

    def __init__(self, mem: Memory, directory: Path) -> None:
        self.mem = mem
        self.study = mem.research(QUESTION, user_id="ana", run_id="dr_1", limits=LIMITS, directory=directory)
        self.edited: str | None = None

    def files(self) -> dict[str, bytes]:
        root = self.study.directory
        return {
            path.relative_to(root).as_posix(): path.read_bytes()
            for path in sorted(root.rglob("*"))
            if path.is_file() and path.name != ".lock"
        }

    def edit(self, which: int, how: int) -> None:
        if self.edited is not None:
            return
        found = self.files()
        self.edited = sorted(found)[which % len(found)]
        path = self.study.directory / self.edited
        if how % 2:
            path.write_bytes(found[self.edited] + b"\n")
        else:
            path.unlink()

    def step(self, act: Act) -> None:
        name, which, how = act
        if name == "edit":
            self.edit(which, how)
            return
        before, files = self.study.manifest(), self.files()
        own = self.edited is not None and self.edited.startswith("wave-") and name.startswith("ingest")
        try:
            ACTS[name](self.mem.open_research("dr_1"), which, how)
        except NAMED:
            assert self.files() == files, "refused, and yet something changed"
            assert self.study.manifest() == before
        else:
            grown = self.study.manifest().revision - before.revision
            assert grown == 0 if name in READS else grown in (0, 1) if name.startswith("ingest") else grown == 1
            assert self.edited is None or name in READS or own, f"{name} went on from {self.edited}"
            if name == "resume" or (own and grown):
                self.edited = None
        self.look()

    def look(self) -> None:
        status = self.study.status()
        assert status.edited == (() if self.edited is None else (self.edited,))
        if self.edited is None:
            names = [artifact.path for artifact in status.manifest.artifacts]
            assert sorted(self.files()) == sorted([*names, "manifest.json", "gates.json", "audit.jsonl"])
        self.gates(status)

    def gates(self, status: Any) -> None:
        manifest = status.manifest
        held = {gate.gate: gate.status for gate in self.study._view().gates.gates}
        at = STAGES.index(manifest.stage)
        assert (held["A"] == "pass") == (at >= STAGES.index("wave1"))
        assert at < STAGES.index("wave2") or held["B"] == "pass"
        sources = self.study.sources()
        if held["C"] == "pass":
            citable = sum(each.status in CITABLE for each in sources)
            assert citable >= 0.9 * len(sources) > 0
        assert at < STAGES.index("summaries") or held["C"] == "pass"
        assert (held["D"] == "pass") == (manifest.stage in ("synthesis", "done"))
        assert (held["E"] == "pass") == (manifest.stage == "done")
        audit = self.files().get("audit.jsonl", b"").splitlines()
        assert self.edited or manifest.revision == len(audit)


@pytest.mark.soak
@pytest.mark.req("RP-07")
@pytest.mark.timeout(24 * 3600)
@settings(deadline=None, max_examples=20 * ROUNDS, suppress_health_check=list(HealthCheck))
@given(walk=walks())
def test_any_walk(place: Path, walk: list[Act]) -> None:
    context = new_context(engine=open_engine(":memory:"), policy=POLICY, clock=TickingClock(), ids=CountingIds("w"))
    with Memory(context) as mem:
        walker = Walker(mem, place / str(next(numbers)))
        for act in walk:
            walker.step(act)
        assert mem.verify().ok
        assert mem.store.rebuild().repaired == ()
        study = walker.study
        study.resume()
        assert study.status().edited == ()


def test_the_road_leads_to_the_end(place: Path) -> None:
    """Else the walks above would test little."""
    context = new_context(engine=open_engine(":memory:"), policy=POLICY, clock=TickingClock(), ids=CountingIds("w"))
    with Memory(context) as mem:
        walker = Walker(mem, place / str(next(numbers)))
        for act in ROAD:
            walker.step(act)
        assert walker.study.manifest().stage == "done"


def test_what_is_named_is_ours() -> None:
    assert all(issubclass(error, MunimentError) for error in NAMED)
