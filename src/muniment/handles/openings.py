"""Checks of the arguments of `open`, before anything is opened: ports and keys.

Whatever only some processes need is imported where it is needed (decision 0001).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import tzinfo
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from muniment.errors import InvalidInput, MissingDependency

if TYPE_CHECKING:
    from muniment.core.ports.models import TokenCounter

__all__ = [
    "StoreKey", "check_lessons", "check_ports", "counter_given", "has_room", "proof_key_given", "require_room",
    "zone_given",
]  # fmt: skip

StoreKey = str | Callable[[], bytes | str | Sequence[bytes | str]]
"""The location of a key that is kept outside the store."""


def has_room(room: str) -> bool:
    """Return whether this installation has an optional room, such as `learning`."""
    return find_spec(f"muniment.{room}") is not None


def require_room(room: str, what: str) -> None:
    """Raise `MissingDependency` if this room is not installed; `what` is the feature that needs it."""
    if not has_room(room):
        raise MissingDependency(
            f"{what} needs muniment.{room}, which this installation leaves out", hint="pip install muniment"
        )


def check_ports(ids: Any, tokens: Any) -> None:
    """Check that each given port can do its job, before anything is opened."""
    wanted = (
        ("ids", ids, ("new", "salts")),
        ("tokens", tokens, ("name", "is_exact", "count")),
    )
    for name, given, needs in wanted:
        lacks = [need for need in needs if not hasattr(given, need)]
        if given is not None and not (name != "ids" and isinstance(given, str)) and lacks:
            raise InvalidInput(
                f"{name} lacks {', '.join(lacks)}", path=f"$.{name}", hint="docs/guides/library.md says what"
            )


def check_lessons(lessons: Any) -> None:
    if lessons is not None:
        require_room("learning", "a model that writes lessons")
        from muniment.learning.lesson_asking import lesson_writer

        lesson_writer(lessons)


def proof_key_given(proof_key: Any) -> bytes:
    """Read the key at once, so that asking for proofs with a key never yields proofs without one."""
    from muniment.core.outside.keys import KEY_FORM, NoKey, key_source

    try:
        return key_source(proof_key, "proof_key")()[0]
    except NoKey as missing:
        raise InvalidInput(str(missing), path="$.proof_key", hint=KEY_FORM) from None


def zone_given(name: Any) -> tzinfo:
    """The time zone with this name in the IANA database."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, TypeError, AttributeError, OSError):
        raise InvalidInput(
            f"{name!r:.60} is not the name of a time zone",
            path="$.timezone",
            hint="such as Europe/Berlin; where the system has no time zones: pip install tzdata",
        ) from None


def counter_given(name: str) -> TokenCounter | None:
    """The counter of this name; None for "auto", which always finds one and can wait until something is counted."""
    if name == "auto":
        return None
    from muniment.core.outside.token_counters import load_token_counter

    return load_token_counter(name)
