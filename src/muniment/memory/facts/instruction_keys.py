"""The keys of what a user asks an agent to do from then on: facts that a packet tells as instructions (MP-03)."""

from __future__ import annotations

from muniment.contracts.memory_packet import Fact

__all__ = ["INSTRUCTION_KEYS", "is_instruction"]

INSTRUCTION_KEYS = "user.instruction."
"""What the key of such a fact begins with; behind it stands what it is about."""


def is_instruction(fact: Fact) -> bool:
    """Is it the user's own instruction? What an agent or a tenant shares under such a key is a fact like any other."""
    return fact.fact_key.startswith(INSTRUCTION_KEYS) and (fact.scope_level or "user") == "user"
