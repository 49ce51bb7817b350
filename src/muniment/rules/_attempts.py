"""Calling agents on tasks over any executor; their errors are returned as values.

On a thread executor an agent receives the run itself. On any other it receives `RunNotes`, which collect its
observations; they are written to the run after the agent has answered. Answers are read and measured where they are
produced, so an oversized answer (say 100 MB) is refused before it is sent or stored.
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
    """Observations of an agent in another process, written to its run afterwards. Write-only: it returns nothing."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.events: list[EntryDraft] = []

    def observe(self, role: str, content: str, *, build: Any = None, **more: Any) -> None:  # noqa: ARG002
        """Note a message. `build` is not checked here, as there is no store to check against."""
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
        if given is not None:  # the record refuses anything but a mapping
            tool["args"] = dict(given) if isinstance(given, Mapping) else given
        tool |= {} if call_id is None else {"call_id": call_id}
        self.observe_many([{"role": "tool", "content": content, "tool": tool, **more}])

    def observe_many(self, events: Iterable[Mapping[str, Any] | EntryDraft]) -> None:
        from muniment.store.ledger import EntryDraft, draft_of

        self._take([event if isinstance(event, EntryDraft) else draft_of(_without_build(event)) for event in events])

    def record(self, messages: Iterable[Any], *, build: Any = None) -> None:  # noqa: ARG002
        """Note a conversation in API format; of a list that was recorded before and has grown, only the new
        messages.
        """
        from muniment.packets.recording import message_drafts

        known = {draft.idempotency_key for draft in self.events}
        self._take([each for each in message_drafts(messages, self.run_id) if each.idempotency_key not in known])

    def _take(self, drafts: Sequence[EntryDraft]) -> None:
        self.events += drafts
        if len(self.events) > _EVENTS_MAX:
            raise TooLarge(f"more than {_EVENTS_MAX} events in one attempt", path="$.events")

    def _call_args(self, name: str, call_id: str) -> Any:
        """The arguments of the call in an assistant message, looked up as a run does."""
        from muniment.memory.tool_results import calls_in

        said = [draft.metadata for draft in reversed(self.events) if draft.role == "assistant" and draft.metadata]
        made = [call for metadata in said for call in calls_in(metadata)]
        return next((call.args for call in made if (call.call_id, call.name) == (call_id, name)), None)


def _without_build(event: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in event.items() if key != "build"} if isinstance(event, Mapping) else event


@dataclass(frozen=True, slots=True)
class AgentTask:
    """The input of an agent. It can be sent to another process if `run` is `RunNotes`."""

    task: str
    prompt: str
    """The task, preceded by the rules and recalled notes and followed by instructions on how to proceed."""
    hints: tuple[MemoryHint, ...]
    seed: ReuseStateRecord | None
    run: Run | RunNotes
    """For observing tools; if it is the run itself, notes can be added too."""
    features: Mapping[str, Any] = field(default_factory=dict)
    mode: RunMode = "main"
    attempt: int = 0
    """The number of this attempt at the task, from 0."""
    cfg: RunConfig | None = None
    """Settings that vary between attempts: temperature, sampling seed, plan style, tool order."""
    rules: str = ""
    """The rules in the prompt, for an agent that prefers them in its system prompt."""
    summaries: tuple[RolloutSummary, ...] = ()
    """In a synthesis: everything it may read of earlier attempts."""
    tier: Tier | None = None
    """The budget tier chosen by the router, as the routing policy defines it."""


class Answered(NamedTuple):
    """The result of calling an agent."""

    output: Output
    features: dict[str, Any]
    """Features the agent reports about itself."""
    summary: Mapping[str, Any] | None = None
    """The agent's own summary of its attempt, if it gives one."""
    events: tuple[EntryDraft, ...] = ()
    latency_ms: int = 0
    code: str | None = None
    """If it did not answer: a reason code, and a message."""
    words: str = ""
    refined: int = 0
    fault: InvalidInput | None = None
    """Set if the answer is malformed: a bug in the agent, so no run is judged by it."""


def noted_calls(events: Iterable[EntryDraft]) -> list[dict[str, Any]]:
    """The tools whose results were noted, in the format of an output."""
    return [
        {"name": tool.name, "args": tool.args or {}} | ({} if tool.ok is None else {"ok": tool.ok})
        for tool in (draft.tool for draft in events if draft.kind == "tool_result")
        if tool is not None
    ]


def is_near(executor: Executor | None) -> bool:
    """Return whether the executor runs calls in this process, so that they can be given a run."""
    return executor is None or isinstance(executor, ThreadPoolExecutor | ThreadEach)


def call_agents(
    agent: Callable[..., Any],
    tasks: Sequence[AgentTask],
    *,
    executor: Executor | None = None,
    timeout_s: float | None = None,
    output_bytes_max: int,
) -> list[Answered]:
    """Call the agent on every task in parallel; results are in task order."""
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
    if error is not None:  # the agent's own errors are answers: this one is the executor's
        return _nothing(UNRUN, f"the executor failed: {type(error).__name__}: {error}")
    answered: Answered = future.result()
    return answered


def _nothing(code: str, words: str, latency_ms: int = 0, events: tuple[EntryDraft, ...] = ()) -> Answered:
    said = words.encode("utf-8", "backslashreplace").decode()[:_WORDS_MAX]
    return Answered(Output(text=""), {}, None, events, latency_ms, code, said)


# -- where the agent runs -----------------------------------------------------------------------------


def _work(agent: Callable[..., Any], task: AgentTask, output_bytes_max: int) -> Answered:
    """Make one attempt, in the executor's thread or process."""
    start = monotonic()
    answered = _once(agent, task, output_bytes_max)
    steps = 0 if task.cfg is None else task.cfg.self_refine_steps or 0
    for _ in range(steps):
        if answered.code is not None:
            break
        again = replace(task, prompt=refine_prompt(task.prompt, answered.output.text))
        better = _once(agent, again, output_bytes_max)
        if better.code is not None:  # partial output is still an answer
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
    """The message of an error, whose `str()` may itself fail."""
    said = caught(lambda: str(error))
    return "" if said.exception() is not None else str(said.result())


def _read(given: Any, task: AgentTask, output_bytes_max: int) -> Answered:
    """Parse an answer into an output and the features the agent reports with it."""
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
        features_given({**task.features, **features})  # both are written to the run
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
    """The combined usage of two calls, as far as both report it."""
    if one is None or other is None:
        return other or one
    mine, theirs = one.to_wire(), other.to_wire()
    return Usage.from_wire({key: mine[key] + theirs[key] for key in mine if key in theirs})
