"""The number of the composer: what another one made is read as it was kept; one that writes otherwise has another."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from muniment.core.canonical import digest
from muniment.handles.memory import Memory
from muniment.packets import builds

ASKED = "Which call cancelled order ORD123, and where does Ana live?"
NOW = datetime(2026, 3, 9, 12, tzinfo=UTC)
WRITTEN = {11: "8ac024f2482263dceac16051706668231c9c99a708eb828908af9f211156c108"}
"""What the composer of this number writes. Where this fails because packets are meant to read otherwise, give
`COMPOSER` another number and put down what it writes: else builds of before are said to have been changed.
"""


def told(mem: Memory) -> Any:
    run = mem.run(user_id="ana", session_id="s1")
    run.observe("user", "Ana lives in Porto. See you next Friday.", ts="2026-03-02T10:00:00Z")
    run.observe_tool("cancel_order", args={"order": "ORD123"}, content="Error: pending", ok=False)
    run.observe_tool("cancel_order", args={"order": "ORD123"}, content='{"status": "cancelled"}')
    return mem.run(user_id="ana", session_id="asking")


@pytest.mark.req("MP-16")
def test_what_another_composer_made_is_read_as_it_was_kept(mem: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    run = told(mem)
    with monkeypatch.context() as earlier:
        earlier.setattr(builds, "COMPOSER", builds.COMPOSER - 1)
        made = run.compose("planner", query=ASKED, max_tokens=512)
    monkeypatch.setattr(builds, "compose", None)  # another one composes otherwise
    again = mem.replay(made.id)
    assert (again.packet_bytes, again.text, again.marks) == (made.packet_bytes, made.text, made.marks)
    assert again.to_openai() == made.to_openai()


@pytest.mark.req("MP-16")
def test_a_composer_that_writes_otherwise_has_another_number(make: Callable[..., Memory]) -> None:
    run = told(make("memory"))
    made = [run.compose(purpose, query=ASKED, max_tokens=512, now=NOW) for purpose in builds.PURPOSES]
    written = digest(b"\n".join(part for each in made for part in (each.packet_bytes, each.text.encode()))).hex()
    assert {builds.COMPOSER: written} == WRITTEN
