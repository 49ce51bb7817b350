"""`learn lessons`, `learn lesson show | sign | drop`: what runs taught, what came of it, and a person's word on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from muniment.surfaces.cli.calling import Call, Command
from muniment.surfaces.cli.commands.banks import whose
from muniment.surfaces.cli.parameters import Word
from muniment.surfaces.cli.terminal import Cell, coloured, counted, one_line, strong, table, when

if TYPE_CHECKING:
    from muniment.learning.records import Lesson, LessonDecision, LessonEffect, LessonRun, LessonStory, Tally

__all__ = ["drop", "list_", "show", "sign"]

STAGES = {"candidate": "bright_black", "trial": "yellow", "active": "green", "suspended": "magenta", "retired": "red"}
_RUNS_SHOWN = 20
_LESSON = {"lesson_id": "LESSON"}


# -- for the eye --------------------------------------------------------------------------------------


def _tally_text(tally: Tally) -> str:
    return f"{tally.passes} of {tally.n}" if tally.n else "–"


def _difference(effect: LessonEffect) -> str:
    """`+42 points (+8 to +66)`; a dash while there is nothing to compare."""
    if effect.difference is None or effect.low is None or effect.high is None:
        return "–"
    return f"{100 * effect.difference:+.0f} points ({100 * effect.low:+.0f} to {100 * effect.high:+.0f})"


def _stage(lesson: Lesson) -> str:
    return f"{lesson.stage}, signed" if lesson.signed else lesson.stage


def _row(lesson: Lesson) -> list[Cell]:
    effect = lesson.effect
    return [
        lesson.lesson_id,
        (_stage(lesson), STAGES[lesson.stage]),
        _tally_text(effect.had),
        _tally_text(effect.held_out),
        _difference(effect),
        f"{lesson.text}  When: {lesson.when.words}.",
    ]


def _show_lessons(call: Call) -> Iterator[str]:
    if call.answer:
        heads = ("lesson", "stage", "passed with", "without", "difference", "says")
        yield from table(heads, [_row(each) for each in call.answer])
    else:
        asked = f"{call.typed['stage']} " if call.typed.get("stage") else ""
        yield f"no {asked}lessons in {whose(call.handle)}; --user and --agent name another"


list_ = Command(
    "bank.lessons",
    _show_lessons,
    document="lessons",
    words={"stage": Word("Only of this stage: candidate, trial, active, suspended, retired.")},
    about="With and without are runs that the lesson fitted: some are left without it, so that its effect stays known. "
    "The retired are listed when they are asked for.",
)


# -- one lesson ---------------------------------------------------------------------------------------


def _show_story(call: Call) -> Iterator[str]:
    lesson: LessonStory = call.answer
    stage = coloured(lesson.stage, STAGES)
    signed = ", signed" if lesson.signed else ""
    yield f"{strong(lesson.lesson_id)}  {stage}{signed} since {when(lesson.since)}, in {whose(call.handle)}"
    yield one_line(lesson.text, 1_000)
    for label, text in _parts(lesson):
        yield f"{label + ':':<12} {one_line(text, 400)}"
    yield from _history(lesson)
    yield from _runs(lesson)


def _parts(lesson: LessonStory) -> Iterator[tuple[str, str]]:
    yield "when", lesson.when.words
    yield "why", lesson.why
    effect = lesson.effect
    yield "passed", f"{_tally_text(effect.had)} with it, {_tally_text(effect.held_out)} without"
    if effect.difference is not None:
        yield "difference", _difference(effect)
    if effect.guess is not None:
        guess = effect.guess
        yield "learnt from", f"runs that passed {_tally_text(guess.had)} with it, {_tally_text(guess.without)} without"
    if lesson.cost is not None:
        without = f", {lesson.cost_without:g} without" if lesson.cost_without is not None else ""
        yield "cost", f"{lesson.cost:g} a run with it{without}"
    yield "origin", lesson.origin
    yield "kept as", lesson.kind
    if lesson.evidence.event_ids:
        yield "cites", ", ".join(lesson.evidence.event_ids)
    if lesson.learnt_from:
        yield "runs", ", ".join(each.run_id or each.trace_id for each in lesson.learnt_from)


def _history(lesson: LessonStory) -> Iterator[str]:
    rows: list[list[Cell]] = [
        [when(each.at), (each.stage, STAGES[each.stage]), each.plan_id or "–", each.why] for each in lesson.history
    ]
    yield ""
    yield from table(("at", "stage", "plan", "why"), rows)


def _runs(lesson: LessonStory) -> Iterator[str]:
    if not lesson.runs:
        return
    shown = lesson.runs[:_RUNS_SHOWN]
    more = f", the newest {len(shown)}" if len(shown) < len(lesson.runs) else ""
    yield ""
    yield strong(f"{counted(len(lesson.runs), 'run')} that it fitted{more}")
    yield from table(("at", "run", "had it", "ended", "cost"), [_run_row(each) for each in shown])


def _run_row(run: LessonRun) -> list[Cell]:
    ended: Cell = ("passed", "green") if run.passed else ("failed", "red")
    return [when(run.at), run.run_id or run.trace_id, "yes" if run.arm == "had" else "left out", ended, f"{run.cost:g}"]


show = Command(
    "bank.lesson",
    _show_story,
    arguments=_LESSON,
    calls=("memory.bank_of",),
    about="Found in whichever bank, unless one is named.",
)


# -- a person's word ----------------------------------------------------------------------------------


def _show_decision(call: Call) -> Iterator[str]:
    decision: LessonDecision = call.answer
    lesson = decision.lesson
    stage = coloured(lesson.stage, STAGES)
    if decision.plan_id is None and decision.report_id is None:
        yield f"{strong(lesson.lesson_id)}  {stage}: it was so already, and nothing has changed"
        return
    yield f"{strong(lesson.lesson_id)}  {stage}: {one_line(lesson.why, 300)}"
    yield one_line(lesson.text, 400)
    if decision.plan_id is not None:
        yield f"to take it back: {call.spelled('learn', 'undo', decision.plan_id)}"
    if decision.report_id is not None:
        yield f"the rulebook's report is {decision.report_id}; `muniment rules rollback` takes it back"


sign = Command(
    "bank.sign_lesson",
    _show_decision,
    arguments=_LESSON,
    calls=("memory.bank_of",),
    about="A lesson that is kept as a rule alone is promoted, where its rulebook has seen enough of it.",
)
drop = Command("bank.drop_lesson", _show_decision, arguments=_LESSON, calls=("memory.bank_of",))
