"""Whose voice a message of role `user` is (MP-17): the user's own, or another person's who speaks in the same place.

Names are all there is to go by. The user's are the id, where it reads as a name, and what is known as `user.name`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Set

__all__ = ["ANOTHER", "OWN", "SEVERAL", "is_nameless", "is_same_name", "speaker_label", "why_unheard"]

OWN = "user"
"""How the user's own turns are labelled."""

ANOTHER = "another name than the user's"
SEVERAL = "several speak for the user here, and none of them by a name known as the user's"

_NAMELESS = frozenset(
    ("", "user", "me", "myself", "human", "i", "customer", "client", "caller", "用户", "用戶", "我")
) | {"사용자", "나", "저"}
"""What chat programs call whoever speaks."""
_NO_IDS = _NAMELESS | {"default", "guest", "admin", "test", "tester", "demo", "anonymous", "owner", "someone", "local"}
"""Ids of users that read as names and are none."""
_WORD = re.compile(r"[^\W\d_]+")
_NAME = re.compile(r"[^\W\d_]{2,}(?:[ .'’-][^\W\d_]+)*")


def is_nameless(speaker: str | None) -> bool:
    """No name, or a word that stands for whoever speaks: `user`, `me`, `human`."""
    return speaker is None or speaker.strip().casefold() in _NAMELESS


def why_unheard(
    speaker: str | None, user_id: str, names: Iterable[str], heard: Callable[[], Set[str | None]]
) -> str | None:
    """Why what a speaker says of themselves is no fact about the user; None where it is.

    `names` are the user's known ones, `heard` tells who else of role `user` speaks in the session. A user who goes by a
    name is heard by that name alone; of one who does not, the only voice of a session is the user's.
    """
    if is_nameless(speaker):
        return None
    assert speaker is not None
    known = tuple(names)
    if any(is_same_name(speaker, name) for name in (user_id, *known)):
        return None
    if known or _is_name(user_id):
        return ANOTHER
    return SEVERAL if len(heard() | {speaker}) > 1 else None


def speaker_label(role: str, speaker: str | None, user_id: str, names: Iterable[str]) -> str:
    """How a turn is labelled for a model: `user` for the user's own words, else the name of who speaks.

    A turn of role `user` is the user's own if it names no speaker, or one who is called like the user: by the user's
    id, or by one of `names`. Whoever else speaks there is another person, whose facts are not the user's.
    """
    if role != "user":
        return speaker or role
    if speaker is None or is_nameless(speaker):
        return OWN
    return OWN if any(is_same_name(speaker, name) for name in (user_id, *names)) else speaker


def _is_name(user_id: str) -> bool:
    """`ana` and `Ana Lopez` are names; `u-123`, an address and `user` are not."""
    return _NAME.fullmatch(user_id) is not None and user_id.casefold() not in _NO_IDS


def is_same_name(speaker: str, name: str) -> bool:
    """All words of one are in the other, or one is an initial and a surname: `jdoe`; addresses up to their `@`."""
    said, known = _words(speaker), _words(name)
    if not said or not known:
        return False
    short = {said[0][0] + said[-1], said[0] + said[-1][0]} if len(said) > 1 else set()
    return set(said) <= set(known) or set(known) <= set(said) or "".join(known) in {"".join(said), *short}


def _words(name: str) -> list[str]:
    words = _WORD.findall(name.casefold().partition("@")[0])
    return [word for word in words if len(word) > 1 or not word.isascii()]
