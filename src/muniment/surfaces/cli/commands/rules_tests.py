"""`rules submit | add | tests | gate | replay | advance`: a rule on its way to a trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import click

from muniment.errors import InvalidInput
from muniment.handles.rulebook import Rulebook
from muniment.surfaces.cli.calling import Call, Command, wire
from muniment.surfaces.cli.commands.rules_lines import (
    CLAIMS,
    RULE,
    STAGES,
    check_lines,
    finding_lines,
    next_command,
    place_text,
    whose_book,
)
from muniment.surfaces.cli.parameters import Word
from muniment.surfaces.cli.reading import constraints_given, is_file, object_given, text_given
from muniment.surfaces.cli.terminal import (
    Cell,
    as_is,
    bar,
    coloured,
    counted,
    labelled,
    one_line,
    said,
    strong,
    table,
    when,
)

if TYPE_CHECKING:
    from muniment.contracts.rules import RegressionTestSpec
    from muniment.core.scope import RuleType
    from muniment.learning.stored_memory import StoredMemory
    from muniment.rules._records import AdvancedRule, AdvanceReport, GateReport, ReplayReport
    from muniment.rules.rulebook import RuleTest, Submitted
    from muniment.verify.constraint_files import ConstraintSet

__all__ = ["add", "advance", "gate", "replay", "submit", "tests"]

_FATES = {"new": "a rule of its own", "merged": "merged into what says the same", "split": "an exception to another"}
_PASSED = {"passed": "green", "not passed": "red"}


def _next_lines(call: Call, memory: StoredMemory) -> Iterator[str]:
    following = next_command(call, memory)
    if following is not None:
        yield as_is("next", following)


# -- submit and add -----------------------------------------------------------------------------------


def _draft_given(given: str) -> Any:
    """The draft of a file, or the id of one."""
    return object_given("$.draft", "one DistillDraft")(given) if is_file(given) else given


def _show_submitted(call: Call) -> Iterator[str]:
    made: Submitted = call.answer
    yield f"{strong(made.id)}  {_FATES.get(made.kind, made.kind)}"
    yield from said(str(made.rule.record.get("body")))
    yield from labelled("in", whose_book(call.handle))
    yield from labelled("applies", place_text(made.rule.record))
    yield from labelled("because", "; ".join(made.reasons))
    for each in made.narrowed:
        yield from labelled("narrows", f"{each}, once this one is promoted")
    if made.lint:
        yield from finding_lines(made.lint)
    yield from _next_lines(call, made.rule)


def _may_be_first(call: Call) -> bool:
    """A draft by its id is of a store that is there; one in a file may be the first thing in a new one."""
    return not isinstance(call.typed["draft"], str)


submit = Command(
    "rulebook.submit",
    _show_submitted,
    on="rulebook or file",
    arguments={"draft": "DRAFT|FILE"},
    creates=_may_be_first,
    words={"draft": Word(read=_draft_given)},
    about="A draft by its id, or the DistillDraft in FILE (`-` is stdin); nobody obeys the rule yet. It is merged with "
    "what says the same, or made an exception of what it contradicts. `muniment learn bank drafts` has ids.",
)


def _add(
    book: Rulebook,
    body: Annotated[str, Word(read=text_given)],
    *,
    title: Annotated[str | None, Word("What to call it.", metavar="TEXT")] = None,
    type_: Annotated[RuleType, Word("What to do, or what must not happen.", "type")] = "StrategyRule",
    domain: Annotated[str | None, Word("Only in this domain.", metavar="NAME")] = None,
    family: Annotated[str | None, Word("Only for this family of tasks.", metavar="NAME")] = None,
    buckets: Annotated[tuple[str, ...], Word("Only in this bucket; repeatable.", "bucket", metavar="KEY")] = (),
    predicates: Annotated[tuple[str, ...], Word("Only if this holds; repeatable.", "if", metavar="PREDICATE")] = (),
    ttl: Annotated[
        str | None, Word("How long, such as hours:6 or days:14 (default: the policy's, 30 days).", metavar="TTL")
    ] = None,
) -> StoredMemory:
    named = {
        "domain_tag": domain,
        "task_family": family,
        "bucket_keys": list(buckets) or None,
        "predicates": list(predicates) or None,
    }
    place = {name: value for name, value in named.items() if value is not None}
    return book.add(body.strip(), title=title, type=type_, applicability=place or None, ttl=ttl)


def _show_added(call: Call) -> Iterator[str]:
    made: StoredMemory = call.answer
    yield f"{strong(made.id)}  in force until {when(made.expires_at)}"
    yield from labelled("in", whose_book(call.handle))
    yield from labelled("applies", place_text(made.record))
    yield as_is("to end it", call.spelled("rules", "retire", made.id, "--reason", "WHY"))


add = Command(
    "rulebook.add",
    _show_added,
    function=_add,
    creates=True,
    about="BODY (`-` is stdin) goes into prompts where it applies, from now until its time is up. It stands in a layer "
    "of its own, below every learned rule; it is never promoted, and never a guard of the system.",
)


# -- tests --------------------------------------------------------------------------------------------


class _Tests(NamedTuple):
    held: Sequence[RuleTest]
    notes: tuple[str, ...]
    memory: StoredMemory


def _read_specs(name: str) -> list[Any]:
    """A list of specs, or JSON lines of them."""
    from muniment.surfaces.cli.documents import read_all

    documents = read_all(name)
    first = documents[0] if len(documents) == 1 else documents
    return first if isinstance(first, list) else documents


def _tests(
    book: Rulebook,
    rule_id: str,
    *,
    make: Annotated[bool, Word("Make tests from the runs it was learnt from, and from others.")] = False,
    constraints: Annotated[
        ConstraintSet | None,
        Word(
            "With tests of these constraints (YAML); makes tests as --make does.",
            metavar="FILE",
            read=constraints_given,
        ),
    ] = None,
    verifier: Annotated[
        Callable[..., Any] | None,
        Word("Make tests of earlier tasks that it was not learnt from, which this function judges."),
    ] = None,
    added: Annotated[
        Sequence[Any] | None,
        Word("Add the RegressionTestSpecs in FILE: a list, or JSON lines.", "add", metavar="FILE", read=_read_specs),
    ] = None,
) -> _Tests:
    notes: tuple[str, ...] = ()
    if make or constraints is not None or verifier is not None:
        notes = book.make_tests(rule_id, constraints=constraints, verifier=verifier).notes
    if added is not None:
        book.add_tests(rule_id, added)
    return _Tests(book.tests(rule_id), notes, book.get(rule_id))


def _show_tests(call: Call) -> Iterator[str]:
    held, notes, memory = call.answer
    if held:
        yield from table(("test", "kind", "asks"), [_test_row(each) for each in held])
    else:
        yield f"no tests; to make them from its runs: {call.spelled('rules', 'tests', memory.id, '--make')}"
    for note in notes:
        yield from labelled("not made", note)
    if held:
        yield from _next_lines(call, memory)


def _test_row(test: RuleTest) -> list[Cell]:
    spec = test.spec
    kind = "micro" if test.is_micro else spec.kind or spec.test_type
    return [spec.test_id, kind, f"{_asks(spec)}{f' of: {spec.prompt}' if spec.prompt else ''}"]


def _asks(spec: RegressionTestSpec) -> str:
    if spec.assertion is None:
        return "–"
    if spec.assertion.type is None:
        return "the verifier passes it" if "verifier" in (spec.assertion.model_extra or {}) else "constraints"
    args = spec.assertion.args or {}
    argument = next((args[name] for name in ("pattern", "tool", "name", "text", "max", "value") if name in args), None)
    return f"{spec.assertion.type}{'' if argument is None else f' {one_line(str(argument), 24)}'}"


tests = Command(
    "rulebook.tests",
    _show_tests,
    function=_tests,
    arguments=RULE,
    calls=("rulebook.make_tests", "rulebook.add_tests", "rulebook.get"),
    document=lambda call: {"tests": wire(call.answer.held), "notes": list(call.answer.notes)},
    about="Tests are made of runs that failed and must pass now, of others that failed alike, and of runs it is not "
    "for. One that passes whatever the output is says nothing, and is not made.",
)


# -- the gate -----------------------------------------------------------------------------------------


def _read_outputs(name: str) -> dict[str, Any]:
    from muniment.verify.outputs import Output

    data = object_given("$.outputs", "a JSON object: an output, or a text, by test id")(name)
    if not isinstance(data, dict):
        raise InvalidInput("outputs are a JSON object", path="$.outputs", hint="an output, or a text, by test id")
    return {test_id: given if isinstance(given, str) else Output.from_wire(given) for test_id, given in data.items()}


def _gate(call: Call, ask: Callable[..., GateReport]) -> GateReport:
    return ask(agent=call.typed["agent"] if "agent" in call.typed else call.typed["outputs"])


def _check_gate(call: Call) -> None:
    if ("agent" in call.typed) == ("outputs" in call.typed):
        raise InvalidInput("a gate takes an agent or outputs", path="$.agent", hint="give --agent or --outputs")


def _show_gate(call: Call) -> Iterator[str]:
    report: GateReport = call.answer
    fate = coloured("passed" if report.passed else "not passed", _PASSED)
    good = sum(each.ok for each in report.outcomes)
    yield f"{strong(report.rule_id)}  {fate}, {good} of {counted(len(report.outcomes), 'test')}"
    yield from check_lines(report)
    failing: list[list[Cell]] = [
        [(each.status, "red"), each.test_id, "passes whatever the output is" if each.vacuous else each.message]
        for each in report.outcomes
        if not each.ok or each.vacuous
    ]
    if failing:
        yield ""
        yield from table(("", "test", "why"), failing)
    if report.lint:
        yield ""
        yield from finding_lines(report.lint)
    yield from labelled("report", report.report_id)
    if report.passed and "beside" not in call.typed:
        yield from _next_lines(call, call.handle.get(report.rule_id))


gate = Command(
    "rulebook.gate",
    _show_gate,
    around=_gate,
    on="rulebook of it",
    arguments=RULE,
    left_out=("executor",),
    words={
        "agent": Word(needed=False),
        "beside": Word("Test an active rule as it would be with this exception beside it.", metavar="RULE"),
    },
    more={
        "outputs": Word(
            "Judge these instead: a JSON object of outputs, or of texts, by test id.",
            metavar="FILE",
            read=_read_outputs,
        )
    },
    check=_check_gate,
    calls=("rulebook.get",),
    holds=lambda report: report.passed,
    about="With the rule in its prompt. Exit code 1 where it does not pass. What is asked for: a regression, a "
    "counterexample of the same failure and one from beyond its place, five micro-regressions that can tell good "
    "answers from bad ones (form alone does not count), two failures foreseen; "
    "every test passes, and none would pass whatever the output is.",
)


# -- replay -------------------------------------------------------------------------------------------


def _show_replay(call: Call) -> Iterator[str]:
    report: ReplayReport = call.answer
    tasks = counted(len(report.trace_ids), "task")
    yield f"{strong(report.rule_id)}  {coloured(report.decision, CLAIMS)}, over {tasks}"
    for label, passes in (("with it", report.with_passes), ("without", report.without_passes)):
        rate = passes / report.pairs if report.pairs else 0.0
        yield as_is(label, f"{passes} of {report.pairs}  {bar(rate)} {rate:.0%}")
    if not report.passed:
        yield from labelled("not passed", "it was shown to do harm, or too little was tried")
    yield from labelled("because", report.notes)
    yield from labelled("report", report.report_id)
    if report.passed:
        yield from _next_lines(call, call.handle.get(report.rule_id))


replay = Command(
    "",
    _show_replay,
    function=Rulebook.replay,
    on="rulebook of it",
    arguments=RULE,
    left_out=("executor",),
    words={"tasks": Word("At most so many.", metavar="N", type=click.IntRange(1))},
    calls=("rulebook.get",),
    holds=lambda report: report.passed,
    about="Those that the rule applies to, newest first. Exit code 1 where it fails.",
)


# -- advance ------------------------------------------------------------------------------------------

_STAGES = STAGES | {"draft": "bright_black", "refused": "red"}


def _show_advanced(call: Call) -> Iterator[str]:
    report: AdvanceReport = call.answer
    if not report.rules:
        yield from said(f"no draft and no rule in {whose_book(call.handle)}; --user and --agent-id name another")
    for one in report.rules:
        yield from _rule_lines(call, one)
    rest = "; what is left undone is begun next time" if report.is_spent else ""
    yield f"{counted(report.calls, 'call')} of the agent, of at most {report.calls_max}{rest}"


def _rule_lines(call: Call, one: AdvancedRule) -> Iterator[str]:
    moved = [coloured(stage, _STAGES) for stage in dict.fromkeys((one.before, one.after))]
    yield f"{strong(one.rule_id or one.draft_id or '')}  {' → '.join(moved)}"
    yield from labelled("says", one.title)
    for number, each in enumerate(one.done):
        yield from labelled("done" if number == 0 else "", each)
    for number, each in enumerate(one.missing):
        yield from labelled("missing" if number == 0 else "", each)
    if one.ready is not None and one.rule_id is not None:
        yield as_is("ready: sign", call.spelled("rules", "promote", one.rule_id, "--signed-by", "NAME"))
    yield ""


advance = Command(
    "",
    _show_advanced,
    function=Rulebook.advance,
    on="rulebook advanced",
    arguments={},
    left_out=("executor",),
    words={
        "max_calls": Word(
            "At most so many calls of the agent (default: the policy's, 400).", metavar="N", type=click.IntRange(1)
        ),
        "tasks": Word(
            "Replay on at most so many earlier tasks (default: the policy's, 40).", metavar="N", type=click.IntRange(1)
        ),
        "share": Word("Of the runs that a trial takes (default: the policy's, 0.05).", metavar="SHARE"),
    },
    about="Drafts are submitted; rules are tested on earlier tasks that they were not learnt from, which the verifier "
    "judges; replayed, put on trial, watched, and promoted where the policy allows that without a signature. It may be "
    "run on a schedule: what was done is not done twice.",
)
