"""Where a verification stopped that is to go on later, in whichever process, as a text to be handed back. Pure."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Literal, NamedTuple, cast, get_args

from muniment.core.canonical import canonical_bytes, parse_json
from muniment.errors import InvalidInput, InvalidJson

__all__ = ["Phase", "Standing", "read_standing", "written_standing"]

Phase = Literal["chains", "tables", "index", "derived"]
"""What is verified of a tenant, in this order: sessions by their names, what stands beside them, users by theirs."""
_FORMAT = 1


class Standing(NamedTuple):
    """How far a verification has come."""

    asked: str | None
    """The tenant that was asked for; None for all of them."""
    tenant: str | None = None
    phase: Phase = "chains"
    place: tuple[str, ...] = ()
    """The last session, or user, that was looked at."""
    is_broken: bool = False
    """A chain of this tenant does not hold: nothing is made again from it."""


def written_standing(at: Standing) -> str:
    """The standing as a text of letters and digits."""
    return (
        base64.urlsafe_b64encode(canonical_bytes([_FORMAT, *at[:3], list(at.place), at.is_broken])).decode().rstrip("=")
    )


def read_standing(text: Any, tenant_id: str | None) -> Standing:
    """The standing that was written so, of a verification of the same tenants."""
    plain: Any = None
    if isinstance(text, str):
        try:
            plain = parse_json(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
        except (binascii.Error, ValueError, InvalidJson):
            plain = None
    sound = (
        isinstance(plain, list)
        and len(plain) == 6
        and plain[0] == _FORMAT
        and plain[1] == tenant_id
        and isinstance(plain[2], str)
        and plain[3] in get_args(Phase)
        and isinstance(plain[4], list)
        and len(plain[4]) in {"chains": (0, 2), "index": (0, 1)}.get(plain[3], (0,))
        and all(isinstance(name, str) for name in plain[4])
        and isinstance(plain[5], bool)
    )
    if not sound:
        raise InvalidInput(
            "not where a verification of these tenants stopped",
            path="$.resume",
            hint="send back `resume` of the report as it was answered",
        )
    return Standing(tenant_id, plain[2], cast("Phase", plain[3]), tuple(plain[4]), plain[5])
