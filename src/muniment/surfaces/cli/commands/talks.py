"""`run turns`, `store overview`, `store attention`: what was said and composed, how much there is, and what waits."""

from __future__ import annotations

from collections.abc import Iterator

from muniment.surfaces.cli.calling import Call, Command
from muniment.surfaces.cli.parameters import Word
from muniment.surfaces.cli.terminal import counted, one_line, when

__all__ = ["attention", "overview", "turns"]


def _show_turns(call: Call) -> Iterator[str]:
    from muniment.surfaces.cli.commands.memory import entry_line

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


def _show_overview(call: Call) -> Iterator[str]:
    held = call.answer
    for name in ("users", "sessions", "runs", "events", "builds"):
        more = " or more" if name in held.at_least else ""
        yield f"{name + ':':<10} {getattr(held, name)}{more}"
    for name, at in (("last run", held.last_run_at), ("last build", held.last_build_at)):
        if at is not None:
            yield f"{name}: {when(at)}"


overview = Command("memory.overview", _show_overview, document="overview")

_WORDS = {
    "run_locked": "LOCKED RUN",
    "canary_decided": "TRIAL DECIDED",
    "fact_disputed": "DISPUTED FACT",
    "candidate_waiting": "CANDIDATE",
    "scrub_due": "SCRUB DUE",
}


def _show_attention(call: Call) -> Iterator[str]:
    for each in call.answer:
        whose = each.user_id or each.agent_id or each.level or ""
        yield f"{_WORDS[each.kind]:<14} {each.id}  {when(each.at)}  {whose}  {one_line(each.text, 100)}"
    yield f"{counted(len(call.answer), 'thing')} waiting" if call.answer else "nothing waits"


attention = Command(
    "memory.attention",
    _show_attention,
    document="attention",
    words={"user_id": Word("What waits of one user (default: of the tenant).")},
)
