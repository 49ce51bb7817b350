"""Research runs through the library: stages, gates, files in step with the store, crashes, edits, forget."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from muniment.contracts.research import Perspectives, SummaryPack
from muniment.errors import (
    ArtifactEdited,
    Forgotten,
    GateFailed,
    InvalidInput,
    InvalidRecord,
    MunimentError,
    NotFound,
    StaleState,
    StorageBusy,
    TooLarge,
    WrongStage,
)
from muniment.research import store
from muniment.research.run_directory import RunDirectory
from muniment.testing.stories import PAGES, QUESTION, draft_for, output_for, walk_to


@pytest.fixture
def study(mem, tmp_path):
    return mem.research(QUESTION, user_id="ana", run_id="dr_1", directory=tmp_path / "dr_1")


def files(study) -> dict[str, bytes]:
    root = study.directory
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


@pytest.mark.req("RP-07")
def test_whole_way(study):
    walk_to(study, "synthesis")
    status = study.status()
    assert status.manifest.stage == "synthesis"
    assert [gate.status for gate in status.gates.gates] == ["pass", "pass", "pass", "pass", "not_run"]
    given = study.synthesis_input()
    check = study.check(draft_for(given))
    assert check.findings == ()
    assert study.manifest().stage == "done"
    assert [move.stage for move in study.manifest().history] == ["init", "wave1", "citations", "synthesis", "done"]
    assert set(files(study)) >= {
        "manifest.json", "perspectives.json", "gates.json", "audit.jsonl", "citations/citations.jsonl",
        "summaries/summary-pack.json", "wave-1/p1.md", "summaries/p1.summary.md",
    }  # fmt: skip


@pytest.mark.req("RP-01")
@pytest.mark.req("RP-04")
def test_files_are_the_contracts(study):
    walk_to(study, "synthesis")
    found = files(study)
    Perspectives.from_wire(json.loads(found["perspectives.json"]))
    pack = SummaryPack.from_wire(json.loads(found["summaries/summary-pack.json"]))
    manifest = json.loads(found["manifest.json"])
    assert pack.limits == manifest["limits"]
    assert manifest["revision"] == len(found["audit.jsonl"].splitlines())
    for entry in pack.summaries:
        assert len(found[entry.summary_md]) <= 5 * 1024
        assert found[entry.source_artifact]


@pytest.mark.req("RP-07")
def test_every_artifact_is_evidence(mem, study):
    walk_to(study, "synthesis")
    for artifact in study.manifest().artifacts:
        data = (study.directory / artifact.path).read_bytes()
        assert mem.ledger.content(artifact.evidence_id).encode() == data
        assert artifact.bytes == len(data)
    assert mem.verify().ok


@pytest.mark.req("RP-06")
def test_synthesis_reads_the_pack_and_nothing_else(study):
    walk_to(study, "synthesis")
    given = study.synthesis_input()
    assert set(given.summaries) == {entry.summary_md for entry in given.pack.summaries}
    assert set(given.to_wire()) == {"pack", "summaries"}


def test_wrong_stage_is_named_and_changes_nothing(study):
    before = files(study)
    for call in (study.pivot, study.citations, study.pack, study.synthesis_input, lambda: study.check("# x")):
        with pytest.raises(WrongStage):
            call()
    with pytest.raises(WrongStage):
        study.ingest("p1", "# x")
    assert files(study) == before


@pytest.mark.soak
def test_gate_c_stops_the_pack_until_sources_are_there(study):
    walk_to(study, "citations", pages=PAGES[:1])
    with pytest.raises(GateFailed) as caught:
        study.pack()
    assert caught.value.details["gate"] == "C"
    study.supply(PAGES)
    study.citations()
    study.pack()
    assert study.manifest().stage == "synthesis"


@pytest.mark.req("RP-08")
def test_laundered_citation_is_flagged(study):
    walk_to(study, "synthesis")
    flagged = [claim for claim in study.claims() if claim.support in ("not_supported", "refuted")]
    assert any("laundered" in claim.claim for claim in flagged)
    packed = [claim.claim for entry in study.synthesis_input().pack.summaries for claim in entry.key_claims]
    assert not any("laundered" in claim for claim in packed)


@pytest.mark.soak
def test_an_edited_file_is_named_and_never_read(study):
    walk_to(study, "synthesis")
    pack = study.directory / "summaries/summary-pack.json"
    pack.write_text(pack.read_text().replace("summary_pack.v1", "summary_pack.v1 "))
    for call in (study.synthesis_input, study.pack, study.citations):
        with pytest.raises(ArtifactEdited, match=r"summary-pack\.json"):
            call()
    assert study.status().edited == ("summaries/summary-pack.json",)
    assert study.resume() == ["summaries/summary-pack.json"]
    study.synthesis_input()


def test_a_manifest_of_an_older_revision_is_refused(study):
    old = (study.directory / "manifest.json").read_bytes()
    walk_to(study, "wave1")
    (study.directory / "manifest.json").write_bytes(old)
    with pytest.raises(ArtifactEdited, match="revision 1"):
        study.ingest("p1", output_for("p1"), tool_use={"search_calls": 1, "fetch_calls": 1})
    assert study.manifest().standings["p1"] == "waiting"


@pytest.mark.soak
def test_directory_can_be_lost_and_is_written_anew(study):
    walk_to(study, "synthesis")
    before = files(study)
    for path in before:
        (study.directory / path).unlink()
    study.resume()
    assert files(study) == before


def test_an_ingest_renders_the_audit_once(study, monkeypatch):
    walk_to(study, "wave1")
    rendered: list[int] = []
    render = store.render_audit

    def counted(ctx, scope, revision):
        rendered.append(revision)
        return render(ctx, scope, revision)

    monkeypatch.setattr(store, "render_audit", counted)
    for at, each in enumerate(study.perspectives(), 1):
        study.ingest(each.id, output_for(each.id), tool_use={"search_calls": 1, "fetch_calls": 1})
        assert len(rendered) == at
    audit = (study.directory / "audit.jsonl").read_text()
    assert audit == render(study._ctx, study.run.scope, study.manifest().revision)
    assert len(audit.splitlines()) == study.manifest().revision


def test_second_caller_is_told(mem, study):
    other = mem.open_research("dr_1")
    revision = study.manifest().revision
    study.route()
    with pytest.raises(StaleState):
        other.route(expected_revision=revision)


def test_retry_needs_a_change_note(study):
    walk_to(study, "wave1")
    rejected = study.ingest("p1", "Nothing here.")
    assert not rejected.accepted
    assert rejected.directive is not None
    assert {breach.kind for breach in rejected.breaches} >= {"missing_section", "tool_use_unknown"}
    assert rejected.directive.text in study.prompt("p1")
    good = output_for("p1")
    use = {"search_calls": 1, "fetch_calls": 1}
    again = study.ingest("p1", good, tool_use=use)
    assert [breach.kind for breach in again.breaches] == ["missing_change_note"]
    assert study.ingest("p1", good, tool_use=use, change_note="added the sections").accepted


def test_same_output_twice_is_one(study):
    walk_to(study, "wave1")
    use = {"search_calls": 1, "fetch_calls": 1}
    first = study.ingest("p1", output_for("p1"), tool_use=use)
    revision = study.manifest().revision
    assert study.ingest("p1", output_for("p1"), tool_use=use) == first
    assert study.manifest().revision == revision


@pytest.mark.parametrize(
    ("call", "error", "path"),
    [
        (lambda mem, tmp: mem.research("", user_id="ana", directory=tmp / "x"), InvalidInput, "$.question"),
        (lambda mem, tmp: mem.research("q" * 5000, user_id="ana", directory=tmp / "x"), InvalidInput, "$.question"),
        (lambda mem, tmp: mem.research("q", user_id="ana", run_id="../x"), InvalidInput, "$.run_id"),
        (lambda mem, tmp: mem.research("q", user_id="ana", mode="fast", directory=tmp / "x"), InvalidInput, "$.mode"),
        (
            lambda mem, tmp: mem.research("q", user_id="ana", limits={"max_summary_kb": 0}, directory=tmp / "x"),
            InvalidRecord,
            "$.limits.max_summary_kb",
        ),
        (lambda mem, tmp: mem.open_research("nope"), NotFound, "$.run_id"),
    ],
)
def test_bad_input_is_named(mem, tmp_path, call, error, path):
    with pytest.raises(error) as caught:
        call(mem, tmp_path)
    shown = [caught.value.path, *(issue.path for issue in getattr(caught.value, "issues", ()))]
    assert path in shown
    assert not (tmp_path / "x").exists()


def test_an_output_over_the_limit_is_refused_unread(study):
    walk_to(study, "wave1")
    before = files(study)
    with pytest.raises(TooLarge):
        study.ingest("p1", "x" * (50 * 1024 * 1024))
    assert files(study) == before


def test_missing_perspective_is_named(study):
    walk_to(study, "wave1")
    with pytest.raises(NotFound, match="p99"):
        study.ingest("p99", "# x")
    with pytest.raises(GateFailed, match="p1"):
        study.pivot()


def test_forgetting_the_user_takes_store_and_files(mem, study):
    walk_to(study, "synthesis")
    mem.forget(user_id="ana")
    assert not files(study)
    with pytest.raises(MunimentError):
        study.manifest()


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("attempts", [2, 4])
def test_a_forget_that_is_begun_again_counts_the_files_and_keeps_their_lock(mem, study, monkeypatch, attempts):
    """As an engine does after a lost race, and where content has to be fetched first."""
    walk_to(study, "synthesis")
    there = [path for path in files(study) if not Path(path).name.startswith(".")]
    write, left = type(mem._ctx.engine).write, [attempts - 1]

    class Again(Exception):
        pass

    def again(self, tenant_id, work):
        def undone(tx):
            work(tx)
            raise Again

        while left[0]:
            left[0] -= 1
            with pytest.raises(Again):
                write(self, tenant_id, undone)
            with pytest.raises(StorageBusy), RunDirectory(study.directory).locked():
                pass
        return write(self, tenant_id, work)

    monkeypatch.setattr(type(mem._ctx.engine), "write", again)
    receipt = mem.forget(user_id="ana")
    assert receipt.counts["files"] == len(there) > 5
    assert not files(study)
    assert not study.directory.exists()


def test_forgetting_one_output_takes_the_study(mem, study):
    walk_to(study, "synthesis")
    wave = next(each for each in study.manifest().artifacts if each.path == "wave-1/p1.md")
    mem.forget(event=wave.evidence_id)
    assert not files(study)
    with pytest.raises(Forgotten):
        study.manifest()
    with pytest.raises(Forgotten):
        mem.research(QUESTION, user_id="ana", run_id="dr_1", directory=study.directory)


@pytest.mark.soak
def test_rebuild_agrees(mem, study):
    walk_to(study, "synthesis")
    assert mem.store.rebuild().repaired == ()


@pytest.mark.soak
def test_same_inputs_same_bytes(make, tmp_path):
    seen = []
    for name, engine in (("a", "memory"), ("b", "sqlite")):
        made = make(engine).research(QUESTION, user_id="ana", run_id="dr_1", directory=tmp_path / name)
        walk_to(made, "synthesis")
        seen.append(files(made))
    assert seen[0] == seen[1]


@pytest.mark.req("RP-07")
def test_default_directory_is_the_documents(mem, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    made = mem.research("What is it?", user_id="ana", run_id="dr_2")
    assert made.directory == Path(tmp_path) / "opencode/research-runs/dr_2"
    assert (made.directory / "manifest.json").exists()
