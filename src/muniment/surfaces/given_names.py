"""Names that a person gives on the way in, checked before anything is opened. Only the standard library is loaded."""

from __future__ import annotations

from muniment.errors import InvalidInput

__all__ = ["checked_name"]


def checked_name(given: str, name: str) -> str:
    """What was given for a store or a user: an empty text, such as a variable that was not set leaves, is none. Nor is
    a store named by keywords, with a password in them."""
    if given.strip():
        if name == "db" and "=" in given:  # asked first: what it takes to know more is loaded at no other call
            from muniment.store.engines.opening import refuse_keywords

            refuse_keywords(given, "$.db")
        return given
    raise InvalidInput(f"{name} is given and empty", path=f"$.{name}", hint="leave it out for the default, or name one")
