"""Agents called on tasks, over any executor: what they answer, and what goes wrong with them, as values.

On an executor of threads an agent is handed the run itself. Anywhere else it is handed `RunNotes`, which take down what
it observes; that is told to the run when the agent has answered. An answer is read and measured where it was given, so
that one of 100 MB is refused before it is sent or stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.canonical import canonical_bytes
from muniment.core.outside.calling import Late, ThreadEach, caught, stop_if_told, submitted, wait_for
from muniment.core.scope import RunMode
from muniment.errors import InvalidInput, TooLarge
from muniment.learning.recalling import features_given
from muniment.rules._records import Tier
from muniment.rules._summaries import refine_prompt
from muniment.verify.outputs import Output, Usage
from muniment.verify.results import UNRUN

if TYPE_CHECKING:
    from muniment.contracts.learning import MemoryHint, ReuseStateRecord
    from muniment.contracts.runs import RolloutSummary, RunConfig
    from muniment.handles.run import Run
    from muniment.store.ledger import EntryDraft


_EVENTS_MAX = 10_000
_WORDS_MAX = 500


class RunNotes:
    """What an agent in another process observes, to be told to its run. Answers nothing, and cannot be asked."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.events: list[EntryDraft] = []

    def observe(self, role: str, content: str, *, build: Any = None, **more: Any) -> None:  # noqa: ARG002
        """A message. Of an answer, `build` is not looked at here: there is no store to look in."""
        self.observe_many([{"role": role, "content": content, **more}])

    def observe_tool(
        self,
        name: str,
        *,
        content: str,
        args: Mapping[str, Any] | None = None,
        ok: bool = True,
        call_id: str | None = None,
        **more: Any,
    ) -> None:
        given = args if args is not None or call_id is None else self._call_args(name, call_id)
        tool: dict[str, Any] = {"name": name, "ok": ok}
        if given is not None:  # what is no mapping is refused by the record
            tool["args"] = dict(given) if isinstance(given, Mapping) else given
        tool |= {} if call_id is None else {"call_id": call_id}
        self.observe_many([{"role": "tool", "content": content, "tool": tool, **more}])

    def observe_many(self, events: Iterable[Mapping[str, Any] | EntryDraft]) -> None:
        from muniment.store.ledger import EntryDraft, draft_of

        self._take([event if isinstance(event, EntryDraft) else draft_of(_without_build(event)) for event in events])

    def record(self, messages: Iterable[Any], *, build: Any = None) -> None:  # noqa: ARG002
        """A conversation as an API has it; of a list that was recorded and has grown, what is new."""
        from muniment.packets.recording import message_drafts

        known = {draft.idempotency_key for draft in self.events}
        self._take([each for each in message_drafts(messages, self.run_id) if each.idempotency_key not in known])

    def _take(self, drafts: Sequence[EntryDraft]) -> None:
        self.events += drafts
        if len(self.events) > _EVENTS_MAX:
            raise TooLarge(f"more than {_EVENTS_MAX} events in one attempt", path="$.events")

    def _call_args(self, name: str, call_id: str) -> Any:
        """The arguments under which a message of the assistant made the call, as a run looks them up."""
        from muniment.memory.tool_results import calls_in

        said = [draft.metadata for draft in reversed(self.events) if draft.role == "assistant" and draft.metadata]
        made = [call for metadata in said for call in calls_in(metadata)]
        return next((call.args for call in made if (call.call_id, call.name) == (call_id, name)), None)


def _without_build(event: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in event.items() if key != "build"} if isinstance(event, Mapping) else event


@dataclass(frozen=True, slots=True)
class AgentTask:
    """What an agent is handed. It can be sent to another process where `run` is `RunNotes`."""

    task: str
    prompt: str
    """The task, and before it the rules and what was recalled; after it, how to go about it."""
    hints: tuple[MemoryHint, ...]
    seed: ReuseStateRecord | None
    run: Run | RunNotes
    """To observe tools with; the run itself can be noted on as well."""
    features: Mapping[str, Any] = field(default_factory=dict)
    mode: RunMode = "main"
    attempt: int = 0
    """Of several attempts at the task, which; the first is 0."""
    cfg: RunConfig | None = None
    """What differs from attempt to attempt: temperature, a seed for sampling, plan style, order of tools."""
    rules: str = ""
    """The rules that stand in the prompt, for an agent that would rather have them in its system prompt."""
    summaries: tuple[RolloutSummary, ...] = ()
    """In a synthesis: all that it may read of earlier attempts."""
    tier: Tier | None = None
    """Where a router decides: how much the attempt may take, as the policy of routes has it."""


class Answered(NamedTuple):
    """What came of calling an agent."""

    output: Output
    features: dict[str, Any]
    """What the agent tells of itself."""
    summary: Mapping[str, Any] | None = None
    """How the agent sums up its attempt, where it does."""
    events: tuple[EntryDraft, ...] = ()
    latency_ms: int = 0
    code: str | None = None
    """A reason code where it did not answer, and what to say of it."""
    words: str = ""
    refined: int = 0
    fault: InvalidInput | None = None
    """Where what it answered is no answer: whoever wrote the agent must mend it, and no run is judged by it."""


def noted_calls(events: Iterable[EntryDraft]) -> list[dict[str, Any]]:
    """The tools whose results were taken down, as an output names them."""
    return [
        {"name": tool.name, "args": tool.args or {}} | ({} if tool.ok is None else {"ok": tool.ok})
        for tool in (draft.tool for draft in events if draft.kind == "tool_result")
        if tool is not None
    ]


def is_near(executor: Executor | None) -> bool:
    """Does it run calls in this process, so that they may be handed a run?"""
    return executor is None or isinstance(executor, ThreadPoolExecutor | ThreadEach)


def call_agents(
    agent: Callable[..., Any],
    tasks: Sequence[AgentTask],
    *,
    executor: Executor | None = None,
    timeout_s: float | None = None,
    output_bytes_max: int,
) -> list[Answered]:
    """The agent on every task, side by side; what came of each, in the order of the tasks."""
    near = is_near(executor)
    used = executor or ThreadEach()
    sent = tasks if near else [replace(task, run=RunNotes(task.run.run_id)) for task in tasks]
    futures = [submitted(used, _work, agent, task, output_bytes_max) for task in sent]
    late = wait_for(futures, timeout_s)
    return [_came(future, late.get(number)) for number, future in enumerate(futures)]


def _came(future: Future[Any], late: Late | None) -> Answered:
    if late is not None:
        return _nothing("tool_timeout" if late.ran else UNRUN, f"the agent was given up: {late.words}")
    if future.cancelled():
        return _nothing(UNRUN, "the attempt was cancelled before it ran")
    stop_if_told(future)
    error = future.exception()
    if error is not None:  # the agent's own errors are answers: this is the executor's
        return _nothing(UNRUN, f"the executor failed: {type(error).__name__}: {error}")
    answered: Answered = future.result()
    return answered


def _nothing(code: str, words: str, latency_ms: int = 0, events: tuple[EntryDraft, ...] = ()) -> Answered:
    said = words.encode("utf-8", "backslashreplace").decode()[:_WORDS_MAX]
    return Answered(Output(text=""), {}, None, events, latency_ms, code, said)


# -- where the agent runs -----------------------------------------------------------------------------


def _work(agent: Callable[..., Any], task: AgentTask, output_bytes_max: int) -> Answered:
    """One attempt, in whatever thread or process the executor has for it."""
    start = monotonic()
    answered = _once(agent, task, output_bytes_max)
    steps = 0 if task.cfg is None else task.cfg.self_refine_steps or 0
    for _ in range(steps):
        if answered.code is not None:
            break
        again = replace(task, prompt=refine_prompt(task.prompt, answered.output.text))
        better = _once(agent, again, output_bytes_max)
        if better.code is not None:  # what it had is still an answer
            break
        usage = _added(answered.output.usage, better.output.usage)
        output = better.output if usage is None else better.output.model_copy(update={"usage": usage})
        answered = better._replace(output=output, refined=answered.refined + 1)
    events = tuple(task.run.events) if isinstance(task.run, RunNotes) else ()
    return answered._replace(events=events, latency_ms=round((monotonic() - start) * 1000))


def _once(agent: Callable[..., Any], task: AgentTask, output_bytes_max: int) -> Answered:
    answer = caught(lambda: agent(task))
    error = answer.exception()
    if error is not None:
        return _nothing("tool_failure", f"the agent raised {type(error).__name__}: {_text_of(error)}")
    read = caught(lambda: _read(answer.result(), task, output_bytes_max))
    fault = read.exception()
    if isinstance(fault, TooLarge):
        return _nothing("tool_output_invalid", f"the agent answered too much: {fault}")
    if isinstance(fault, UnicodeEncodeError):
        return _nothing("tool_output_invalid", "the agent answered text with a lone surrogate, which has no bytes")
    if fault is not None:
        malformed = fault if isinstance(fault, InvalidInput) else _no_answer(answer.result())
        return _nothing("tool_output_invalid", str(malformed))._replace(fault=malformed)
    answered: Answered = read.result()
    return answered


_ANSWERS = "text, an Output, or an object with `text` and, if you like, tool_calls, usage, features, summary"


def _no_answer(given: Any) -> InvalidInput:
    return InvalidInput(f"an agent answered {type(given).__name__}", path="$.answer", hint=_ANSWERS)


def _text_of(error: BaseException) -> str:
    """What an error says of itself; an error may fail at that too."""
    said = caught(lambda: str(error))
    return "" if said.exception() is not None else str(said.result())


def _read(given: Any, task: AgentTask, output_bytes_max: int) -> Answered:
    """An answer as an output, and what the agent tells of itself beside it."""
    plain: dict[str, Any] = {"text": given} if isinstance(given, str) else {}
    if isinstance(given, Output):
        _check_size(given, output_bytes_max)
        return Answered(given, {})
    if not isinstance(given, str):
        if not isinstance(given, Mapping):
            raise _no_answer(given)
        plain = dict(given)
    text = plain.get("text")
    if isinstance(text, str) and len(text) > output_bytes_max:
        raise TooLarge(f"{len(text)} characters are over the limit of {output_bytes_max} bytes", path="$.text")
    try:
        features = features_given(plain.pop("features", None))
        features_given({**task.features, **features})  # both together are told of the run
    except InvalidInput as error:
        raise error.within("$.answer") from None
    summary = plain.pop("summary", None)
    if summary is not None and not isinstance(summary, Mapping):
        raise InvalidInput("a summary is an object", path="$.answer.summary", hint=_ANSWERS)
    output = Output.of_given(plain, "what an agent answered is no output", path="$.answer", hint=_ANSWERS)
    _check_size(output, output_bytes_max)
    return Answered(output, features, None if summary is None else _small(summary, output_bytes_max))


def _check_size(output: Output, output_bytes_max: int) -> None:
    if len(output.text) <= output_bytes_max:
        output.text.encode()  # a lone surrogate cannot be stored
        size = len(canonical_bytes(output.to_wire()))
    else:
        size = len(output.text)
    if size > output_bytes_max:
        raise TooLarge(f"{size} bytes are over the limit of {output_bytes_max}", path="$.output")


def _small(summary: Mapping[str, Any], bytes_max: int) -> dict[str, Any]:
    plain = dict(summary)
    if len(canonical_bytes(plain)) > bytes_max:
        raise TooLarge("the summary is over the limit of an answer", path="$.summary")
    return plain


def _added(one: Usage | None, other: Usage | None) -> Usage | None:
    """What two calls used together, as far as both say."""
    if one is None or other is None:
        return other or one
    mine, theirs = one.to_wire(), other.to_wire()
    return Usage.from_wire({key: mine[key] + theirs[key] for key in mine if key in theirs})
