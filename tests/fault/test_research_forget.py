"""Research runs forgotten, moved to another store, and made twice: no word left, nothing lost, the same bytes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from research_desk import begin, files, in_step, opener

from muniment.errors import ArtifactEdited, Forgotten, NotFound
from muniment.handles.memory import Memory
from muniment.handles.study import Study
from muniment.testing.stories import PAGES, TOOL_USE, draft_for, output_for, walk_to

WORDS = ("Norway", "gigawatts", "11,500 euros", "coefficient of performance", "laundered figure", "cold climates")
PAGE_WORDS = ("Owners reported fewer breakdowns", "coefficient of performance")


def left(tmp_path: Path, words: tuple[str, ...] = WORDS) -> list[tuple[str, str]]:
    """Where in the store's files and in the runs' they still stand."""
    return [
        (path.relative_to(tmp_path).as_posix(), word)
        for path in sorted(tmp_path.rglob("*"))
        if path.is_file()
        for word in words
        if word.encode() in path.read_bytes()
    ]


def _wave(mem: Memory, study: Study) -> Any:
    event = next(each for each in study.manifest().artifacts if each.path == "wave-1/p1.md").evidence_id
    return mem.forget(event=event)


def _page(mem: Memory, study: Study) -> Any:
    cited = next(each for each in study.sources() if "energy" in each.url)
    return mem.forget(event=cited.chunk_ids[0])


WHOLE: dict[str, Callable[[Memory, Study], Any]] = {
    "user": lambda mem, _: mem.forget(user_id="ana"),
    "session": lambda mem, study: mem.forget(session=study.run_id),
    "tenant": lambda mem, _: mem.forget(tenant="default"),
}
ONE: dict[str, Callable[[Memory, Study], Any]] = {"wave": _wave, "page": _page}


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("what", WHOLE)
def test_nothing_is_left_of_a_run(tmp_path: Path, what: str) -> None:
    with opener("sqlite", tmp_path) as opened:
        mem = opened()
        study = begin(mem, tmp_path / "dr_1")
        walk_to(study, "synthesis")
        study.check("# Report\n\nThe gigawatts of Norway.", sections=[])
        assert left(tmp_path)
        count = len(files(study.directory))
        receipt = WHOLE[what](mem, study)
        assert receipt.counts["files"] == count
        assert receipt.scrubbed
        assert not study.directory.exists()
        with pytest.raises((Forgotten, NotFound)):
            study.manifest()
        assert mem.verify().ok
        assert mem.store.rebuild().repaired == ()
    assert left(tmp_path) == []


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("what", ONE)
def test_with_one_output_or_page_goes_all_that_was_made_of_it(tmp_path: Path, what: str) -> None:
    """The study and its files go; the question and the other pages are nobody's words of it."""
    with opener("sqlite", tmp_path) as opened:
        mem = opened()
        study = begin(mem, tmp_path / "dr_1")
        walk_to(study, "synthesis")
        count = len(files(study.directory))
        assert ONE[what](mem, study).counts["files"] == count
        with pytest.raises(Forgotten):
            study.status()
        assert not study.directory.exists()
        assert mem.verify().ok
        assert mem.store.rebuild().repaired == ()
    assert left(tmp_path, ("laundered figure",) if what == "wave" else PAGE_WORDS) == []


@pytest.mark.req("LG-07")
def test_a_page_that_came_after_the_citations_is_in_the_pack_and_goes_with_it(tmp_path: Path) -> None:
    """What was settled had another text of the source; the pack quotes the new one."""
    with opener("sqlite", tmp_path) as opened:
        mem = opened()
        study = begin(mem, tmp_path / "dr_1")
        walk_to(study, "citations", pages=[PAGES[0] | {"text": "A short note without figures."}, *PAGES[1:]])
        study.supply([PAGES[0] | {"kind": "snippet"}])
        study.pack()
        quoted = [claim for claim in study.claims() if claim.quote is not None and "550 homes" in claim.quote]
        assert quoted
        assert quoted[0].evidence_id is not None
        mem.forget(event=quoted[0].evidence_id)
        with pytest.raises(Forgotten):
            study.manifest()
        assert not study.directory.exists()
    assert left(tmp_path, ("550 homes",)) == []


@pytest.mark.req("LG-07")
def test_files_go_wherever_a_revision_put_them(tmp_path: Path) -> None:
    with opener("sqlite", tmp_path) as opened:
        mem = opened()
        study = begin(mem, tmp_path / "one")
        study.route()
        shutil.copytree(tmp_path / "one", tmp_path / "two")
        moved = mem.open_research("dr_1", directory=tmp_path / "two")
        place = tmp_path / "two" / "wave-1" / "p2.md"
        moved.ingest("p1", output_for("p1"), tool_use=TOOL_USE)
        place.write_text("The agent left the gigawatts of Norway here.")
        assert not moved.ingest("p2", place).accepted
        mem.forget(user_id="ana")
        assert not (tmp_path / "one").exists()
        assert not (tmp_path / "two").exists()
    assert left(tmp_path) == []


@pytest.mark.req("LG-07", "LG-02")
def test_other_runs_are_untouched(tmp_path: Path) -> None:
    with opener("sqlite", tmp_path) as opened:
        mem = opened()
        for user_id in ("ana", "bob"):
            walk_to(begin(mem, tmp_path / user_id, run_id=f"dr_{user_id}", user_id=user_id), "synthesis")
        second = begin(mem, tmp_path / "second", run_id="dr_second")
        walk_to(second, "synthesis")
        bob = mem.open_research("dr_bob")
        before = files(bob.directory), files(second.directory)
        mem.forget(session="dr_ana")
        assert (files(bob.directory), files(second.directory)) == before
        for study in (bob, second):
            assert in_step(study)
            study.pack()
        mem.forget(user_id="ana")
        assert not second.directory.exists()
        assert bob.check(draft_for(bob.synthesis_input())).passed


@pytest.mark.req("LG-07")
def test_a_directory_that_is_gone_stops_no_forget(tmp_path: Path) -> None:
    with opener("sqlite", tmp_path) as opened:
        mem = opened()
        walk_to(begin(mem, tmp_path / "far" / "dr_1"), "synthesis")
        shutil.rmtree(tmp_path / "far")
        assert "files" not in mem.forget(user_id="ana").counts
        assert not (tmp_path / "far").exists()
    assert left(tmp_path) == []


# -- moved, rebuilt -----------------------------------------------------------------------------------


@pytest.mark.req("LG-04", "RP-07")
@pytest.mark.parametrize(("engine", "other"), [("sqlite", "postgres"), ("postgres", "sqlite")])
def test_a_run_goes_on_in_another_store(
    engine: str, other: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    dsn = request.getfixturevalue("postgres_dsn") if "postgres" in (engine, other) else ""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with opener(engine, tmp_path / "a", dsn) as opened, opener(other, tmp_path / "b", dsn) as moved_to:
        mem, moved = opened("a"), moved_to("b")
        study = begin(mem, tmp_path / "one")
        walk_to(study, "synthesis")
        lines = list(mem.export())
        moved.import_(lambda: lines)
        assert list(moved.export()) == lines
        taken_up = moved.open_research("dr_1", directory=tmp_path / "two")
        taken_up.resume()
        assert files(tmp_path / "one") == files(tmp_path / "two")
        assert moved.verify().ok
        assert moved.store.rebuild().repaired == ()
        assert taken_up.check(draft_for(taken_up.synthesis_input())).passed
        assert in_step(taken_up)
        assert in_step(study)
        study.citations()
        with pytest.raises(ArtifactEdited):
            mem.open_research("dr_1", directory=tmp_path / "two").pack()


@pytest.mark.req("LG-05")
def test_a_lost_item_is_told_from_the_ledger_again(tmp_path: Path) -> None:
    from muniment.core.ports.engine import Delete
    from muniment.research.projection import study_id

    with opener("sqlite", tmp_path) as opened:
        mem = opened()
        study = begin(mem, tmp_path / "dr_1")
        walk_to(study, "synthesis")
        before = study.manifest(), study.gates()
        lost = Delete("items", (("id", "=", study_id("dr_1")), ("version", ">", 3)))
        mem._ctx.engine.write("default", lambda tx: tx.do(lost))
        assert study.manifest() != before[0]
        assert mem.store.rebuild().repaired != ()
        assert study.manifest() == before[0]
        assert in_step(study)


# -- the same bytes -----------------------------------------------------------------------------------


def told(engine: str, tmp_path: Path, dsn: str = "") -> str:
    """A digest of all files of a whole run, and of what the store would export of it."""
    with opener(engine, tmp_path, dsn) as opened:
        mem = opened("same")
        study = begin(mem, tmp_path / "dr_1")
        walk_to(study, "synthesis")
        study.check(draft_for(study.synthesis_input()))
        found = {path: hashlib.sha256(data).hexdigest() for path, data in files(study.directory).items()}
        return json.dumps([study.manifest().stage, found], sort_keys=True)


@pytest.mark.req("RP-07")
def test_same_inputs_same_bytes_on_every_engine(tmp_path: Path, postgres_dsn: str) -> None:
    seen = set()
    for engine in ("sqlite", "postgres"):
        (tmp_path / engine).mkdir()
        seen.add(told(engine, tmp_path / engine, postgres_dsn))
    assert len(seen) == 1


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.req("RP-07")
def test_same_inputs_same_bytes_in_every_process(tmp_path: Path) -> None:
    seen = set()
    for hash_seed in ("0", "1", "2"):
        place = tmp_path / hash_seed
        place.mkdir()
        env = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(Path(__file__).parent)}
        done = subprocess.run(
            [sys.executable, __file__, str(place)], env=env, capture_output=True, text=True, check=True
        )
        seen.add(done.stdout)
    assert len(seen) == 1
    assert '"done"' in seen.pop()


if __name__ == "__main__":
    print(told("memory", Path(sys.argv[1])))
