"""Steps of a run: numbering, what counts towards compaction and what does not (CS-10), windows (CS-04), bad input."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from muniment.errors import InvalidInput, MunimentError, NotFound, RunFinished
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from products import for_each

Maker = Callable[..., Memory]
Counts = Callable[[Memory], dict[str, int]]
STEP = ("PLAN_DONE", "ACT_DONE", "OBSERVE_DONE")


def sequences(mem: Memory, run: Run) -> list[int]:
    return [snapshot.sequence for snapshot in mem.log.snapshots(run.run_id)]


def tell(run: Run, *events: str) -> None:
    for event in events:
        run.log.step(event)


# -- the trigger --------------------------------------------------------------------------------------


@pytest.mark.req("CS-10")
def test_a_snapshot_is_taken_at_eighteen_counted_events(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana")
    tell(run, *STEP * 5, "PLAN_DONE", "ACT_DONE")
    assert sequences(any_mem, run) == []
    assert run.log.compact(force=False) is None
    run.log.step("OBSERVE_DONE")
    assert sequences(any_mem, run) == [1]
    counts = any_mem.log.snapshot(run.run_id).counts
    assert (counts.counted_events_since_last_compaction, counts.steps_since_last_compaction) == (18, 6)
    tell(run, *STEP * 6)
    assert sequences(any_mem, run) == [1, 2]
    assert run.log.read().counted_since == ()


@pytest.mark.soak
@pytest.mark.req("CS-10")
def test_verbose_events_messages_and_tools_make_no_difference(mem: Memory) -> None:
    quiet, loud = mem.run(user_id="ana", run_id="quiet"), mem.run(user_id="ana", run_id="loud")
    taken: dict[str, list[int]] = {"quiet": [], "loud": []}
    for number in range(60):
        for run in (quiet, loud):
            if run is loud:
                for event in ("PLAN_THOUGHT", "ACT_PROGRESS", "ACT_TOOL_CALLED", "OBSERVE_RAW", "CHECKPOINT_NOTE"):
                    run.log.step(event, "much is said")
                run.observe("user", "more words")
                run.observe_tool("t", content="x", ok=bool(number % 2))
                run.log.question("still open?")
            run.log.step(STEP[number % 3])
            taken[run.run_id].append(len(sequences(mem, run)))
    assert taken["quiet"] == taken["loud"]
    assert taken["quiet"][-1] == 3


@pytest.mark.req("CS-10")
def test_compile_and_checkpoint_end_phases_but_do_not_count(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    for _ in range(7):
        tell(run, "COMPILE_DONE", "CHECKPOINT_DONE")
    assert sequences(mem, run) == []
    assert run.log.read().spent.counted_events == 0
    run.log.step("COMPILE_DONE")  # the eighth step: the fallback
    assert sequences(mem, run) == [1]
    counts = mem.log.snapshot(run.run_id).counts
    assert (counts.counted_events_since_last_compaction, counts.steps_since_last_compaction) == (0, 8)


@pytest.mark.req("CS-10")
def test_the_fallback_counts_steps_that_began_since(make: Maker) -> None:
    """A snapshot in the middle of a step: what is left of that step is not a step more."""
    mem = make("memory", policy={"compaction": {"event_threshold": 100, "step_fallback": 3}})
    run = mem.run(user_id="ana")
    tell(run, "PLAN_DONE")
    run.log.compact()
    tell(run, "ACT_DONE", "OBSERVE_DONE", *STEP, *STEP)
    assert len(run.log.read().steps_since) == 2
    assert sequences(mem, run) == [1]
    run.log.step("PLAN_DONE")
    assert sequences(mem, run) == [1, 2]
    assert mem.log.check_snapshot(run.run_id).status == "PASS"


@pytest.mark.req("CS-10")
def test_thresholds_are_policy_and_auto_can_be_off(make: Maker) -> None:
    mem = make("memory", policy={"compaction": {"auto": False, "event_threshold": 2}})
    run = mem.run(user_id="ana")
    tell(run, *STEP)
    assert sequences(mem, run) == []
    assert run.log.compact(force=False) is not None
    assert run.log.compact(force=False) is None
    assert sequences(mem, run) == [1]


def test_another_runs_steps_do_not_count(mem: Memory) -> None:
    one, other = (mem.run(user_id="ana", session_id="s", run_id=name) for name in ("r1", "r2"))
    for _ in range(5):
        tell(one, *STEP)
        tell(other, *STEP)
    assert sequences(mem, one) == sequences(mem, other) == []
    assert (one.log.read().step, other.log.read().step) == (5, 5)


# -- numbers ------------------------------------------------------------------------------------------


def test_steps_are_numbered(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana")
    told = [
        "PLAN_THOUGHT",
        "COMPILE_DONE",
        "PLAN_DONE",
        "ACT_PROGRESS",
        "ACT_DONE",
        "OBSERVE_DONE",
        "PLAN_DONE",
        "ACT_DONE",
    ]
    numbers = [run.log.step(event).step for event in told]
    assert [step.step for step in numbers if step] == [1, 1, 1, 1, 1, 1, 2, 2]
    assert run.log.step("ACT_DONE").step.step == 3  # type: ignore[union-attr]
    assert run.log.step("OBSERVE_DONE", step=3).step.step == 3  # type: ignore[union-attr]
    assert run.log.step("PLAN_DONE", step=4).step.step == 4  # type: ignore[union-attr]
    assert (run.log.read().step, run.log.read().phase) == (4, "PLAN")


def test_verbose_events_belong_to_the_phase_that_goes_on(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    tell(run, *STEP)
    told = ["ACT_PROGRESS", "CHECKPOINT_NOTE", "ACT_PROGRESS", "CHECKPOINT_NOTE"] * 10
    numbers = [run.log.step(event).step for event in told]
    assert [step.step for step in numbers if step] == [2, 1, 2, 1] * 10
    assert run.log.step("ACT_PROGRESS", step=2).step.step == 2  # type: ignore[union-attr]
    with pytest.raises(InvalidInput):
        run.log.step("ACT_PROGRESS", step=3)
    assert run.log.step("ACT_DONE").step.step == 2  # type: ignore[union-attr]
    assert run.log.step("ACT_PROGRESS").step.step == 2  # type: ignore[union-attr]
    tell(run, "PLAN_DONE")
    assert run.log.step("ACT_PROGRESS").step.step == 3  # type: ignore[union-attr]


def test_much_told_of_one_phase_is_not_read_again_each_time(mem: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    from muniment.runs import steps

    read: list[str] = []
    entry_of_row = steps.entry_of_row
    run = mem.run(user_id="ana")
    tell(run, "PLAN_DONE", *["ACT_PROGRESS"] * 100)
    monkeypatch.setattr(steps, "entry_of_row", lambda *given: read.append("row") or entry_of_row(*given))
    run.log.step("ACT_PROGRESS")
    assert len(read) < 20


@for_each(
    ("event", "step"),
    [
        ("PLAN_DONE", 3),
        ("PLAN_DONE", 0),
        ("PLAN_DONE", -1),
        ("PLAN_DONE", True),
        ("PLAN_DONE", 1.5),
        ("PLAN_DONE", "2"),
    ],
)
def test_numbers_out_of_order_are_refused(mem: Memory, counts: Counts, event: str, step: Any) -> None:
    run = mem.run(user_id="ana")
    tell(run, *STEP)
    before = counts(mem)
    with pytest.raises(InvalidInput) as caught:
        run.log.step(event, step=step)
    assert caught.value.path == "$.step"
    assert counts(mem) == before


def test_a_phase_that_is_past_cannot_be_told_of_the_same_step(mem: Memory, counts: Counts) -> None:
    run = mem.run(user_id="ana")
    tell(run, "PLAN_DONE", "ACT_DONE")
    before = counts(mem)
    with pytest.raises(InvalidInput, match="PLAN comes before ACT") as caught:
        run.log.step("PLAN_DONE", step=1)
    assert (caught.value.path, caught.value.hint) == ("$.event", "it begins step 2")
    assert counts(mem) == before


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_many_threads_step_one_run(make: Maker, engine: str) -> None:
    mem = make(engine)
    run = mem.run(user_id="ana", run_id="r")
    run.observe("user", "begin")
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(8):
                run.log.step("ACT_DONE", action={"tool": "t"})
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    told = [entry.step for entry in run.ledger.entries() if entry.step is not None]
    assert [step.step for step in told if step] == list(range(1, 33))
    log = run.log.read()
    assert (log.spent.steps, log.loops) == (32, 1)
    taken = sequences(mem, run)
    assert taken == list(range(1, len(taken) + 1))
    assert len(taken) >= 2
    assert mem.resume("r").log == log
    assert mem.verify().ok


# -- windows ------------------------------------------------------------------------------------------


@pytest.mark.req("CS-04")
def test_a_window_says_what_was_selected_and_excluded(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana")
    said = run.observe("user", "The capital of France is Paris.")
    build = run.compose("responder", query="What is the capital of France?")
    told = run.log.step(
        "COMPILE_DONE", builds=[build], context={"selected": [said.id], "excluded": [{"id": "x", "reason": "stale"}]}
    )
    manifest = told.step.manifest  # type: ignore[union-attr]
    assert manifest is not None
    assert (manifest.manifest_id, manifest.builds) == (told.id, (build.id,))
    assert said.id in manifest.selected
    assert ("x", "stale") in [(each.id, each.reason) for each in manifest.excluded]
    assert build.id in manifest.filters
    assert run.log.step("COMPILE_DONE", builds=[build.id]).step.manifest.builds == (build.id,)  # type: ignore[union-attr]
    snapshot = run.log.compact()
    assert snapshot is not None
    assert snapshot.latest_context_manifest_ids[0] == told.id
    assert said.id in snapshot.state.source_coverage.chunk_ids_seen
    assert snapshot.state.source_coverage.chunk_ids_cited == ()


@pytest.mark.req("CS-04", "MP-08")
def test_a_window_holds_what_was_inherited(any_mem: Memory) -> None:
    """A fact of the tenant rests on what somebody else said: a build cites it, and may go on record."""
    bob = any_mem.run(user_id="bob", grants=("tenant",))
    said = bob.observe("user", "The office is in Hamburg.")
    bob.remember("company.city", "Hamburg", sources=[said.id], scope_level="tenant")
    run = any_mem.run(user_id="ana")
    run.observe("user", "Where is the office?")
    build = run.compose("planner", query="company city")
    assert said.id in [citation.id for citation in build.packet.citations]
    for given in (build, build.id):
        assert said.id in run.log.step("COMPILE_DONE", builds=[given]).step.manifest.selected  # type: ignore[union-attr]
    run.log.compact()
    assert any_mem.log.check_snapshot(run.run_id).status == "PASS"


def test_only_the_latest_windows_and_chunks_are_listed_and_everything_cited(make: Maker) -> None:
    mem = make("memory", policy={"compaction": {"auto": False, "seen_max": 4, "manifests_max": 3}})
    run = mem.run(user_id="ana")
    ids = [run.observe("user", f"turn {n}").id for n in range(12)]
    run.log.claim("turn zero was told", evidence=[ids[0]], status="verified")
    for number, id_ in enumerate(ids):
        run.log.step("COMPILE_DONE", context={"selected": [id_]})
        if number == 6:
            run.log.compact()
    coverage = run.log.read().coverage
    assert coverage.chunk_ids_seen == (ids[0], *ids[-4:])
    assert coverage.chunk_ids_cited == (ids[0],)
    assert len(run.log.read().manifest_ids) == 3
    assert mem.resume(run.run_id).log == run.log.read()


# -- bad input ----------------------------------------------------------------------------------------


@for_each(
    "event",
    [
        "PLAN_DNE", "PLAN_DON", "ACT_DOEN", "OBSERVE_DONNE", "PLN_DONE", "plan_done", "PLAN", "PLAN_", "DONE", "",
        "PLAN DONE", "PLAN_DONE ", "PLAN_DONE\n", "PLAN_D0NE", "LOOK_DONE", None, 3, ["PLAN_DONE"], b"PLAN_DONE",
    ],
)  # fmt: skip
def test_a_misspelt_event_is_refused(mem: Memory, counts: Counts, event: Any) -> None:
    """It would count for nothing, and the run would never be compacted."""
    run = mem.run(user_id="ana")
    before = counts(mem)
    with pytest.raises(InvalidInput) as caught:
        run.log.step(event)
    assert caught.value.path == "$.event"
    assert caught.value.hint
    assert counts(mem) == before


@for_each(
    ("kwargs", "path"),
    [
        ({"tokens": -1}, "$.tokens"),
        ({"tokens": 1.5}, "$.tokens"),
        ({"tokens": True}, "$.tokens"),
        ({"action": ["search"]}, "$.action"),
        ({"action": {"at": float("nan")}}, "$.action.at"),
        ({"action": {"at": {1, 2}}}, "$.action.at"),
        ({"metadata": "words"}, "$.metadata"),
        ({"content": 3}, "$.content"),
        ({"content": None}, "$.content"),
        ({"content": "\ud800"}, "$.content"),
        ({"ts": "soon"}, "$.ts"),
        ({"ts": 12}, "$.ts"),
        ({"builds": "bld_1"}, "$.builds"),
        ({"builds": None}, "$.builds"),
        ({"builds": [3]}, "$.builds[0]"),
        ({"builds": ["bld_none"]}, "$.builds[0]"),
        ({"context": ["evt"]}, "$.context"),
        ({"context": {"chosen": []}}, "$.context"),
        ({"context": {"selected": "evt"}}, "$.context.selected"),
        ({"context": {"excluded": [{"id": "x"}]}}, "$.context.excluded[0].reason"),
        ({"context": {"tokens": -1}}, "$.context.tokens"),
        ({"context": {"selected": ["evt_none"]}}, "$.context.selected"),
    ],
)
def test_what_does_not_fit_is_refused(mem: Memory, counts: Counts, kwargs: dict[str, Any], path: str) -> None:
    run = mem.run(user_id="ana")
    run.observe("user", "begin")
    before = counts(mem)
    given = {"event": "COMPILE_DONE", "content": "words"} | kwargs
    with pytest.raises(MunimentError) as caught:
        run.log.step(**given)
    assert (caught.value.path or "").startswith(path)
    assert counts(mem) == before


def test_a_window_goes_with_compile_alone(mem: Memory, counts: Counts) -> None:
    run = mem.run(user_id="ana")
    before = counts(mem)
    with pytest.raises(InvalidInput, match="COMPILE_DONE"):
        run.log.step("PLAN_DONE", context={"selected": []})
    assert counts(mem) == before


@pytest.mark.req("LG-02")
def test_a_window_holds_nothing_of_another_user(any_mem: Memory, counts: Counts) -> None:
    bob = any_mem.run(user_id="bob")
    secret = bob.observe("user", "My secret is here.")
    build = bob.compose("responder", query="secret")
    run = any_mem.run(user_id="ana")
    run.observe("user", "begin")
    before = counts(any_mem)
    for kwargs in ({"context": {"selected": [secret.id]}}, {"builds": [build]}, {"builds": [build.id]}):
        with pytest.raises(NotFound):
            run.log.step("COMPILE_DONE", **kwargs)  # type: ignore[arg-type]
    assert counts(any_mem) == before


@pytest.mark.req("LG-10")
def test_secrets_in_windows_are_redacted(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    said = run.observe("user", "begin")
    context = {
        "selected": [said.id],
        "excluded": [{"id": "x", "reason": "password=hunter2222"}],
        "filters": {"api_key": "hunter2222", "k": 8},
    }
    manifest = run.log.step("COMPILE_DONE", context=context).step.manifest  # type: ignore[union-attr]
    assert manifest is not None
    assert "hunter2222" not in repr(manifest)
    assert (manifest.selected, manifest.filters["k"], manifest.excluded[0].id) == ((said.id,), 8, "x")


def test_secrets_in_steps_are_redacted_and_times_are_read(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    told = run.log.step(
        "ACT_DONE",
        "password=hunter2222",
        action={"tool": "login", "args": {"password": "hunter2222"}},
        ts=datetime(2026, 1, 1, tzinfo=UTC),
    )
    assert "hunter2222" not in repr(told)
    assert told.ts.startswith("2026-01-01T00:00:00")


def test_a_run_that_has_ended_takes_no_step(mem: Memory, counts: Counts) -> None:
    run = mem.run(user_id="ana")
    run.log.step("PLAN_DONE")
    run.finish()
    before = counts(mem)
    with pytest.raises(RunFinished):
        run.log.step("ACT_DONE")
    assert counts(mem) == before


@pytest.mark.req("CS-13")
def test_three_equal_actions_in_a_row_are_a_loop(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    for query in (1, 1, 2, 1, 1, 1, 1, 2):
        run.log.step("ACT_DONE", action={"tool": "search", "args": {"q": query}})
    assert run.log.read().loops == 1
    for _ in range(3):
        run.log.step("ACT_DONE")  # says nothing of what was done
    assert run.log.read().loops == 1
