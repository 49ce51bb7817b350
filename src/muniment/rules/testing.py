"""The tests of a rule: generated from judged runs and run on an agent at the gate; and the replay (RC-18, RC-19)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from muniment.contracts.rules import DistillDraft, RegressionTestSpec, RuleRecord
from muniment.core.predicates import all_hold
from muniment.core.record import RULECRAFT_VERSION, Number
from muniment.core.requests import Expect, FromOne, Request, checked, is_listing, within
from muniment.errors import Conflict, Forgotten, InvalidInput, NotFound, WrongStage
from muniment.learning.folding import list_event_logs
from muniment.learning.recalling import features_of
from muniment.learning.records import RunFacts
from muniment.rules._attempts import AgentTask, Answered, RunNotes, call_agents, noted_calls
from muniment.rules._consolidate import applies, conditions_of, consolidate
from muniment.rules._gate import ReplayPair, judge_gate, judge_replay, outcome_of, rule_digest
from muniment.rules._records import GateReport, ReplayReport, TestOutcome
from muniment.rules._select import rule_line
from muniment.rules._tests import (
    HELD_OUT,
    Clash,
    Example,
    MadeTests,
    TaskAsked,
    asks_verifier,
    bad_outputs,
    find_clashes,
    held_out,
    is_form,
    is_micro,
    is_vacuous,
    make_task_tests,
    outcome_of_task,
    task_key,
    with_tests,
)
from muniment.rules._tests import make_tests as tests_for
from muniment.rules.activation import rule_in, staged
from muniment.rules.rulebook import (
    Book,
    RulebookEdit,
    RuleTest,
    edit_rulebook,
    find_rule,
    lint,
    list_tests,
    newest_report,
    report_draft,
    spec_draft,
    test_ids,
)
from muniment.runs.snapshots import get_run
from muniment.store.items import latest
from muniment.store.reading import content_of, list_entries
from muniment.verify.constraint_files import parse_constraints
from muniment.verify.judging import is_unjudged, judged
from muniment.verify.outputs import Output, ToolCall, read_output
from muniment.verify.regression import CaseResult, broken, constraints_of, grade, make_packs
from muniment.verify.results import UNRUN, is_pass, taught_by

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.learning.records import StoredMemory
    from muniment.store.context import Context
    from muniment.store.ledger import LedgerEntry


# == rule trying ======================================================================================================

Agent = Callable[[AgentTask], Any]
_OUTPUT_BYTES_MAX = 1024 * 1024
_SECONDS_MAX = 1_000_000


class TryingRequest(Request):
    """The agent, executor and timeout for trying a rule."""

    agent: Annotated[Callable[..., Any], Expect("an agent is a function")]
    executor: Annotated[Executor | None, Expect("executor is one of concurrent.futures")]
    timeout_s: Annotated[Number, within("a time is seconds", above=0, at_most=_SECONDS_MAX)]


@dataclass(slots=True)
class Calls:
    """A counter of agent calls."""

    made: int = 0


class Judge(NamedTuple):
    """The caller's verifier, and the judges that may teach."""

    verifier: Callable[..., Any]
    judges: Collection[str]
    timeout_s: float | None = None

    def passed(self, answered: Answered, task: str) -> bool | None:
        """Return whether an answer passed; crashed or hung ones did not. None if unknown."""
        if answered.code == UNRUN:
            return None
        return False if answered.code is not None else self.says(answered.output, task)

    def says(self, output: Output, task: str) -> bool | None:
        result = taught_by(judged(self.verifier, output, task, "replay", self.timeout_s), self.judges).result
        return None if is_unjudged(result) else is_pass(result.verdict, result.outcome)

    def can_fail(self, rule: RuleRecord, task: str, failed: Iterable[Output] = ()) -> bool:
        """Return whether the verifier refuses a bad answer to the task: empty, noise, the rule recited, or an earlier
        failure.
        """
        return any(self.says(output, task) is False for output in (*bad_outputs(rule, ())[:3], *failed))


class Trial(NamedTuple):
    """The agent, verifier and settings for trying a rule."""

    agent: Agent
    executor: Executor | None
    timeout_s: float
    tries: int = 1
    """Answers per test; a majority must pass, as agents are not deterministic."""
    calls: Calls | None = None
    """Counts the calls of the agent, if given."""
    notes_tools: bool = False
    """Earlier runs of the bank noted tools: an answer without noted tools called none."""

    def check(self) -> Trial:
        """Validate the arguments; returns the trial itself."""
        checked(TryingRequest, agent=self.agent, executor=self.executor, timeout_s=self.timeout_s)
        return self

    def answers(self, prompts: Sequence[tuple[str, str]]) -> list[Answered]:
        """The agent's answers to each task under its prompt."""
        first = 0 if self.calls is None else self.calls.made
        tasks = [
            AgentTask(task=task, prompt=prompt, hints=(), seed=None, run=RunNotes(f"trial_{first + number}"))
            for number, (task, prompt) in enumerate(prompts)
        ]
        if self.calls is not None:
            self.calls.made += len(tasks)
        answers = call_agents(
            self.agent,
            tasks,
            executor=self.executor,
            timeout_s=self.timeout_s,
            output_bytes_max=_OUTPUT_BYTES_MAX,
        )
        return [self._with_tools(answered) for answered in answers]

    def _with_tools(self, answered: Answered) -> Answered:
        """Use the noted tools, as in a runner; else the ones in the answer."""
        noted = noted_calls(answered.events)
        if not noted and (answered.output.tool_calls is not None or not self.notes_tools):
            return answered
        calls = tuple(ToolCall.from_wire(each) for each in noted)
        return answered._replace(output=answered.output.model_copy(update={"tool_calls": calls}))


class Tried(NamedTuple):
    """The results of a rule's tests."""

    outcomes: tuple[TestOutcome, ...]
    clashes: tuple[Clash, ...]


def try_tests(
    rule: RuleRecord,
    specs: Sequence[RegressionTestSpec],
    trial: Trial | Mapping[str, Any],
    examples: Examples,
    known: Sequence[Example],
    judge: Judge | None = None,
) -> Tried:
    """Run every test on the agent, or on outputs given by test id; `known` are runs whose bad answers a test must
    refuse.
    """
    by_task = {one.x_ref: one for one in known}
    asserting = [spec for spec in specs if judge is None or not asks_verifier(spec)]
    prompts = [_prompt(rule, spec, by_task.get(spec.x_ref), examples) for spec in asserting]
    results = _given(asserting, trial) if isinstance(trial, Mapping) else _asked_results(asserting, prompts, trial)
    bad, inside = bad_outputs(rule, known), fitting_runs(rule, known)
    outcomes = {
        spec.test_id: outcome_of(
            spec,
            result,
            vacuous=is_vacuous(spec, grade, bad),
            is_form=is_micro(spec) and is_form(spec, grade, inside),
        )
        for spec, result in zip(asserting, results, strict=True)
    }
    if judge is not None and isinstance(trial, Trial):
        tasks = [spec for spec in specs if asks_verifier(spec)]
        asked = [_prompt(rule, spec, by_task.get(spec.x_ref), examples) for spec in tasks]
        outcomes |= _judged_tasks(rule, tasks, asked, trial, judge)
    return Tried(tuple(outcomes[spec.test_id] for spec in specs), find_clashes(specs, grade))


def _judged_tasks(
    rule: RuleRecord,
    specs: Sequence[RegressionTestSpec],
    prompts: Sequence[tuple[str, str] | None],
    trial: Trial,
    judge: Judge,
) -> dict[str, TestOutcome]:
    """Ask tasks until one answer passes; if none does with the rule, ask without it too, to explain the failure.

    Tasks that the rule does not apply to are not asked: their results are not due to the rule.
    """
    wanted = list(dict.fromkeys(each for each in prompts if each is not None and each[1] != each[0]))
    mine = _until_passed(wanted, trial, judge)
    bare = {each: (each[0], each[0]) for each in wanted if not mine[each].passes}
    other = _until_passed(list(bare.values()), trial, judge)
    outcomes = {}
    for spec, prompt in zip(specs, prompts, strict=True):
        if prompt is None:
            asked, vacuous = TaskAsked(0, 0, problem="the task that it asks was forgotten"), False
        elif prompt not in mine:
            asked, vacuous = TaskAsked(0, 0, applies=False), False
        else:
            asked = mine[prompt]
            vacuous = not judge.can_fail(rule, prompt[0])
            if prompt in bare:
                without = other[bare[prompt]]
                asked = asked._replace(without_passes=without.passes, without_asked=without.asked)
        outcomes[spec.test_id] = outcome_of_task(spec, asked, vacuous=vacuous)
    return outcomes


def _until_passed(prompts: Sequence[tuple[str, str]], trial: Trial, judge: Judge) -> dict[tuple[str, str], TaskAsked]:
    """Ask every task once, then repeat those that did not pass, up to `tries` times."""
    found = {each: TaskAsked(0, 0) for each in prompts}
    for _ in range(trial.tries):
        again = [each for each in prompts if not found[each].passes]
        for each, answered in zip(again, trial.answers(again), strict=True):
            passed = judge.passed(answered, each[0])
            words = "the verifier could not say" if passed is None and not answered.words else answered.words
            done = found[each]
            found[each] = done._replace(passes=done.passes + (passed is True), asked=done.asked + 1, problem=words)
    return found


def _prompt(
    rule: RuleRecord, spec: RegressionTestSpec, example: Example | None, examples: Examples
) -> tuple[str, str] | None:
    """The task and the prompt, which includes the rule wherever it applies. None without a task."""
    task = spec.prompt if spec.prompt is not None else example.prompt if example is not None else None
    if task is None:
        task = examples.asked(spec.x_ref)
    if task is None:
        return None
    stands = spec.kind != "boundary" if example is None else applies(rule, example.features)
    return task, _with_rule(rule, task) if stands else task


def _with_rule(rule: RuleRecord, task: str) -> str:
    return f"{rule_line(rule.body)}\n{task}"


def _asked_results(
    specs: Sequence[RegressionTestSpec], prompts: Sequence[tuple[str, str] | None], trial: Trial
) -> list[CaseResult]:
    """Ask once for each task and prompt: tests that share them share the answer."""
    wanted = list(dict.fromkeys(each for each in prompts if each is not None))
    answered = trial.answers([each for each in wanted for _ in range(trial.tries)])
    answers = {each: answered[trial.tries * at : trial.tries * (at + 1)] for at, each in enumerate(wanted)}
    results = []
    for spec, prompt in zip(specs, prompts, strict=True):
        if prompt is None:
            results.append(broken(spec, "error", "the task that it asks was forgotten"))
            continue
        results.append(_most([_result(spec, each) for each in answers[prompt]]))
    return results


def _result(spec: RegressionTestSpec, answered: Answered) -> CaseResult:
    if answered.code is None:
        return grade(spec, answered.output)
    return broken(spec, "timeout" if answered.code == "tool_timeout" else "error", answered.words)


def _most(results: Sequence[CaseResult]) -> CaseResult:
    """The majority of the results; a tie is not a pass."""
    good = [result for result in results if result.ok]
    if 2 * len(good) > len(results):
        return good[0]
    worst = next(result for result in results if not result.ok)
    message = f"{len(good)} of {len(results)} answers passed; {worst.message}" if len(results) > 1 else worst.message
    return replace(worst, message=message)


def _given(specs: Sequence[RegressionTestSpec], outputs: Mapping[str, Any]) -> list[CaseResult]:
    results = []
    for spec in specs:
        found = outputs.get(spec.test_id)
        if found is None:
            results.append(broken(spec, "error", "no output was given"))
        else:
            results.append(grade(spec, read_output(found, f"$.agent.{spec.test_id}")))
    return results


# -- replay -------------------------------------------------------------------------------------------


def replay_pairs(
    rule: RuleRecord,
    known: Iterable[Example],
    trial: Trial,
    judge: Judge,
    *,
    most: int,
) -> tuple[ReplayPair, ...]:
    """Ask each task `tries` times with the rule and as often without, alternating. Answers that the verifier could not
    judge are dropped with their partner, and tasks without answers left are dropped.
    """
    tasks = fitting_tasks(rule, known)[:most]
    asked = [one for one in tasks for _ in range(trial.tries)]
    answers = iter(
        trial.answers([(one.prompt, prompt) for one in asked for prompt in (_with_rule(rule, one.prompt), one.prompt)])
    )
    pairs: dict[str, ReplayPair] = {}
    for one, mine, other in zip(asked, answers, answers, strict=True):
        passed = [judge.passed(answered, one.prompt) for answered in (mine, other)]
        if passed[0] is not None and passed[1] is not None:
            _, with_passed, without_passed, times = pairs.get(one.trace_id, ReplayPair(one.trace_id, 0, 0, 0))
            pairs[one.trace_id] = ReplayPair(
                one.trace_id, with_passed + passed[0], without_passed + passed[1], times + 1
            )
    return tuple(pairs.values())


def fitting_runs(rule: RuleRecord, known: Iterable[Example]) -> list[Example]:
    """The runs that a rule would have applied to."""
    conditions = conditions_of(rule)
    return [one for one in known if all_hold(conditions, one.features)]


def fitting_tasks(rule: RuleRecord, known: Iterable[Example]) -> list[Example]:
    """The tasks that a rule applies to, each once by its newest run; newest first."""
    fitting = {task_key(one.prompt): one for one in reversed(fitting_runs(rule, known))}
    return list(reversed(fitting.values()))


# == judged runs ======================================================================================================

_SPARE = 3
"""Maximum length of an answer, as a multiple of one that passed."""
_CHARS_MIN = 400


class Examples:
    """The judged runs of a bank, read lazily and once."""

    def __init__(self, ctx: Context, tenant_id: str, owner: str) -> None:
        self._ctx, self._tenant_id, self._owner = ctx, tenant_id, owner
        self._known: dict[str, Example | None] = {}

    def of(self, trace_ids: Iterable[str]) -> list[Example]:
        """The examples of these runs, as far as they still exist."""
        return [found for found in map(self._read, dict.fromkeys(trace_ids)) if found is not None]

    def newest(self, most: int) -> list[Example]:
        """The newest judged runs of the bank."""
        bodies = self._ctx.engine.read(
            self._tenant_id, lambda reader: list_event_logs(reader, self._owner, newest=most)
        )
        return self.of(body["facts"]["trace_id"] for body in bodies)

    def asked(self, x_ref: str) -> str | None:
        """The task in an event, if it still exists."""
        try:
            return content_of(self._ctx, self._tenant_id, x_ref)
        except (NotFound, Forgotten):
            return None

    def _read(self, trace_id: str) -> Example | None:
        if trace_id not in self._known:
            self._known[trace_id] = self._example(trace_id)
        return self._known[trace_id]

    def _example(self, trace_id: str) -> Example | None:
        item = self._ctx.engine.read(self._tenant_id, lambda reader: self._log(reader, trace_id))
        if item is None or not item["is_final"]:
            return None
        facts = RunFacts.from_wire(item["facts"])
        if facts.verdict is None:
            return None
        scope = get_run(self._ctx, self._tenant_id, item["run_id"]).scope
        entries = [
            entry
            for entry in list_entries(self._ctx, self._tenant_id, scope.user_id, scope.session_id, scope.run_id)
            if entry.body is not None
        ]
        asked = next((each for each in entries if each.kind == "message" and each.role == "user"), None)
        answers = [each for each in entries if each.kind == "message" and each.role == "assistant"]
        if asked is None or asked.content is None:
            return None
        output = _output(answers, entries)
        return Example(
            trace_id=trace_id,
            x_ref=asked.id,
            prompt=asked.content,
            output=output,
            passed=facts.passed,
            violated=facts.violated,
            reason_codes=facts.reason_codes,
            cluster_id=facts.cluster_id,
            features=features_of(facts.intent, facts.state, facts.bucket_key, facts.given_features),
            packs=_own_packs(output, asked.id) if facts.passed else (),
        )

    def _log(self, reader: Reader, trace_id: str) -> dict[str, Any] | None:
        item = latest(reader, trace_id)
        if item is None or item.kind != "event_log" or item.user_id != self._owner or item.body is None:
            return None
        return item.plain()


def _output(answers: list[LedgerEntry], entries: list[LedgerEntry]) -> Output:
    calls = [
        {
            "name": entry.tool.name,
            "args": entry.tool.args or {},
            **({} if entry.tool.ok is None else {"ok": entry.tool.ok}),
        }
        for entry in entries
        if entry.kind == "tool_result" and entry.tool is not None
    ]
    return Output.from_wire({"text": (answers[-1].content or "") if answers else "", "tool_calls": calls})


def _own_packs(output: Output, x_ref: str) -> tuple[RegressionTestSpec, ...]:
    """Constraints that a passing answer met unasked: it was not empty, and its length was bounded."""
    limit = max(_CHARS_MIN, _SPARE * len(output.text))
    asked: list[Any] = [{"regex_present": {"pattern": r"\S"}}, {"length": {"max": limit}}]
    if output.text.lstrip()[:1] in ("{", "["):
        asked.append("json_only")
    packs = make_packs(parse_constraints(asked).constraints, x_ref=x_ref)
    return tuple(spec for specs in packs.values() for spec in specs)


# == rule testing =====================================================================================================

_NEWEST = 400
"""Judged runs considered for tests and replay."""


# -- tests --------------------------------------------------------------------------------------------


class VerifierRequest(Request):
    """The verifier for tests that are earlier tasks."""

    verifier: Annotated[Callable[..., Any] | None, Expect("a verifier is a function")]


def known_runs(book: Book, memory: StoredMemory, examples: Examples | None = None) -> list[Example]:
    """The judged runs from which a rule's tests are made: its own first, then the newest of the bank.

    `examples` can be shared by callers that process several rules.
    """
    examples = examples or Examples(*book)
    known = [*examples.of(memory.sources), *examples.newest(_NEWEST)]
    return list({one.trace_id: one for one in known}.values())


def untried_runs(
    book: Book, memory: StoredMemory, before: ReplayReport | None = None, examples: Examples | None = None
) -> list[Example]:
    """The newest judged runs of tasks that the rule was not learned from and an earlier replay did not use."""
    return held_out(
        known_runs(book, memory, examples), {*memory.sources, *(() if before is None else before.trace_ids)}
    )


def named_tests(reader: Reader, owner: str, memory: StoredMemory) -> list[RuleTest]:
    """The current tests of a rule, without those that were replaced."""
    named = test_ids(memory)
    return [test for test in list_tests(reader, owner, memory.id) if test.spec.test_id in named]


def make_tests(
    book: Book,
    rule_id: str,
    constraints: Any,
    verifier: Callable[..., Any] | None = None,
    spent: Collection[str] = (),
    examples: Examples | None = None,
) -> MadeTests:
    """Make tests from the runs of the rule and other runs of the bank; they replace those made before.

    With a verifier they are earlier tasks that the rule was not learned from, judged by that verifier. Tasks in `spent`
    are used last.
    """
    checked(VerifierRequest, verifier=verifier)
    ctx, tenant_id, owner = book
    memory = ctx.engine.read(tenant_id, lambda reader: find_rule(reader, owner, rule_id))
    known = known_runs(book, memory, examples)
    made = _asserting(book, memory, known, constraints) if verifier is None or constraints is not None else None
    if verifier is not None:
        judged = _task_tests(book, memory, known, verifier, spent)
        micro = () if made is None else tuple(spec for spec in made.specs if is_micro(spec))
        made = MadeTests((*judged.specs, *micro), judged.notes)
    assert made is not None
    # task texts stay in their runs: tests refer to them
    specs = tuple(spec.model_copy(update={"prompt": None}) for spec in made.specs)
    _keep_tests(book, rule_id, specs, {one.x_ref: one.trace_id for one in known}, is_anew=verifier is not None)
    return MadeTests(specs, made.notes)


def _task_tests(
    book: Book, memory: StoredMemory, known: Sequence[Example], verifier: Callable[..., Any], spent: Collection[str]
) -> MadeTests:
    policy, rule = book.ctx.policy, rule_in(memory)
    judge = Judge(verifier, policy.learn.judges, policy.rules.gate.test_timeout_s)

    def can_fail(one: Example) -> bool:
        failed = [other.output for other in known if other.prompt == one.prompt and not other.passed]
        return judge.can_fail(rule, one.prompt, failed)

    untaught = held_out(known, set(memory.sources))
    return make_task_tests(rule, untaught, can_fail=can_fail, policy=policy.rules.gate, spent=spent)


def _asserting(book: Book, memory: StoredMemory, known: Sequence[Example], constraints: Any) -> MadeTests:
    """Make tests that assert something of an answer by themselves."""
    from muniment.verify.verify import constraints_of as read_constraint_set

    rule, policy = rule_in(memory), book.ctx.policy.rules.gate
    given = read_constraint_set(constraints)
    asked = () if given is None else given.constraints
    packs = [
        spec
        for one in known[: max(1, policy.micro_min)]
        for specs in make_packs(rule, asked, x_ref=one.x_ref).values()
        for spec in specs
    ]
    return tests_for(
        rule,
        failing=[one for one in known if not one.passed],
        passing=[one for one in known if one.passed],
        grade=grade,
        packs=packs,
        policy=policy,
    )


def add_tests(book: Book, rule_id: str, given: Iterable[Any]) -> None:
    """Add a person's own tests to the generated ones."""
    if not is_listing(given):
        raise InvalidInput("tests are a list of RegressionTestSpecs", path="$.specs")
    specs = []
    for each in given:
        spec = (
            each
            if isinstance(each, RegressionTestSpec)
            else RegressionTestSpec.from_wire(
                {"schema_version": RULECRAFT_VERSION, **each} if isinstance(each, Mapping) else each
            )
        )
        constraints_of(spec)  # an unusable test is refused when it is written
        specs.append(spec if spec.linked_rule_ids else spec.model_copy(update={"linked_rule_ids": (rule_id,)}))
    _keep_tests(book, rule_id, specs, {})


def _keep_tests(
    book: Book,
    rule_id: str,
    specs: Sequence[RegressionTestSpec],
    traces: Mapping[str, str],
    *,
    is_anew: bool = False,
) -> None:
    """Add tests to those of the rule; with `is_anew`, they replace the tests generated from tasks before."""

    def decide(tx: Transaction) -> RulebookEdit[None]:
        memory = find_rule(tx, book.owner, rule_id)
        if memory.stage not in (None, "drafted"):
            raise WrongStage(
                f"{rule_id} is {memory.stage}: its tests are made before its gate", details={"stage": memory.stage}
            )
        written = {test.spec.test_id: test.spec for test in list_tests(tx, book.owner, rule_id)}
        standing = [test.spec for test in named_tests(tx, book.owner, memory)]
        stays = [spec for spec in standing if not (is_anew and HELD_OUT in (spec.tags or ()))]
        kept = {spec.test_id: spec for spec in (*stays, *specs)}
        fresh = [spec for spec in specs if written.get(spec.test_id) != spec]
        if not fresh and kept.keys() == {spec.test_id for spec in standing}:
            return RulebookEdit(action="submit", answer=None)
        drafts = [
            spec_draft(rule_id, spec, is_micro(spec), [traces[spec.x_ref]] if spec.x_ref in traces else [])
            for spec in fresh
        ]
        record = with_tests(rule_in(memory), kept.values()).to_wire()
        changed = memory.model_copy(update={"version": memory.version + 1, "record": record})
        return RulebookEdit(
            action="submit",
            answer=None,
            rules=[changed],
            before={rule_id: memory},
            drafts=drafts,
            reason=f"{len(fresh)} tests",
        )

    edit_rulebook(book, decide)


def _draft_of(reader: Reader, owner: str, rule: RuleRecord) -> DistillDraft | None:
    """The draft a rule was made from, if it still exists: its predictions are part of the gate."""
    named = (rule.evidence.model_extra or {}).get("draft_ids")
    for id_ in reversed(named) if isinstance(named, list | tuple) else ():
        item = latest(reader, id_) if isinstance(id_, str) else None
        if item is not None and item.kind == "draft" and item.user_id == owner and item.body is not None:
            return DistillDraft.from_wire(item.plain()["draft"])
    return None


# -- the gate -----------------------------------------------------------------------------------------


def gate(
    book: Book,
    rule_id: str,
    agent: Callable[..., Any] | Mapping[str, Output | str],
    *,
    verifier: Callable[..., Any] | None = None,
    beside: str | None = None,
    executor: Executor | None = None,
    timeout_s: float | None = None,
    calls: Calls | None = None,
    examples: Examples | None = None,
) -> GateReport:
    """Run a rule's tests and judge them; a passing rule is gated."""
    checked(VerifierRequest, verifier=verifier)
    ctx, tenant_id, owner = book
    policy = ctx.policy.rules
    memory = ctx.engine.read(tenant_id, lambda reader: find_rule(reader, owner, rule_id))
    rule = rule_in(memory) if beside is None else narrowed_record(book, rule_id, beside)
    tests = ctx.engine.read(tenant_id, lambda reader: named_tests(reader, owner, memory))
    specs = [test.spec for test in tests]
    examples = examples or Examples(*book)
    known = known_runs(book, memory, examples)
    judge: Judge | None = None
    trial: Any = agent
    if not isinstance(agent, Mapping):
        seconds = policy.gate.test_timeout_s if timeout_s is None else timeout_s
        notes_tools = any(one.output.tool_calls for one in known)
        trial = Trial(agent, executor, seconds, policy.gate.tries, calls or Calls(), notes_tools).check()
        judge = None if verifier is None else Judge(verifier, ctx.policy.learn.judges, seconds)
    if judge is None and any(map(asks_verifier, specs)):
        hint = "give the gate an agent and the verifier that they were made with"
        raise InvalidInput(f"tests of {rule_id} ask your verifier", path="$.verifier", hint=hint)
    tried = try_tests(rule, specs, trial, examples, known, judge)
    report = judge_gate(
        rule,
        draft=ctx.engine.read(tenant_id, lambda reader: _draft_of(reader, owner, rule)),
        specs=specs,
        outcomes=tried.outcomes,
        lint=lint(book, rule),
        clashes=tried.clashes,
        policy=policy.gate,
        report_id=ctx.ids.new("gate"),
        now=ctx.now(),
    )

    def decide(tx: Transaction) -> RulebookEdit[None]:
        standing = find_rule(tx, owner, rule_id)
        if beside is None and rule_digest(rule_in(standing)) != report.rule_digest:
            raise Conflict(f"the rule {rule_id} was changed while it was tested", hint="test it again")
        if [test.spec for test in named_tests(tx, owner, standing)] != specs:
            raise Conflict(f"the tests of {rule_id} were changed while they were run", hint="test it again")
        drafts = [report_draft("gate", report)]
        if not report.passed or beside is not None or standing.stage == "active":
            return RulebookEdit(action="submit", answer=None, drafts=drafts)
        if standing.stage == "canary":
            raise WrongStage(f"{rule_id} is on trial already", details={"stage": "canary"})
        gated = staged(standing, "gated", policy, ctx.now(), gate=report)
        return RulebookEdit(
            action="submit",
            answer=None,
            rules=[gated],
            before={rule_id: standing},
            drafts=drafts,
            report_id=report.report_id,
            reason="passed its gate",
        )

    edit_rulebook(book, decide)
    return report


def narrowed_record(book: Book, rule_id: str, exception_id: str) -> RuleRecord:
    """An active rule, narrowed to make room for an exception."""

    def read(reader: Reader) -> tuple[StoredMemory, StoredMemory]:
        return find_rule(reader, book.owner, rule_id), find_rule(reader, book.owner, exception_id)

    wide, exception = book.ctx.engine.read(book.tenant_id, read)
    found = consolidate(rule_in(exception), [wide], now=wide.created_at)
    cut = next((each for each in found.cuts if each.rule_id == rule_id), None)
    if cut is None:
        raise Conflict(f"{exception_id} is no exception to {rule_id}", details={"reasons": list(found.reasons)})
    return cut.record


# -- replay -------------------------------------------------------------------------------------------


class ReplayRequest(Request):
    """The number of earlier tasks a rule is tried on, and the judge."""

    tasks: Annotated[FromOne, Expect("tasks is a whole number from 1")]
    verifier: Annotated[Callable[..., Any], Expect("a verifier is a function")]


def replay(
    book: Book,
    rule_id: str,
    agent: Callable[..., Any],
    verifier: Callable[..., Any],
    *,
    tasks: int,
    executor: Executor | None,
    timeout_s: float | None,
    tries: int = 1,
    calls: Calls | None = None,
    before: ReplayReport | None = None,
    examples: Examples | None = None,
) -> ReplayReport:
    """Try earlier tasks that the rule was not learned from, with and without it; a rule not shown to be harmful is
    replayed.
    """
    ctx, tenant_id, owner = book
    policy = ctx.policy.rules
    tasks = checked(ReplayRequest, tasks=tasks, verifier=verifier).tasks
    seconds = policy.gate.test_timeout_s if timeout_s is None else timeout_s
    trial = Trial(agent, executor, seconds, tries, calls or Calls()).check()
    memory = ctx.engine.read(tenant_id, lambda reader: find_rule(reader, owner, rule_id))
    rule = rule_in(memory)
    gated = ctx.engine.read(
        tenant_id, lambda reader: newest_report(reader, owner, rule_id, GateReport, rule_digest(rule))
    )
    if gated is None or not gated.passed:
        raise WrongStage(f"{rule_id} has not passed its gate", hint="gate it first", details={"stage": memory.stage})
    known = untried_runs(book, memory, before, examples)
    trial = trial._replace(notes_tools=any(one.output.tool_calls for one in known))
    pairs = replay_pairs(rule, known, trial, Judge(verifier, ctx.policy.learn.judges, seconds), most=tasks)
    report = judge_replay(rule, pairs, policy, report_id=ctx.ids.new("replay"), now=ctx.now(), before=before)

    def decide(tx: Transaction) -> RulebookEdit[None]:
        standing = find_rule(tx, owner, rule_id)
        drafts = [report_draft("replay", report, report.trace_ids)]
        if not report.passed or standing.stage not in ("gated", "replayed"):
            return RulebookEdit(action="submit", answer=None, drafts=drafts)
        done = staged(standing, "replayed", policy, ctx.now(), gate=gated, replay=report)
        return RulebookEdit(
            action="submit",
            answer=None,
            rules=[done],
            before={rule_id: standing},
            drafts=drafts,
            report_id=report.report_id,
            reason="replayed",
        )

    edit_rulebook(book, decide)
    return report
