"""Asking a model for lessons from a judged run, outside any transaction.

The writer is any server with an OpenAI-compatible chat, a chat function, or a caller's object. Failures are reported,
and the fold continues without lessons. The model is shown no secrets and no turns worded like instructions; above the
user's own level it is shown only names of tools. An answer that cannot be parsed is requested once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from muniment.core.canonical import canonical_text
from muniment.core.outside.calling import caught, outcome_of, settled
from muniment.core.outside.http import ChatModel
from muniment.core.policy import WritingPolicy
from muniment.core.ports.models import TokenCounter
from muniment.core.text.analyzer import stem
from muniment.errors import (
    InvalidInput,
    ModelFailure,
    ModelMalformed,
    ModelRefused,
    ModelUnreachable,
    MunimentError,
    NotFound,
)
from muniment.learning._lesson_writing import (
    REASONS,
    CheckedLesson,
    KeptLesson,
    LessonAnswer,
    LessonProposal,
    LessonQuestion,
    LessonReport,
    LessonWriter,
    ProposedLesson,
    Refused,
    ShownEvent,
    ShownRun,
    Standards,
    answer_schema,
    check_lesson,
    fold_text,
    messages_of,
    read_answer,
)
from muniment.learning.keys import shared_keys_of
from muniment.memory.outside.models import load_chat
from muniment.runs.snapshots import get_run
from muniment.store.admission import is_id
from muniment.store.injection import has_injection_form
from muniment.store.items import latest
from muniment.store.ledger import INSTRUCTION_LIKE
from muniment.store.reading import list_entries
from muniment.store.secrets import find_secret, redact_text
from muniment.verify.graders import without_orders

if TYPE_CHECKING:
    from muniment.core.scope import Scope
    from muniment.learning.records import RunFacts
    from muniment.store.context import Context
    from muniment.store.ledger import LedgerEntry

__all__ = [
    "LessonsAsked",
    "ask_lessons",
    "lesson_writer",
    "shown_event",
    "standards_of",
    "with_fates",
]

_EVENTS_MAX, _EVENT_CHARS_MAX = 16, 400
"""Maximum events shown of a run, and characters of each."""
_LESSONS_MAX, _TEXT_TOKENS_MAX = 3, 60
"""Maximum lessons from one run, and tokens of each with its condition."""
_FIRST = 4
"""The number of first events of a run that are always shown."""
_NEAR_MAX = 8
"""The number of opposite runs tried, nearest first, until one is available."""
_WHO: Mapping[str, str] = {"user": "user", "assistant": "agent", "tool": "tool"}


class LessonsAsked(NamedTuple):
    """The accepted proposals of a model, and the report on all; the results of accepted ones are not known yet."""

    lessons: tuple[CheckedLesson, ...]
    report: LessonReport


def ask_lessons(
    ctx: Context,
    scope: Scope,
    given: object,
    facts: RunFacts,
    entries: Sequence[LedgerEntry],
    peers: Sequence[RunFacts],
    notes: str | None,
    *,
    has_words: bool,
) -> LessonsAsked | None:
    """Ask the lesson writer about a run; None without a writer or a verdict."""
    policy = ctx.policy.learn.writing
    writer = lesson_writer(given, policy)
    if writer is None or facts.verdict is None:
        return None
    run = shown_run(facts, entries, has_words=has_words)
    if notes and has_words:
        run = run._replace(reasons=(*run.reasons, _shown_text(notes, _EVENT_CHARS_MAX)))
    other = _other_run(ctx, scope, facts, peers, has_words=has_words)
    question = LessonQuestion(run, other, _LESSONS_MAX)
    asked = ask_writer(writer, question, policy, ctx.counter)
    failed = {} if asked.error is None else {"failed": asked.error.code, "why": _shown_text(asked.error.message, 300)}
    checked = _checked(ctx, facts, question, peers, () if asked.answer is None else asked.answer.proposals)
    report = LessonReport.from_wire(
        {
            "report_id": ctx.ids.new("lrp"),
            "trace_id": facts.trace_id,
            **({} if other is None else {"other_trace_id": other.trace_id}),
            "writer": f"model:{_shown_text(writer.name, 120)}",
            "created_at": ctx.now(),
            "calls": asked.calls,
            "tokens_in": asked.tokens_in,
            "tokens_out": asked.tokens_out,
            "is_estimated": asked.is_estimated,
            "malformed": 0 if asked.answer is None else asked.answer.malformed,
            **failed,
            "proposals": [_told_of(proposal, refusal) for proposal, refusal in checked],
        }
    )
    traces = tuple(each.trace_id for each in question.runs)
    lessons = [
        CheckedLesson(proposal, "model", traces, shared_keys_of(facts), by=report.writer)
        for proposal, refusal in checked
        if refusal is None
    ]
    return LessonsAsked(tuple(lessons), report)


# -- shown events -------------------------------------------------------------------------------------


def shown_run(facts: RunFacts, entries: Sequence[LedgerEntry], *, has_words: bool) -> ShownRun:
    """The part of a run that is shown: its first events, failures, and last events."""
    events = [
        event for entry in entries if (event := shown_event(entry, _EVENT_CHARS_MAX, has_words=has_words)) is not None
    ]
    kept = set(range(min(_FIRST, _EVENTS_MAX)))
    for place in (*(place for place, event in enumerate(events) if event.ok is False), *reversed(range(len(events)))):
        if len(kept) >= _EVENTS_MAX:
            break
        kept.add(place)
    chosen = tuple(event for place, event in enumerate(events) if place in kept)
    return ShownRun(facts.trace_id, facts.passed, (*facts.violated, *facts.reason_codes), chosen)


def shown_event(entry: LedgerEntry, chars_max: int, *, has_words: bool) -> ShownEvent | None:
    """An event as shown; None if it does not concern how the work was done."""
    if entry.body is None:
        return None
    tool, args = _call_of(entry)
    if not has_words:
        ok = entry.tool.ok if entry.tool is not None else None
        return None if tool is None else ShownEvent(entry.id, "tool", _shown_text(tool, 120), ok=ok)
    if tool is None and entry.kind != "message":
        return None
    is_own = entry.role == "assistant" or (entry.role == "user" and entry.trust == "user")
    text = _shown_text(entry.content or "", chars_max, is_own=is_own and INSTRUCTION_LIKE not in entry.flags)
    who = _WHO.get(entry.role, "other")
    if tool is None:
        return ShownEvent(entry.id, who, text=text) if text else None  # type: ignore[arg-type]
    return ShownEvent(
        entry.id,
        "tool",
        _shown_text(tool, 120),
        _shown_text(args, chars_max),
        entry.tool.ok if entry.tool is not None else None,
        text,
    )


def _call_of(entry: LedgerEntry) -> tuple[str | None, str]:
    if entry.tool is not None and entry.kind == "tool_result":
        return entry.tool.name, canonical_text(entry.tool.args) if entry.tool.args else ""
    action = None if entry.kind != "step" or entry.step is None else entry.step.action
    if action is None:
        return None, ""
    named = action.get("tool")
    return (named if isinstance(named, str) and named else "act"), canonical_text(action)


def _shown_text(text: str, chars_max: int, *, is_own: bool = False) -> str:
    """A text on one line, without secrets; third-party text is cut where it gives instructions."""
    line = redact_text(" ".join(text[: 64 * chars_max].split()), Counter())
    if not is_own or has_injection_form(line):
        line = without_orders(line)
    half = chars_max // 2
    return line if len(line) <= chars_max else f"{line[:half]} … {line[-half:]}"


def _other_run(
    ctx: Context, scope: Scope, facts: RunFacts, peers: Sequence[RunFacts], *, has_words: bool
) -> ShownRun | None:
    """The nearest run with the opposite result: of the same task, else the most similar; ties: newest."""
    others = [peer for peer in peers if peer.verdict is not None and peer.passed is not facts.passed]
    near = _nearness(facts)
    for peer in sorted(others, key=near, reverse=True)[:_NEAR_MAX]:  # stable: peers come newest first
        entries = _entries_of(ctx, scope, peer.trace_id, is_own=has_words)
        shown = shown_run(peer, entries, has_words=has_words)
        if shown.events:
            return shown
    return None


def _nearness(facts: RunFacts) -> Callable[[RunFacts], tuple[bool, float]]:
    task, words = fold_text(facts.x_summary), _marks(facts)

    def near(peer: RunFacts) -> tuple[bool, float]:
        theirs = _marks(peer)
        return fold_text(peer.x_summary) == task, len(words & theirs) / (len(words | theirs) or 1)

    return near


def _marks(facts: RunFacts) -> set[str]:
    """The properties by which runs are compared: words of the task, tools, facts known in advance."""
    tools = {feature.name for feature in facts.features if feature.before or feature.name.startswith("tool:")}
    return {stem(word) for word in fold_text(facts.x_summary).split()} | tools


def _entries_of(ctx: Context, scope: Scope, trace_id: str, *, is_own: bool) -> list[LedgerEntry]:
    """The entries of a run by its log; empty if it is gone. Texts are only taken from the same user's runs."""
    item = ctx.engine.read(scope.tenant_id, lambda reader: latest(reader, trace_id))
    if item is None or item.body is None or item.run_id is None:
        return []
    try:
        of = get_run(ctx, scope.tenant_id, item.run_id).scope
    except NotFound:
        return []
    if is_own and of.user_id != scope.user_id:
        return []
    return list(list_entries(ctx, scope.tenant_id, of.user_id, of.session_id, of.run_id))


# -- applicability ------------------------------------------------------------------------------------


def standards_of(ctx: Context, *, is_bound: bool) -> Standards:
    """The requirements on every lesson, by any writer."""
    return Standards(
        tokens_max=_TEXT_TOKENS_MAX,
        count=ctx.counter.count,
        secret_in=find_secret,
        is_order=has_injection_form,
        is_bound=is_bound,
    )


def _checked(
    ctx: Context,
    facts: RunFacts,
    question: LessonQuestion,
    peers: Sequence[RunFacts],
    proposals: Sequence[LessonProposal],
) -> list[tuple[LessonProposal, Refused | None]]:
    standards = standards_of(ctx, is_bound="intent_key" in shared_keys_of(facts))
    called = frozenset(
        feature.name.removeprefix("tool:")
        for peer in peers
        if peer.verdict is not None
        for feature in peer.features
        if feature.name.startswith("tool:")
    )
    found = []
    for place, proposal in enumerate(proposals):
        refusal = check_lesson(proposal, question.runs, called, standards)
        if refusal is None and place >= question.lessons_max:
            refusal = Refused("too_many", REASONS["too_many"])
        found.append((proposal, refusal))
    return found


def _told_of(proposal: LessonProposal, refusal: Refused | None) -> dict[str, object]:
    """A proposal as listed, without its text if that may not be stored."""
    plain: dict[str, object] = {
        "text": proposal.text[:400] if _may_be_kept(proposal.text) else "",
        "when": proposal.when[:200] if _may_be_kept(proposal.when) else "",
        "event_ids": [id_ for id_ in proposal.event_ids[:24] if is_id(id_) and _may_be_kept(id_)],
        "fate": "written" if refusal is None else "refused",
    }
    if refusal is None:
        return plain
    why = refusal.why if _may_be_kept(refusal.why) else REASONS[refusal.code]
    return plain | {"code": refusal.code, "why": why}


def _may_be_kept(text: str) -> bool:
    """Return whether a text contains neither secrets nor instructions; writing to a bank has no other check."""
    return find_secret(text) is None and not has_injection_form(text)


def with_fates(asked: LessonsAsked, kept: Sequence[KeptLesson]) -> LessonReport:
    """The report, completed with the results of the accepted lessons."""
    fates = iter(kept)
    proposals = [each if each.fate == "refused" else _with_fate(each, next(fates)) for each in asked.report.proposals]
    return asked.report.model_copy(update={"proposals": tuple(proposals)})


def _with_fate(proposed: ProposedLesson, kept: KeptLesson) -> ProposedLesson:
    update: dict[str, object] = {"fate": kept.fate, "lesson_id": kept.id}
    if kept.fate == "refused":
        update |= {"code": "tried_before", "why": f"{REASONS['tried_before']}: {kept.id}"}
    return proposed.model_copy(update=update)


# -- writers ------------------------------------------------------------------------------------------

_ASKING_TOKENS = 16
"""Upper estimate of the tokens a chat adds to its messages."""
_PROPOSALS_MAX = 64
_USUAL = WritingPolicy.model_construct()
_HINT = "such as http://localhost:8080/v1#qwen, or a function of messages that answers in text"


class Asked(NamedTuple):
    """The result of a question and its cost. Without an answer there is an error."""

    answer: LessonAnswer | None
    error: ModelFailure | None
    calls: int
    tokens_in: int
    tokens_out: int
    is_estimated: bool


def lesson_writer(given: Any, policy: WritingPolicy = _USUAL) -> LessonWriter | None:
    """Convert the caller's argument to a lesson writer; None for none. Nothing is contacted before it is asked."""
    if given is None:
        return None
    if isinstance(given, str):
        chat = load_chat(
            given,
            "$.lessons",
            timeout_s=policy.timeout_s,
            attempts_max=policy.attempts_max,
            tokens_max=policy.answer_tokens_max,
        )
        return _Served(chat)
    looked_at = caught(lambda: _writer_of(given))
    if looked_at.exception() is None and (writer := looked_at.result()) is not None:
        return cast("LessonWriter", writer)
    raise InvalidInput(
        "who writes lessons is an address, a function of messages, or able to write", path="$.lessons", hint=_HINT
    )


def _writer_of(given: Any) -> LessonWriter | None:
    if callable(getattr(given, "write", None)) and isinstance(getattr(given, "name", None), str):
        return cast("LessonWriter", given)
    return _Chat(given) if callable(given) else None


class _Served:
    """A model on a server."""

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat
        self.name = chat.name

    def write(self, question: LessonQuestion, tokens_max: int, /) -> LessonAnswer:
        form = "lessons", answer_schema(question)
        said = self._chat.ask(messages_of(question), form=form, tokens_max=tokens_max)
        try:
            answer = read_answer(said.text, question)
        except ModelMalformed as error:  # report the usage nevertheless
            error.details |= said.usage
            raise
        return answer._replace(tokens_in=said.tokens_in, tokens_out=said.tokens_out)


class _Chat:
    """A sync or async function from chat messages to text."""

    def __init__(self, chat: Callable[[list[dict[str, str]]], Any]) -> None:
        self._chat = chat
        self.name: str = getattr(chat, "name", None) or getattr(chat, "__name__", None) or type(chat).__name__

    def write(self, question: LessonQuestion, _tokens_max: int, /) -> LessonAnswer:
        said = settled(lambda: self._chat(messages_of(question)))
        if not isinstance(said, str):
            raise ModelMalformed("the model's function answers no text")
        return read_answer(said, question)


def ask_writer(writer: LessonWriter, question: LessonQuestion, policy: WritingPolicy, counter: TokenCounter) -> Asked:
    """Ask, and once more if the answer cannot be parsed. Failures are returned, not raised."""
    measure = sum(counter.count_many([message["content"] for message in messages_of(question)])) + _ASKING_TOKENS
    calls = tokens_in = tokens_out = 0
    is_estimated = False
    while True:
        outcome = outcome_of(lambda: writer.write(question, policy.answer_tokens_max), policy.timeout_s)
        error = _failure(outcome.exception(), writer) if outcome.done() else _late(policy.timeout_s)
        answer = outcome.result() if error is None else None
        if answer is not None and not _is_answer(answer):
            answer, error = None, ModelMalformed("who writes lessons answers no LessonAnswer")
        calls += 1
        took = (answer.tokens_in, answer.tokens_out) if answer is not None else _spent(error)
        said = 0 if answer is None else counter.count(answer.said)
        tokens_in += measure if took[0] is None else took[0]
        tokens_out += said if took[1] is None else took[1]
        is_estimated = is_estimated or None in took
        if not isinstance(error, ModelMalformed) or calls >= policy.attempts_max:
            kept = answer if answer is None else answer._replace(proposals=answer.proposals[:_PROPOSALS_MAX])
            return Asked(kept, error, calls, tokens_in, tokens_out, is_estimated)


def _is_answer(given: Any) -> bool:
    """Return whether the answer is well-formed: the writer may be a caller's class."""
    if not isinstance(given, LessonAnswer) or not isinstance(given.proposals, tuple):
        return False
    figures = given.malformed, given.tokens_in or 0, given.tokens_out or 0
    are_counts = all(type(each) is int and each >= 0 for each in figures)
    return are_counts and isinstance(given.said, str) and all(map(_is_proposal, given.proposals))


def _is_proposal(given: Any) -> bool:
    if not isinstance(given, LessonProposal) or not isinstance(given.event_ids, tuple):
        return False
    return all(isinstance(each, str) for each in (given.text, given.when, *given.event_ids))


def _failure(error: BaseException | None, writer: LessonWriter) -> ModelFailure | None:
    if error is None or isinstance(error, ModelFailure):
        return error
    if isinstance(error, MunimentError):
        return ModelRefused(f"{writer.name} refused: {error.message:.200}")
    return ModelUnreachable(f"{writer.name} raised {type(error).__name__}")


def _late(timeout_s: float) -> ModelFailure:
    return ModelUnreachable(f"no answer after {timeout_s:g} s", details={"is_late": True})


def _spent(error: ModelFailure | None) -> tuple[int | None, int | None]:
    told = {} if error is None else error.details or {}
    found = [told.get(name) for name in ("tokens_in", "tokens_out")]
    asked, said = (each if type(each) is int else None for each in found)
    return asked, said
