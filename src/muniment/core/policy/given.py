"""A policy as callers give it: one rule, whichever door it comes in by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from muniment.errors import InvalidInput, InvalidRecord, NotFound

if TYPE_CHECKING:
    from muniment.core.policy.policy import Policy

__all__ = ["policy_given", "policy_named"]

_HINT = "give a muniment.Policy, or an object of what differs from the default"


def policy_given(given: Policy | Mapping[str, Any]) -> Policy:
    """A policy as it is, or of an object that names what differs from the default."""
    from muniment.core.policy.policy import Policy

    if isinstance(given, Policy):
        return given
    if not isinstance(given, Mapping):
        raise InvalidInput(f"a policy is an object, not {type(given).__name__}", path="$.policy", hint=_HINT)
    try:
        return Policy.from_wire(dict(given))
    except InvalidRecord as error:
        raise error.within("$.policy") from None


def policy_named(own: Policy, given: str | Policy | Mapping[str, Any]) -> Policy:
    """The store's own policy, where `given` is its id; else the policy that `given` is or describes."""
    if not isinstance(given, str):
        return policy_given(given)
    if given not in ("default", own.policy_id):
        raise NotFound(f"no policy {given!r:.60} is known here", path="$.policy", hint=_HINT)
    return own
