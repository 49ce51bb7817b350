"""What a memory that another system worded says of its user, read by the patterns that read chats.

`User lives in Berlin`, `Lives in Berlin` and `Ana lives in Berlin`, where Ana is the user, are turned into what the
user would say, and read as that. What is not of such a plain form says nothing here: it stays a note, in its own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from muniment.contracts.portable import PortableMemory
from muniment.memory.extraction import patterns
from muniment.memory.facts.candidate_records import Proposal
from muniment.memory.facts.records import INSTRUCTION_KEYS

__all__ = ["facts_noted", "in_first_person"]

OWN_PROFILE = "user profile"
"""What a user wrote of themselves, as ChatGPT keeps it."""
_ABOUT_USER = ("memory", "fact", "archival memory", "memory block human", OWN_PROFILE)
SENTENCES_MAX = 8
"""A memory of more sentences is a document."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_VERBS = {
    "is": "am", "has": "have", "does": "do", "lives": "live", "works": "work", "likes": "like", "loves": "love",
    "dislikes": "dislike", "hates": "hate", "prefers": "prefer", "enjoys": "enjoy", "owns": "own", "speaks": "speak",
    "studies": "study", "plays": "play", "wants": "want", "avoids": "avoid", "takes": "take", "drinks": "drink",
    "eats": "eat", "uses": "use", "runs": "run", "moved": "moved", "doesn't": "don't", "isn't": "am not",
}  # fmt: skip
_USER = r"(?:the\s+)?user"
_BARE = ("allergic to", "vegetarian", "vegan", "married", "single", "divorced", "interested in", "based in")
_OURS = re.compile(r"\b(?:their|his|her)\b", re.IGNORECASE)
_FIRST = re.compile(r"^(?:i|i'm|i’m|i've|my|we|our)\b", re.IGNORECASE)


def facts_noted(memory: PortableMemory, names: Iterable[str] = ()) -> list[Proposal]:
    """The keyed facts about the user that a memory states; nothing that reads like an instruction is one."""
    sentences = [part.strip() for part in _SENTENCE.split(memory.text) if part.strip()]
    if len(sentences) > SENTENCES_MAX or not _is_of_user(memory.speaker):
        return []
    is_own = memory.speaker == OWN_PROFILE or (memory.metadata or {}).get("role") == "user"
    known = list(names)
    said = [turned for sentence in sentences if (turned := in_first_person(sentence, known, is_own=is_own)) is not None]
    ts = memory.ts
    found: dict[tuple[str, str], Proposal] = {}
    for sentence in said:
        for proposal in patterns.propose(sentence, "user", ts):
            if proposal.key.startswith("user.") and not proposal.key.startswith(INSTRUCTION_KEYS):
                found.setdefault((proposal.key, str(proposal.value)), proposal)
    return list(found.values())


def _is_of_user(speaker: str | None) -> bool:
    """Is what is kept under this name about the user? A persona, a project and a summary are about much else."""
    return speaker is None or speaker in _ABOUT_USER


def in_first_person(sentence: str, names: Iterable[str] = (), *, is_own: bool = False) -> str | None:
    """A plain sentence about the user as the user would say it; None of any other.

    `is_own`: they are the user's own words. In anybody else's, `I` is an agent.
    """
    if _FIRST.match(sentence):
        return sentence if is_own else None
    subjects = "|".join([_USER, *(re.escape(name) for name in names if name.strip())])
    owned = re.match(rf"^(?:{subjects})(?:'s|’s)\s+(?P<rest>.+)$", sentence, re.IGNORECASE)
    if owned:
        return f"My {owned['rest']}"
    about = re.match(rf"^(?:{subjects})\s+(?P<rest>.+)$", sentence, re.IGNORECASE)
    rest = about["rest"] if about else sentence
    verb, _, more = rest.partition(" ")
    turned = _VERBS.get(verb.lower().replace("’", "'"))
    if turned is not None and more and (about or verb[:1].isupper()):
        return f"I {turned} {_OURS.sub('my', more)}"
    if about is None and rest.lower().startswith("name is "):
        return f"My {rest[:1].lower()}{rest[1:]}"
    if about is None and rest.lower().startswith(_BARE):
        return f"I am {rest[:1].lower()}{_OURS.sub('my', rest[1:])}"
    return None
