"""What an act is: planned on the model, done to every store, learnt by the model; and how a plan is drawn."""

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
    """Something that may happen in a story."""

    name: str
    weight: int
    plan: Callable[[Model, Random, int], Args | None]
    """What is called with what; None where the story has nothing yet that it could be about."""
    do: Callable[[Memory, Args], Any] | None = None
    """The call, and what of its answer must be the same on every engine."""
    learn: Callable[[Model, Args, Any], None] = lambda _model, _args, _answer: None
    """What was acknowledged; None instead of an answer: perhaps it was done, perhaps not."""
    seen: Callable[[Memory, Model, Args], Any] | None = None
    """What a call that was broken off has left: the answer it would have given, or None where it was not done."""
    visit: Callable[[Specimen, Model, Args], Any] | None = None
    """Instead of a call: something that is done to each store by itself, with checks of its own."""
    refusals: Callable[[Model, Args], Collection[str]] = lambda _model, _args: ()
    """The codes of the errors one of which it must end in; "" among them means that it may also be done."""
    is_struck: bool = True
    """May a fault be put into it?"""


def draw_owner(model: Model, rng: Random) -> Owner:
    """Anybody; more often somebody who has said something, so that there is something to go on."""
    known = model.owners()
    if known and rng.random() < _KNOWN_SHARE:
        return rng.choice(known)
    return Owner(rng.choice(model.tenants), rng.choice(USERS))


def scope_of(model: Model, owner: Owner, session_id: str) -> Args:
    """The arguments of `mem.run` for the run that is going on in a session."""
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
    """What was said in a session according to the store, and was acknowledged to nobody."""
    entries = mem.ledger.entries(user_id=owner.user_id, session_id=session_id, tenant_id=owner.tenant_id)
    found = []
    for entry in entries:
        if entry.kind not in ("message", "tool_result") or entry.id in model.events:
            continue
        must(not entry.is_forgotten, "an entry that nobody acknowledged was forgotten", entry.id)
        content = mem.ledger.content(entry.id, tenant_id=owner.tenant_id)
        found.append(Event(entry.id, owner, session_id, content, entry.trust, ""))
    return found
