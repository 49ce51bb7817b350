"""Acts: planned on the model, run on every store, recorded in the model; and how a plan is drawn."""

from __future__ import annotations

from collections.abc import Callable, Collection
from random import Random
from typing import Any, NamedTuple

from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.testing.simulator.model import Event, Model, Owner, must
from muniment.testing.simulator.specimens import Specimen

__all__ = [
    "CHAT",
    "SESSIONS",
    "USERS",
    "Act",
    "Args",
    "draw_owner",
    "owner_of",
    "run_of",
    "scope_of",
    "sentence",
    "unknown_events",
]

Args = dict[str, Any]
USERS = ("ana", "bob", "cy")
SESSIONS = ("s1", "s2")
CHAT = "chat"
"""The session whose messages are recorded as a growing list."""

_KNOWN_SHARE = 0.7
_SENTENCES = (
    "I live in Berlin and work on {word}.",
    "My sister calls the cat {word}, and I like it.",
    "We meet on Friday at the {word}; please remind me.",
    "Ich wohne jetzt in {word}, nicht mehr in Köln.",
    "The order {word} was sent back last week.",
    "No, that is wrong: it was {word} all the time.",
    "私は{word}に住んでいます。",
    "{word}",
    "What did I say about {word}? I am allergic to nuts.",
)


class Act(NamedTuple):
    """A possible step of a story."""

    name: str
    weight: int
    plan: Callable[[Model, Random, int], Args | None]
    """Plans the call and its arguments; None where the story has nothing yet that it could refer to."""
    do: Callable[[Memory, Args], Any] | None = None
    """Makes the call, and returns the part of its result that must be the same on every engine."""
    learn: Callable[[Model, Args, Any], None] = lambda _model, _args, _answer: None
    """Records the acknowledged result; None instead of a result: perhaps it was done, perhaps not."""
    seen: Callable[[Memory, Model, Args], Any] | None = None
    """Inspects the effect of an interrupted call: the result it would have given, or None where it was not done."""
    visit: Callable[[Specimen, Model, Args], Any] | None = None
    """Instead of a call: an action on each store separately, with its own checks."""
    refusals: Callable[[Model, Args], Collection[str]] = lambda _model, _args: ()
    """Error codes one of which it must end in; "" among them means that it may also succeed."""
    is_struck: bool = True
    """False: no fault is injected into it."""


def draw_owner(model: Model, rng: Random) -> Owner:
    """Draw any owner; more often one with messages, so that there is data to use."""
    known = model.owners()
    if known and rng.random() < _KNOWN_SHARE:
        return rng.choice(known)
    return Owner(rng.choice(model.tenants), rng.choice(USERS))


def scope_of(model: Model, owner: Owner, session_id: str) -> Args:
    """Return the arguments of `mem.run` for the current run of a session."""
    return {
        "tenant_id": owner.tenant_id,
        "user_id": owner.user_id,
        "session_id": session_id,
        "run_id": model.run_of(owner, session_id),
    }


def owner_of(args: Args) -> Owner:
    return Owner(args["scope"]["tenant_id"], args["scope"]["user_id"])


def run_of(mem: Memory, args: Args) -> Run:
    return mem.run(**args["scope"])


def sentence(rng: Random, word: str) -> str:
    return rng.choice(_SENTENCES).format(word=word)


def unknown_events(mem: Memory, model: Model, owner: Owner, session_id: str) -> list[Event]:
    """Return a session's stored events whose writes were never acknowledged."""
    entries = mem.ledger.entries(user_id=owner.user_id, session_id=session_id, tenant_id=owner.tenant_id)
    found = []
    for entry in entries:
        if entry.kind not in ("message", "tool_result") or entry.id in model.events:
            continue
        must(not entry.is_forgotten, "an entry that nobody acknowledged was forgotten", entry.id)
        content = mem.ledger.content(entry.id, tenant_id=owner.tenant_id)
        found.append(Event(entry.id, owner, session_id, content, entry.trust, ""))
    return found
