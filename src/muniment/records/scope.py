"""Where something belongs: tenant > user > session > run, with the agent beside them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from muniment.records.base import Record

__all__ = ["DEFAULT_TENANT", "ID_MAX_CHARS", "IdText", "Scope"]

DEFAULT_TENANT = "default"
ID_MAX_CHARS = 256

IdText = Annotated[
    str,
    StringConstraints(min_length=1, max_length=ID_MAX_CHARS, pattern=r"^[^\x00-\x1f\x7f]+$"),
]
"""A name or id: 1 to 256 characters, none of them a control character."""


class Scope(Record):
    """The full address of an entry. Reads see one tenant and one user; nothing crosses either (LG-02)."""

    tenant_id: IdText = Field(default=DEFAULT_TENANT)
    user_id: IdText
    agent_id: IdText
    session_id: IdText
    run_id: IdText
