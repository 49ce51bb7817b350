"""Checks of names given by a person, before anything is opened. Imports only the standard library."""

from __future__ import annotations

from muniment.errors import InvalidInput

__all__ = ["checked_name"]


def checked_name(given: str, name: str) -> str:
    """Return a store's or a user's name, checked: not empty, as an unset variable leaves it, and for a store no keyword
    string, which may hold a password.
    """
    if given.strip():
        if name == "db" and "=" in given:  # checked first: further checks load modules that no other call needs
            from muniment.store.engines.opening import refuse_keywords

            refuse_keywords(given, "$.db")
        return given
    raise InvalidInput(f"{name} is given and empty", path=f"$.{name}", hint="leave it out for the default, or name one")
