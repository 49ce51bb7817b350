"""`eval` and `eval init`: measure a memory on questions with known answers or evidence; for people and for CI."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import click

from muniment.errors import Conflict, InvalidInput, MunimentError
from muniment.surfaces.cli._command import Call, Command, OptionSpec, UnreadableInput
from muniment.surfaces.cli._reading import model_address, policy_given, read_documents, read_one, write_bytes
from muniment.surfaces.cli.terminal import Cell, counted, one_line, progress_bar, strong, style, table
from muniment.surfaces.settings import Settings, open_store
from muniment.verify.evals.report import K

if TYPE_CHECKING:
    from muniment.core.outside.http import ChatModel
    from muniment.handles.memory import Memory
    from muniment.verify.evals.measures import Miss
    from muniment.verify.evals.questions import KnownValue
    from muniment.verify.evals.report import ArmSummary, Asked, BaselineDiff, Difference, EvalReport, Least

__all__ = ["difference_words", "init", "miss_words", "questions"]

_SHOWN_MAX = 20
"""The number of missed questions shown; the page and the JSON list all."""
_QUOTE_CHARS = 100
_LEAST_HINT = "such as --min recall=.8, or --min 'packet 1024:recall=.9'"


# -- arguments ----------------------------------------------------------------------------------------


def _least_given(given: Sequence[str]) -> list[Least]:
    """Read `recall=.8`, or `packet 1024:recall=.8` for an arm other than the first."""
    from muniment.verify.evals.measures import MEASURES
    from muniment.verify.evals.report import Least

    read = []
    for each in given:
        named, sign, number = each.rpartition("=")
        arm, _, measure = (named if sign else each).rpartition(":")
        try:
            share = float(number)
        except ValueError:
            share = -1.0
        if measure not in MEASURES:
            raise InvalidInput(
                f"{measure or each!r:.80} is not a measure", path="$.min", hint=f"one of {', '.join(MEASURES)}"
            )
        if not 0 <= share <= 1:
            raise InvalidInput(f"{each!r:.80} names no share from 0 to 1", path="$.min", hint=_LEAST_HINT)
        read.append(Least(measure, share, arm or None))
    return read


def _policies_given(given: Sequence[str]) -> dict[str, Any]:
    """Read policies by the names of their files."""
    found: dict[str, Any] = {}
    for name in given:
        stem = Path(name).stem
        if stem in found:
            raise InvalidInput(f"two policies are called {stem!r:.80}", path="$.policy", hint="rename one of the files")
        found[stem] = policy_given(name)
    return found


def _model_given(address: str) -> ChatModel:
    """Read `URL#NAME`; a required key comes from the environment."""
    from muniment.core.outside.http import ChatModel

    base_url, name, key = model_address(address)
    return ChatModel(base_url, name, api_key=key)


# -- running ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Result:
    """A report, and whether it passes."""

    report: EvalReport
    least: list[tuple[Least, str | None]]
    since: BaselineDiff | None
    baseline: str
    files: tuple[str, ...]

    @property
    def problems(self) -> list[str]:
        """The reasons the run fails."""
        fell = [
            f"{each.measure} of {each.arm} fell from {each.before:.3f} to {each.after:.3f}"
            for each in (self.since.worse if self.since else ())
        ]
        return [*(problem for _, problem in self.least if problem), *fell]

    @property
    def is_good(self) -> bool:
        return not self.problems and not self.report.broken


def _ask(
    call: Call,
    questions: Annotated[str, OptionSpec(metavar="QUESTIONS")],
    *,
    data: Annotated[tuple[str, ...], OptionSpec("Ask of these conversations and no store.", metavar="FILE")] = (),
    budgets: Annotated[tuple[int, ...], OptionSpec("Tokens of a packet; the first is compared.", "budget", "N")] = (
        512,
        1024,
    ),
    purposes: Annotated[
        tuple[Literal["responder", "planner", "tool"], ...],
        OptionSpec("What packets are for (default: responder).", "purpose", "NAME"),
    ] = ("responder",),
    policies: Annotated[
        dict[str, Any] | None,
        OptionSpec("Also with this policy: TOML, or JSON.", "policy", "FILE", click.STRING, _policies_given, many=True),
    ] = None,
    k: Annotated[int, OptionSpec("How many a search gives.", metavar="N", type=click.INT)] = K,
    no_reference: Annotated[bool, OptionSpec("Without the comparison with plain BM25.")] = False,
    model: Annotated[
        Any,
        OptionSpec(
            "Have a model answer: a server of OpenAI's kind.", metavar="URL#NAME", type=click.STRING, read=_model_given
        ),
    ] = None,
    cite: Annotated[bool, OptionSpec("Remind the model to cite.")] = False,
    least: Annotated[
        Any, OptionSpec("Fail below this share.", "min", "MEASURE=SHARE", click.STRING, _least_given, many=True)
    ] = None,
    baseline: Annotated[str | None, OptionSpec("Fail where it is worse than this report.", metavar="FILE")] = None,
    save: Annotated[str | None, OptionSpec("Write the report as JSON.", metavar="FILE")] = None,
    junit: Annotated[str | None, OptionSpec("Write JUnit XML.", metavar="FILE")] = None,
    html: Annotated[str | None, OptionSpec("Write a page.", metavar="FILE")] = None,
) -> _Result:
    from muniment.verify.evals.questions import read_questions
    from muniment.verify.evals.report import check_least, compare, read_baseline

    if cite and model is None:
        raise InvalidInput("nobody is asked to cite", path="$.cite", hint="give --model too")
    wanted = {"save": save, "junit": junit, "html": html}
    _refuse_overwriting(wanted, [questions, call.settings.db, *data], baseline)
    try:
        asked = read_questions(_placed(questions))
        kept = None if baseline is None else read_one(baseline, "$.baseline", "what --save wrote")
        before = None if baseline is None else read_baseline(kept, baseline)
    except MunimentError as error:  # an unreadable file is not a result
        raise UnreadableInput(error) from None
    with _memory(call, data) as mem, progress_bar("asking", len(asked), quiet=call.as_json) as advance:
        report = mem.store.evaluate(
            asked,
            budgets=budgets,
            purposes=purposes,
            policies=policies,
            k=k,
            reference=not no_reference,
            model=model,
            model_name=None if model is None else model.name,
            cite=cite,
            user_id=call.settings.user or None,
            agent_id=call.settings.agent,
            tenant_id=call.tenant,
            name=Path(questions).name if questions != "-" else "stdin",
            progress=advance,
        )
    reached = check_least(report, least or ())
    since = None if before is None else compare(report, before)
    result = _Result(report, reached, since, baseline or "", tuple(name for name in wanted.values() if name))
    _write(result, wanted)
    return result


def _refuse_overwriting(wanted: Mapping[str, str | None], read: Sequence[str], baseline: str | None) -> None:
    """Refuse to overwrite any input, or one report with another; the baseline may be replaced by this run."""
    taken = {os.path.realpath(name): name for name in read}
    if baseline is not None and wanted["save"] != baseline:
        taken[os.path.realpath(baseline)] = baseline
    for option, name in wanted.items():
        if name is None:
            continue
        place = os.path.realpath(name)
        if place in taken:
            raise InvalidInput(
                f"--{option} would overwrite {taken[place]}", path=f"$.{option}", hint="name another file"
            )
        taken[place] = name


def _placed(name: str) -> Iterator[Any]:
    from muniment.verify.evals.questions import Placed

    for document in read_documents(name):
        where = f"{name}:{document.line}"
        if document.error is not None:
            document.error.message = f"{where}: {document.error.message}"
            raise document.error
        yield Placed(where, document.data)


@contextmanager
def _memory(call: Call, data: Sequence[str]) -> Iterator[Memory]:
    """Open the store read-only, or a temporary one filled from these files."""
    if not data:
        try:
            opened = open_store(call.settings, must_exist=True, read_only=True)
        except MunimentError as error:  # nor is a store
            raise UnreadableInput(error) from None
        with opened as mem:
            yield mem
        return
    if "db" in call.typed:
        raise InvalidInput("--data and --db are two memories", path="$.data", hint="give one of them")
    from muniment.surfaces.cli.ingest import ingested

    settings = call.settings
    with ingested(data, settings, lambda: _throw_away(settings), quiet=call.as_json) as (mem, _):
        yield mem


def _throw_away(settings: Settings) -> Memory:
    """An in-memory store with reproducible ids and times."""
    from muniment.core.outside.system import CountingIds, TickingClock
    from muniment.handles.memory import open as open_memory

    return open_memory(
        ":memory:",
        clock=TickingClock(),
        ids=CountingIds("eval"),
        policy=settings.policy or None,
        embedder=settings.embedder,
        tokens=settings.tokens,
        timezone=None if settings.timezone == "none" else settings.timezone,
    )


# -- showing ------------------------------------------------------------------------------------------


def _write(result: _Result, wanted: dict[str, str | None]) -> None:
    """Write the requested files."""
    from muniment.surfaces.cli.eval_page import eval_page
    from muniment.verify.evals.report import junit_cases

    report = result.report
    if wanted["save"] is not None:
        write_bytes(wanted["save"], report.to_json(), "$.save")
    if wanted["junit"] is not None:
        cases = list(junit_cases(report, result.least, result.since, _missed_words(report)))
        write_bytes(wanted["junit"], report.to_junit(cases), "$.junit")
    if wanted["html"] is not None:
        write_bytes(wanted["html"], eval_page(report, result.problems, result.since, result.baseline), "$.html")


def _show(call: Call) -> Iterator[str]:
    result: _Result = call.answer
    yield from _report_lines(result.report)
    if result.since is not None:
        yield from _baseline_lines(result.since, result.baseline)
    if result.problems:
        yield ""
        yield from (style(f"not good enough: {each}", fg="red") for each in result.problems)
    if result.files:
        yield ""
        yield f"written: {', '.join(result.files)}"


def _document(call: Call) -> dict[str, Any]:
    result: _Result = call.answer
    document = result.report.to_dict() | {"ok": result.is_good, "problems": result.problems}
    if result.since is not None:
        since = result.since
        document["since"] = {
            "moved": [each._asdict() for each in since.moved],
            "flips": [each._asdict() for each in since.flips],
            "same": since.same,
            "added": list(since.added),
            "changed": list(since.changed),
            "gone": list(since.gone),
        }
    return document


questions = Command(
    "",
    _show,
    function=_ask,
    on="user settings",
    document=_document,
    holds=lambda result: result.is_good,
    about="QUESTIONS are JSON lines, or a JSON list: `question` and `answers`, `evidence`, `not_told`, or "
    "`answerable`: false. Nothing is written to the store. Exit code 1 where it is not good enough or one cannot be "
    "asked, 2 where something cannot be read.",
)


# -- a report in words --------------------------------------------------------------------------------


def miss_words(miss: Miss) -> str:
    """A deviation from the expected result, with its known causes."""
    said = f"“{one_line(miss.text or miss.said, _QUOTE_CHARS)}”{f' ({one_line(miss.said)})' if miss.text else ''}"
    match miss.what:
        case "missing":
            return f"missing {said}{_why_missing(miss)}"
        case "cut":
            return f"missing {said}: its turn is there, these words were cut"
        case "untold":
            return f"no answer stands in it: {said}"
        case "stale":
            return f"outdated, above the evidence: {said}"
        case "told":
            return f"told what must not be: {said}"
        case "not_recognised":
            return "memory holds no answer, and that was not recognised"
        case "refused":
            return "memory was said to hold no answer"


def _why_missing(miss: Miss) -> str:
    from muniment.surfaces.cli.explained import REASONS

    reason = f": {REASONS.get(miss.because, miss.because)}" if miss.because else ""
    if miss.rank is None:
        return reason
    where = f"a search has it at {miss.rank}" if miss.rank else "a search does not have it among its first hundred"
    return f"{reason}{'; ' if reason else ': '}{where}"


def _missed_words(report: EvalReport) -> dict[str, str]:
    """The misses of each question with the first arm, by its id."""
    return {each.question.name: "; ".join(map(miss_words, row.misses)) for each, row in report.scored(report.main)}


def difference_words(each: Difference, main: str) -> str:
    more = "more" if each.difference > 0 else "less"
    interval = f"{each.lower:+.3f} to {each.upper:+.3f} on {counted(each.questions, 'question')}"
    return f"{each.arm} has {abs(each.difference):.3f} {more} {each.measure} than {main} ({interval})"


# -- the report ---------------------------------------------------------------------------------------


def _report_lines(report: EvalReport) -> Iterator[str]:
    """The table, the significant differences, and the misses of the first arm."""
    yield f"{strong(report.name)}: {counted(len(report.asked), 'question')}{_model_words(report)}"
    yield ""
    measures = report.measures()
    rows = [_arm_row(summary, measures) for summary in report.summaries.values()]
    yield from table(["arm", "passed", *measures, "tokens", "ms"], rows)
    sure = [each for each in report.differences if each.is_sure]
    if sure:
        yield ""
        yield strong("surely different (95 %, paired)")
        yield from (f"  {difference_words(each, report.main)}" for each in sure)
    yield from _broken_lines(report)
    yield from _missed_lines(report)


def _model_words(report: EvalReport) -> str:
    return f", answered by {report.model}" if report.model else ""


def _arm_row(summary: ArmSummary, measures: tuple[str, ...]) -> list[Cell]:
    means = [f"{summary.means[name].mean:.3f}" if name in summary.means else "·" for name in measures]
    all_passed = summary.passed == summary.judged
    passed = f"{summary.passed}/{summary.judged}" if summary.judged else "·"
    cells: list[Cell] = [summary.arm.name, (passed, "green" if all_passed else "yellow"), *means]
    return [*cells, f"{summary.tokens_mean:.0f}", f"{summary.median_ms:.1f}"]


def _broken_lines(report: EvalReport) -> Iterator[str]:
    if not report.broken:
        return
    yield ""
    yield strong(f"cannot be asked: {len(report.broken)}")
    for each in report.broken:
        yield f"  {_question_line(each)}"
        yield from (style(f"      {one_line(said, 200)}", fg="red") for said in each.broken)


def _missed_lines(report: EvalReport) -> Iterator[str]:
    missed = [(each, row) for each, row in report.scored(report.main) if row.passed is False]
    yield ""
    if not missed:
        yield f"nothing was missed with {report.main}"
        return
    yield strong(f"missed with {report.main}: {len(missed)}")
    for each, row in missed[:_SHOWN_MAX]:
        yield f"  {_question_line(each)}"
        yield from (f"      {miss_words(miss)}" for miss in row.misses)
    if len(missed) > _SHOWN_MAX:
        yield f"  and {len(missed) - _SHOWN_MAX} more; --html and --json have all"


def _question_line(each: Asked) -> str:
    return f"{each.question.name}  {each.user_id}: {one_line(each.question.question)}"


# -- comparison with a baseline -----------------------------------------------------------------------


def _baseline_lines(since: BaselineDiff, name: str) -> Iterator[str]:
    """The changes since the baseline run."""
    counts: Mapping[str, int] = {"new": len(since.added), "changed": len(since.changed), "gone": len(since.gone)}
    others = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    yield ""
    yield f"{strong(f'since {name}')}: {counted(since.same, 'question')} the same{f', {others}' if others else ''}"
    for moved in since.moved:
        verdict = style("worse", fg="red") if moved.is_worse else "better" if moved.after > moved.before else "less"
        yield f"  {verdict}: {moved.measure} of {moved.arm} {moved.before:.3f} → {moved.after:.3f}"
    for flip in since.flips:
        verdict = "passes, and did not" if flip.passed else style("passed, and does not", fg="red")
        yield f"  {verdict}: {flip.question_id} with {flip.arm}: {one_line(flip.question, 80)}"
    if not since.moved and not since.flips:
        yield "  nothing is otherwise"


# -- starter file -------------------------------------------------------------------------------------


class _Written(NamedTuple):
    file: str
    questions: int
    users: int


def _init(call: Call, out: Annotated[str, OptionSpec(metavar="QUESTIONS")]) -> _Written:
    from muniment.core.canonical import canonical_bytes
    from muniment.verify.evals.questions import first_questions

    if Path(out).exists():
        raise Conflict(f"{out} is there already", hint="name another file")
    only = call.typed.get("user_id")
    users = [each.user_id for each in call.memory.store.users(tenant_id=call.tenant)]
    known = {user: _known(call, user) for user in users}
    found = [each for each in first_questions(known) if only is None or each["user_id"] == only]
    if not found:
        raise InvalidInput(
            "there are no facts to ask about",
            path="$.db",
            hint="`muniment memory extract` proposes some from messages; or write the file by hand",
        )
    write_bytes(out, b"".join(canonical_bytes(each) + b"\n" for each in found), "$.out")
    return _Written(out, len(found), len({each["user_id"] for each in found}))


def _known(call: Call, user: str) -> list[KnownValue]:
    """A user's current and past values, from facts based on events; and undecided proposals."""
    from muniment.verify.evals.questions import KnownValue

    run = call.memory.run(
        user_id=user, agent_id=call.settings.agent, session_id="eval", run_id="eval", tenant_id=call.tenant
    )
    facts = [
        KnownValue(fact.fact_key, fact.value, tuple(fact.sources), fact.status == "active")
        for fact in run.facts(include_all=True)
    ]
    keys = {each.key for each in facts}
    proposed = [
        KnownValue(each.key, each.value, tuple(each.sources), True)
        for each in run.memory.candidates("proposed")
        if each.key not in keys
    ]
    return [*facts, *proposed]


def _show_written(call: Call) -> Iterator[str]:
    written: _Written = call.answer
    yield f"{written.file}: {counted(written.questions, 'question')} about {counted(written.users, 'user')}"
    yield "A start: made from keys and values, not from how people ask. Reword each, check those marked answerable:"
    yield f"false, add what matters to you, then: {call.spell_command('eval', written.file)}"


init = Command(
    "",
    _show_written,
    function=_init,
    on="call",
    options={"user_id": OptionSpec("Of one user (default: of all).", "user", "ID")},
    about="From facts, and from what was proposed as one: a question for each value with its evidence, with older "
    "values as outdated, and for values of other speakers one that nothing answers. Edit them: a key is not how people "
    "ask.",
)
