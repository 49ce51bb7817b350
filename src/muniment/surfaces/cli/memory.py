"""`search`, `facts`, `profile`, `extract` and `memory …`: the contents of a user's memory, and their sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from muniment.errors import InvalidInput
from muniment.surfaces.cli._command import Call, Command, OptionSpec
from muniment.surfaces.cli._views import entry_line, hit_lines, source_line
from muniment.surfaces.cli.terminal import counted, one_line, progress_bar, strong, when

if TYPE_CHECKING:
    from muniment.contracts.packet import Fact
    from muniment.memory._fact_records import Candidate, Unheard
    from muniment.memory.extraction import ExtractionReport

__all__ = ["candidates", "episodes", "events", "extract", "extract_pending", "facts", "profile", "search"]

_EXTRACT_SESSION = "extract"
_EPISODE_LINES = 3
_BUDGET_HINT = "such as --budget 20, or --budget calls=20,tokens=50000"
_PRICES = {"price_in": "usd_per_million_in", "price_out": "usd_per_million_out"}


# -- search and facts ---------------------------------------------------------------------------------


def _show_hits(call: Call) -> Iterator[str]:
    for number, hit in enumerate(call.answer, 1):
        yield from hit_lines(number, hit)
    if not call.answer:
        yield f"nothing found in the memory of {call.user}"


search = Command(
    "run.search",
    _show_hits,
    noun="hits",
    arguments={"query": "QUERY"},
    about="In all sessions, best first, each with its reason. QUERY may be `-`: standard input.",
)


def _show_facts(call: Call) -> Iterator[str]:
    by_key = sorted(call.answer, key=lambda fact: fact.fact_key)  # stable: versions of a key stay in their order
    for name, group in groupby(by_key, key=lambda fact: fact.fact_key):
        yield strong(name)
        for fact in group:
            yield from _fact_lines(call, fact)
    if not call.answer:
        held = "" if call.typed.get("include_all") else " hold now; --all shows earlier ones"
        yield f"no facts about {call.user}{held}"


def _fact_lines(call: Call, fact: Fact) -> Iterator[str]:
    from muniment.packets.page import value_text

    level = f", {fact.scope_level} level" if fact.scope_level not in (None, "user") else ""
    sure = "" if fact.confidence is None else f", confidence {fact.confidence:g}"
    span = ""
    if fact.validity is not None:
        span += f" from {when(fact.validity.valid_from)}" if fact.validity.valid_from else ""
        span += f" until {when(fact.validity.valid_to)}" if fact.validity.valid_to else ""
    yield f"  {one_line(value_text(fact.value))}  [{fact.status}{span}{sure}{level}]  {fact.fact_id}"
    if fact.notes:
        yield f"      note: {one_line(fact.notes)}"
    for source in fact.sources:
        yield f"      from {source_line(call, source)}"


facts = Command(
    "run.facts",
    _show_facts,
    noun="facts",
    options={
        "key": OptionSpec("One key, such as user.city.", metavar="KEY"),
        "include_all": OptionSpec("Also what no longer holds: superseded, disputed, retracted."),
        "at": OptionSpec("What held at this time, by today's knowledge (ISO 8601).", metavar="TIME"),
    },
    about="Value, status, validity, confidence, sources; the oldest value of each key first.",
)


def _show_profile(call: Call) -> Iterator[str]:
    found = call.answer
    for number, line in enumerate(found.lines, 1):
        who = "" if line.speaker is None else f"{strong(line.speaker)}: "
        yield f"{number:>2}  {line.ts[:10]}  {who}{one_line(line.text, 400)}  {line.event_id}"
    if not found.enabled:
        yield f"the policy switches the profile of {found.user_id} off"
    elif not found.lines:
        yield f"no statements of {found.user_id} about themselves yet"


profile = Command(
    "memory.profile",
    _show_profile,
    options={
        "max_tokens": OptionSpec("The token budget."),
        "purpose": OptionSpec("What the policy lets a packet for this purpose carry: planner, tool or responder."),
    },
    about="What protects them and their lasting wishes are chosen first, then what is new; printed oldest first.",
)


# -- extraction by rule -------------------------------------------------------------------------------


class _Extracted(NamedTuple):
    messages: int
    candidates: list[Candidate]
    unheard: list[Unheard]


def _extract(call: Call, *, session_id: str | None = None) -> _Extracted:
    mem = call.memory
    entries = mem.ledger.entries(user_id=call.user, session_id=session_id, tenant_id=call.tenant)
    messages = [entry.id for entry in entries if entry.kind == "message" and not entry.is_forgotten]
    if not messages:
        return _Extracted(0, [], [])
    run = mem.run(user_id=call.user, agent_id=call.settings.agent, session_id=_EXTRACT_SESSION, tenant_id=call.tenant)
    return _Extracted(len(messages), run.extract(messages), run.memory.unheard(messages))


def _show_extracted(call: Call) -> Iterator[str]:
    found: _Extracted = call.answer
    for candidate in found.candidates:
        yield from _candidate_lines(candidate)
    if not found.candidates:
        yield f"no plain facts about {call.user} in {counted(found.messages, 'message')}"
    for each in found.unheard:
        yield f"left aside: {each.messages} of {one_line(each.speaker, 60)!r} ({each.why})"
    if found.unheard:
        yield "hint: remember the name as user.name to have these read, or record messages without a speaker"


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
    about="Looks for facts in a user's messages, by rule, and proposes each as a candidate (`muniment extract` has a "
    "model read what is pending). Those that the policy is sure of become facts at once, the others wait for a "
    "decision. What was proposed before is not proposed again. Messages of role user speak for the user, unless their "
    "speaker has another name: those are counted, with the reason.",
)
candidates = Command(
    "run.candidates",
    _show_candidates,
    noun="candidates",
    options={
        "status": OptionSpec("Only this status."),
        "key": OptionSpec("One key, such as user.city.", metavar="KEY"),
    },
)


# -- extraction by a model ----------------------------------------------------------------------------


def _budget_given(given: Sequence[str]) -> dict[str, Any]:
    """Read `20` as calls; `calls=20,usd=0.5,price_in=0.15,price_out=0.6` as limits by name, and prices."""
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
    with progress_bar("reading", None, quiet=call.as_json) as advance:
        return ask(progress=advance)


def _show_read(call: Call) -> Iterator[str]:
    from muniment.memory._extract_checks import REASONS

    report: ExtractionReport = call.answer
    yield f"{counted(report.turns, 'turn')} read by {report.extractor}"
    if report.calls:
        cost = "" if report.usd is None else f", {report.usd:.6f} USD"
        about = "about " if report.is_estimated else ""
        yield f"  {counted(report.calls, 'call')}, {about}{report.tokens_in} tokens in, {report.tokens_out} out{cost}"
        waiting = report.accepted - report.promoted
        yield f"  proposed {report.proposed}: {report.promoted} facts, {waiting} wait for a decision"
        reasons: dict[str, str] = {str(name): words for name, words in REASONS.items()}
        for reason, count in report.rejected.items():
            yield f"  rejected {count}: {reasons.get(reason, reason)}"
    if report.by_patterns:
        yield f"  {counted(report.by_patterns, 'candidate')} by rule"
    if report.withheld:
        yield f"  passed over: {counted(report.withheld, 'turn')} (not the user's own, empty, or like instructions)"
    if report.unreadable:
        yield f"  unreadable: {counted(report.unreadable, 'turn')} for which the model gave no valid answer"
    if report.left:
        other = f", {report.claimed} of them by another worker" if report.claimed else ""
        why = {"done": "", "claimed": ""}.get(report.stopped, f"stopped at the limit of {report.stopped}; ")
        yield f"{why}{counted(report.left, 'turn')} still to be read{other}"
    else:
        yield "nothing is left to be read"


extract_pending = Command(
    "memory.extract_pending",
    _show_read,
    around=_read_pending,
    left_out=("progress",),
    options={
        "user_id": OptionSpec("One user (default: all of the tenant)."),
        "model": OptionSpec(
            "A model behind a server of OpenAI's kind (default: the setting extract_model, else the rules alone).",
            metavar="URL#NAME",
            type=click.STRING,
        ),
        "budget": OptionSpec(
            "Calls, or limits: calls, turns, tokens, tokens_in, tokens_out, usd (with price_in and price_out, USD for "
            "a million tokens); repeatable.",
            metavar="LIMIT",
            type=click.STRING,
            read=_budget_given,
            many=True,
        ),
    },
    about="Reads the messages of users that this model has not read yet. Each proposal is checked against its quote: "
    "what does not hold is declined with the reason, what holds becomes a fact where the policy is sure, and waits for "
    "a decision otherwise (`muniment memory candidates`). Stopped or killed, the next call goes on; several may work "
    "at once. The key of a server is read from OPENAI_API_KEY.",
)


# -- episodes and events ------------------------------------------------------------------------------


def _episodes_in_order(_: Call, ask: Callable[[], list[Any]]) -> list[Any]:
    return sorted(ask(), key=lambda episode: (episode.start, episode.session_id, episode.episode_id))


def _show_episodes(call: Call) -> Iterator[str]:
    for episode in call.answer:
        until = "" if episode.end[:16] == episode.start[:16] else f" – {_minute(episode.end)}"
        began = _minute(episode.start) if until else when(episode.start)
        labels = ", ".join([*episode.tags, *episode.entities])
        size = counted(len(episode.sources), "turn")
        head = strong(f"{began}{until}  {episode.session_id}")
        yield f"{head}  {size}{f'  ({labels})' if labels else ''}  {episode.episode_id}"
        for line in episode.lines[:_EPISODE_LINES]:
            yield f"    {one_line(line.text)}  · {line.evidence_id}"
    if not call.answer:
        session = call.typed.get("session_id")
        yield f"no episodes in {f'the session {session} of' if session else 'the memory of'} {call.user}"


def _minute(ts: str) -> str:
    """A time to the minute, even at midnight, so that two times shown together have the same form."""
    return f"{ts[:10]} {ts[11:16]}"


def _episodes_document(call: Call) -> dict[str, Any]:
    """The episodes without their score, which only a query gives."""
    wires = (each.to_wire() for each in call.answer)
    return {"episodes": [{name: value for name, value in wire.items() if name != "score"} for wire in wires]}


episodes = Command(
    "memory.episodes",
    _show_episodes,
    around=_episodes_in_order,
    document=_episodes_document,
    about="In the order they happened. A long silence within a session ends one.",
)


def _show_events(call: Call) -> Iterator[str]:
    nothing = True
    for entry in call.answer:
        nothing = False
        yield entry_line(entry)
    if nothing:
        yield f"no events of {call.user}"


events = Command("memory.entries", _show_events, noun="events")
