"""`search`, `facts` and `memory …`: what a user's memory holds, and what it rests on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from muniment.errors import InvalidInput
from muniment.surfaces.cli.calling import Call, Command
from muniment.surfaces.cli.parameters import Word
from muniment.surfaces.cli.reading import object_given
from muniment.surfaces.cli.terminal import counted, one_line, parts_line, progress_bar, strong, when

if TYPE_CHECKING:
    from muniment.contracts.packet import Fact
    from muniment.memory._fact_records import Candidate, Unheard
    from muniment.memory.extraction import ExtractionReport
    from muniment.memory.search import Hit
    from muniment.memory.turns import EpisodeCandidate
    from muniment.store.ledger import LedgerEntry

__all__ = ["candidates", "content", "entry_line", "episodes", "events", "extract", "facts", "history", "hit_lines"]
__all__ += ["extract_pending", "profile", "record", "search", "source_line", "turns"]

_EXTRACT_SESSION = "extract"
"""The session that the patches of `extract` stand in."""
_EPISODE_LINES = 3
_BUDGET_HINT = "such as --budget 20, or --budget calls=20,tokens=50000"
_PRICES = {"price_in": "usd_per_million_in", "price_out": "usd_per_million_out"}
_UNHEARD_HINT = (
    "hint: remember the name as user.name to have its words read, or record them without a speaker\n"
    "      run.remember('user.name', …, sources=[…])"
)


# -- search -------------------------------------------------------------------------------------------


def _show_hits(call: Call) -> Iterator[str]:
    for number, hit in enumerate(call.answer, 1):
        yield from hit_lines(number, hit)
    if not call.answer:
        yield f"nothing found in the memory of {call.user}"


def hit_lines(number: int, hit: Hit) -> Iterator[str]:
    """A hit, and why it is one."""
    who = hit.speaker or hit.role or hit.kind
    yield f"{number:>2}  {hit.score:.3f}  {when(hit.ts)}  {strong(who)}: {one_line(hit.text, 240)}"
    rank = parts_line(hit.parts)
    where = f" in {hit.session_id}" if hit.session_id else ""
    yield f"           {'; '.join(hit.why) or 'matches'}{f' ({rank})' if rank else ''}{where} · {hit.id}"
    if hit.sources != (hit.id,):
        yield f"           rests on {', '.join(hit.sources)}"


search = Command(
    "run.search",
    _show_hits,
    arguments={"query": "QUERY"},
    document="hits",
    about="In all sessions, best first, each with its reason. QUERY may be `-`: standard input.",
)


# -- facts --------------------------------------------------------------------------------------------


def _show_facts(call: Call) -> Iterator[str]:
    by_key = sorted(call.answer, key=lambda fact: fact.fact_key)  # stable: versions of a key stay in their order
    for name, group in groupby(by_key, key=lambda fact: fact.fact_key):
        yield strong(name)
        for fact in group:
            yield from _fact_lines(call, fact)
    if not call.answer:
        held = "" if call.typed.get("include_all") else " hold now; --all shows what once did"
        yield f"no facts about {call.user}{held}"


def _fact_lines(call: Call, fact: Fact) -> Iterator[str]:
    from muniment.packets.page import value_text

    level = f", {fact.scope_level} level" if fact.scope_level not in (None, "user") else ""
    sure = "" if fact.confidence is None else f", confidence {fact.confidence:g}"
    yield f"  {one_line(value_text(fact.value))}  [{fact.status}{_span(fact)}{sure}{level}]  {fact.fact_id}"
    if fact.notes:
        yield f"      note: {one_line(fact.notes)}"
    for source in fact.sources:
        yield f"      from {source_line(call, source)}"


def source_line(call: Call, event_id: str) -> str:
    """An event that something rests on: when, who and what."""
    from muniment.memory.tool_results import speaker_told

    entry = call.memory.ledger.get(event_id, tenant_id=call.tenant)
    who = speaker_told({} if entry.body is None else entry.body.to_wire(), entry.role)
    return f"{event_id}  {when(entry.ts)}  {who}: {one_line(entry.content or '', 100)}"


def _span(fact: Fact) -> str:
    if fact.validity is None:
        return ""
    start = f" from {when(fact.validity.valid_from)}" if fact.validity.valid_from else ""
    return start + (f" until {when(fact.validity.valid_to)}" if fact.validity.valid_to else "")


facts = Command(
    "run.facts",
    _show_facts,
    document="facts",
    calls=("memory.get",),
    words={
        "key": Word("One key, such as user.city.", metavar="KEY"),
        "include_all": Word("Also what no longer holds: superseded, disputed, taken back."),
        "at": Word("What held then, as far as is known today (ISO 8601).", metavar="TIME"),
    },
    about="Value, status, validity, confidence, sources; of each key the oldest first.",
)

history = Command("run.fact_history", _show_facts, document="facts", arguments={"key": "KEY"}, calls=("memory.get",))


# -- the profile --------------------------------------------------------------------------------------


def _show_profile(call: Call) -> Iterator[str]:
    found = call.answer
    for number, line in enumerate(found.lines, 1):
        who = "" if line.speaker is None else f"{strong(line.speaker)}: "
        yield f"{number:>2}  {line.ts[:10]}  {who}{one_line(line.text, 400)}  {line.event_id}"
    if not found.enabled:
        yield f"the policy switches the profile of {found.user_id} off"
    elif not found.lines:
        yield f"{found.user_id} said nothing yet that fits"


profile = Command(
    "memory.profile",
    _show_profile,
    words={
        "max_tokens": Word("How many tokens at most."),
        "purpose": Word("What the policy lets a packet for this carry: planner, tool or responder."),
    },
    about="What protects them and what they asked for lastingly first, then what is new; printed oldest first.",
)

# -- candidates ---------------------------------------------------------------------------------------


class _Extracted(NamedTuple):
    messages: int
    candidates: list[Candidate]
    unheard: list[Unheard]


def _extract(call: Call, *, session_id: str | None = None) -> _Extracted:
    mem = call.memory
    entries = mem.ledger.entries(user_id=call.user, session_id=session_id, tenant_id=call.tenant)
    said = [entry.id for entry in entries if entry.kind == "message" and not entry.is_forgotten]
    if not said:
        return _Extracted(0, [], [])
    run = mem.run(user_id=call.user, agent_id=call.settings.agent, session_id=_EXTRACT_SESSION, tenant_id=call.tenant)
    return _Extracted(len(said), run.extract(said), run.memory.unheard(said))


def _show_extracted(call: Call) -> Iterator[str]:
    found: _Extracted = call.answer
    for candidate in found.candidates:
        yield from _candidate_lines(candidate)
    if not found.candidates:
        yield f"{found.messages} messages, and nothing in them that is plainly a fact about {call.user}"
    for each in found.unheard:
        yield f"left aside: {each.messages} of {one_line(each.speaker, 60)!r} ({each.why})"
    if found.unheard:
        yield _UNHEARD_HINT


def _candidate_lines(candidate: Candidate) -> Iterator[str]:
    from muniment.packets.page import value_text

    until = f" until {when(candidate.valid_to)}" if candidate.valid_to else ""
    head = f"{candidate.key}: {one_line(value_text(candidate.value))}{until}"
    yield f"{strong(head)}  [{candidate.status}]  {candidate.candidate_id}"
    if candidate.quote is not None:
        yield f"    “{one_line(candidate.quote)}”"
    yield f"    from {', '.join(candidate.sources)}  {when(candidate.proposed_at)}  {candidate.explanation}"


def _show_candidates(call: Call) -> Iterator[str]:
    for candidate in call.answer:
        yield from _candidate_lines(candidate)
    if not call.answer:
        yield f"no candidates for facts about {call.user}"


extract = Command(
    "run.extract",
    _show_extracted,
    function=_extract,
    on="user call",
    calls=("memory.entries", "memory.run", "run.unheard"),
    about="Looks for facts in what a user said, by rule, and proposes each as a candidate (`muniment extract` has "
    "a model read what is pending). Those that the policy "
    "is sure of become facts at once, the others wait for a decision. What was proposed before is not proposed again. "
    "Messages of role user speak for the user, unless their speaker goes by another name: how many were left aside, "
    "and why, is told.",
)

candidates = Command(
    "run.candidates",
    _show_candidates,
    document="candidates",
    words={"status": Word("Only those of this status."), "key": Word("One key, such as user.city.", metavar="KEY")},
)


# -- what a model reads -------------------------------------------------------------------------------


def _budget_given(given: Sequence[str]) -> dict[str, Any]:
    """`20` are calls; `calls=20,usd=0.5,price_in=0.15,price_out=0.6` are limits by name, and prices."""
    limits: dict[str, Any] = {}
    for each in (part.strip() for text in given for part in text.split(",")):
        name, sign, number = each.rpartition("=")
        name = _PRICES.get(name.strip(), name.strip()) if sign else "calls"
        try:
            limits[name] = float(number) if name.startswith("usd") else int(number)
        except ValueError:
            raise InvalidInput(f"{each!r:.60} is not a limit", path="$.budget", hint=_BUDGET_HINT) from None
    return limits


def _read_pending(call: Call, ask: Callable[..., Any]) -> Any:
    with progress_bar("reading", 0, quiet=call.as_json) as advance:
        return ask(progress=advance)


def _show_read(call: Call) -> Iterator[str]:
    report: ExtractionReport = call.answer
    cost = "" if report.usd is None else f", {report.usd:.6f} USD"
    about = "about " if report.is_estimated else ""
    yield f"{counted(report.turns, 'turn')} read by {report.extractor}"
    if report.calls:
        tokens = f"{about}{report.tokens_in} tokens in, {report.tokens_out} out"
        yield f"  {counted(report.calls, 'call')}, {tokens}{cost}"
        waiting = report.accepted - report.promoted
        yield f"  proposed {report.proposed}: {report.promoted} facts, {waiting} wait for a decision"
        for reason, count in report.rejected.items():
            yield f"  rejected {count}: {_words(reason)}"
    if report.by_patterns:
        yield f"  {counted(report.by_patterns, 'candidate')} by rule"
    if report.withheld:
        yield f"  passed over: {counted(report.withheld, 'turn')} (not the user's own, empty, or like instructions)"
    if report.unreadable:
        yield f"  unreadable: {counted(report.unreadable, 'turn')} the model gave no sound answer for"
    if report.left:
        other = f", {report.claimed} of them by another worker" if report.claimed else ""
        why = {"done": "", "claimed": ""}.get(report.stopped, f"stopped at the limit of {report.stopped}; ")
        yield f"{why}{counted(report.left, 'turn')} still to be read{other}"
    else:
        yield "nothing is left to be read"


def _words(reason: str) -> str:
    from muniment.memory._extract_checks import REASONS

    return next((words for name, words in REASONS.items() if name == reason), reason)


extract_pending = Command(
    "memory.extract_pending",
    _show_read,
    around=_read_pending,
    left_out=("progress",),
    words={
        "user_id": Word("One user (default: all of the tenant)."),
        "model": Word(
            "A model behind a server of OpenAI's kind (default: the setting extract_model, else the rules alone).",
            metavar="URL#NAME",
            type=click.STRING,
        ),
        "budget": Word(
            "Calls, or limits: calls, turns, tokens, tokens_in, tokens_out, usd (with price_in and price_out, USD for "
            "a million tokens); repeatable.",
            metavar="LIMIT",
            type=click.STRING,
            read=_budget_given,
            many=True,
        ),
    },
    about="Reads what users said and this model has not read yet. Each proposal is held against its quote: what does "
    "not hold is declined with the reason, what holds becomes a fact where the policy is sure, and waits for a "
    "decision else (`muniment memory candidates`). Stopped or killed, the next call goes on; several may work at "
    "once. The key of a server is read from OPENAI_API_KEY.",
)


# -- episodes and events ------------------------------------------------------------------------------


def _in_order(call: Call) -> list[EpisodeCandidate]:
    return sorted(call.answer, key=lambda episode: (episode.start, episode.session_id, episode.episode_id))


def _show_episodes(call: Call) -> Iterator[str]:
    found = _in_order(call)
    for episode in found:
        yield from _episode_lines(episode)
    if not found:
        session = call.typed.get("session_id")
        yield f"no episodes in {f'the session {session} of' if session else 'the memory of'} {call.user}"


def _episodes_document(call: Call) -> dict[str, Any]:
    """Without what only a query gives."""
    return {
        "episodes": [
            {name: value for name, value in each.to_wire().items() if name != "score"} for each in _in_order(call)
        ]
    }


def _minute(ts: str) -> str:
    """An instant to the minute, at midnight too: of two that are shown together neither loses its time."""
    return f"{ts[:10]} {ts[11:16]}"


def _episode_lines(episode: EpisodeCandidate) -> Iterator[str]:
    until = "" if episode.end[:16] == episode.start[:16] else f" – {_minute(episode.end)}"
    began = _minute(episode.start) if until else when(episode.start)
    labels = ", ".join([*episode.tags, *episode.entities])
    head = strong(f"{began}{until}  {episode.session_id}")
    size = counted(len(episode.sources), "turn")
    yield f"{head}  {size}{f'  ({labels})' if labels else ''}  {episode.episode_id}"
    for line in episode.lines[:_EPISODE_LINES]:
        yield f"    {one_line(line.text)}  · {line.evidence_id}"


episodes = Command(
    "memory.episodes",
    _show_episodes,
    document=_episodes_document,
    words={"user_id": Word("One user.")},
    about="In the order they happened. A long silence within a session ends one.",
)


def entry_line(entry: LedgerEntry) -> str:
    """An event on a line."""
    from muniment.memory.tool_results import speaker_told

    said = "(forgotten)" if entry.is_forgotten else one_line(entry.content or entry.kind, 120)
    who = speaker_told({} if entry.body is None else entry.body.to_wire(), entry.role)
    return f"{entry.id}  {when(entry.ts)}  {entry.scope.session_id}  {who}: {said}"


def _show_events(call: Call) -> Iterator[str]:
    nothing = True
    for entry in call.answer:
        nothing = False
        yield entry_line(entry)
    if nothing:
        yield f"no events of {call.user}"


events = Command("memory.entries", _show_events, document="events", words={"user_id": Word("One user.")})
content = Command(
    "memory.content",
    lambda call: [call.answer],
    arguments={"event_id": "EVENT"},
    document=lambda call: {"event_id": call.typed["event_id"], "content": call.answer},
    words={
        "start": Word("From this character on.", metavar="CHARACTER"),
        "length": Word("No more than so many characters.", metavar="COUNT"),
    },
)


def _show_recorded(call: Call) -> Iterator[str]:
    for entry in call.answer:
        yield entry_line(entry)
    yield f"{counted(len(call.answer), 'event')} new in the session {call.handle.scope.session_id}"


record = Command(
    "run.record",
    _show_recorded,
    on="composing",
    creates=True,
    arguments={"messages": "FILE"},
    document="recorded",
    words={
        "messages": Word(read=object_given("$", "a JSON list of messages")),
        "build": Word("The packet that the last answer was given.", metavar="BUILD"),
    },
    about="FILE (`-` is stdin) is a JSON list: Chat Completions messages, Responses items or Anthropic messages. It is "
    "the whole of the session's conversation: recorded again when it has grown, only what is new is written; one that "
    "was edited writes nothing and says where.",
)


# -- turns and packets ----------------------------------------------------------------------------------


def _show_turns(call: Call) -> Iterator[str]:
    for turn in call.answer:
        if turn.entry is not None:
            yield entry_line(turn.entry)
        elif turn.build is not None:
            build = turn.build
            yield (
                f"{build.build_id}  {when(build.created_at)}  PACKET for {build.purpose}, "
                f"{build.tokens} of {build.tokens_max} tokens  {one_line(build.query, 80)}"
            )
    if not call.answer:
        yield "nothing was said or composed there"


turns = Command(
    "memory.turns",
    _show_turns,
    document="turns",
    words={
        "run_id": Word("The turns of one run."),
        "user_id": Word("The turns of a user, session by session."),
        "around": Word("Those around an event or a build; of a run or a session, around the event with a number."),
    },
)
