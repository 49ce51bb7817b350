"""What holds for every story: the same bytes in another process, and nothing that crosses a scope."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from effort import examples
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.errors import MunimentError, UnknownScope
from muniment.handles.memory import Memory, open

STORY = """
import sys
import muniment
from muniment.core.outside.system import CountingIds, TickingClock

with muniment.open(sys.argv[1], clock=TickingClock(), ids=CountingIds()) as mem:
    odd = {"z", "y", "x", "é", "😀", "\\uffff"}
    for user in ("ana", "bob"):
        run = mem.run(user_id=user, session_id="s1", objective="o", done_definition=dict.fromkeys(odd, 1))
        words = {f"word{n}" for n in range(50)}
        run.observe("user", "hi", tags=words, entities=frozenset(words),
                    metadata={w: {v: 1.5 for v in words} for w in words})
        run.observe_tool("t", args={w: None for w in words}, content="x" * 70_000, idempotency_key="k")
        run.observe("user", "password=" + "hunter2222", metadata={"api_key": "k", "card": 4111111111111111})
        run.finish()
    mem.forget(user_id="bob", session="s1")
    sys.stdout.buffer.writelines(mem.export())
"""


@pytest.mark.req("X-05", "X-06")
def test_the_same_story_gives_the_same_bytes_in_every_process_and_on_both_engines(tmp_path: Any) -> None:
    dumps = set()
    for seed, target in (
        ("0", ":memory:"),
        ("1", ":memory:"),
        ("4242", str(tmp_path / "a.db")),
        ("random", str(tmp_path / "b.db")),
    ):
        environment = os.environ | {"PYTHONHASHSEED": seed, "TZ": "Asia/Tokyo" if seed == "1" else "UTC", "LC_ALL": "C"}
        done = subprocess.run([sys.executable, "-c", STORY, target], env=environment, capture_output=True, check=True)
        lines = [
            line for line in done.stdout.splitlines() if b'"kind":"receipt"' not in line and b'"end":true' not in line
        ]
        dumps.add(b"\n".join(lines))
    assert len(dumps) == 1
    assert len(next(iter(dumps))) > 70_000


USERS, TENANTS, SESSIONS = ("ana", "bob", "Ana"), ("default", "acme"), ("s1", "s2")
where = st.tuples(st.sampled_from(TENANTS), st.sampled_from(USERS), st.sampled_from(SESSIONS))
steps = st.lists(
    st.tuples(
        where,
        st.sampled_from(
            ["observe", "many", "blob", "forget user", "forget session", "forget event", "import", "finish"]
        ),
    ),
    max_size=25,
)


@pytest.mark.req("LG-02")
@settings(max_examples=examples(20), deadline=None)
@given(steps)
def test_nothing_crosses_a_scope(story: list[tuple[tuple[str, str, str], str]]) -> None:
    """Every content says whose it is; whatever is read, exported or forgotten in a scope says that scope."""
    with open(":memory:", clock=TickingClock(), ids=CountingIds()) as mem:
        alive: dict[str, tuple[str, str, str]] = {}
        for (tenant, user, session), what in story:
            act(mem, alive, tenant, user, session, what)
            look(mem, alive)


def act(mem: Memory, alive: dict[str, tuple[str, str, str]], tenant: str, user: str, session: str, what: str) -> None:
    mine = f"<{tenant}/{user}/{session}>"
    run = mem.run(tenant_id=tenant, user_id=user, session_id=session)
    if what in ("observe", "many", "blob"):
        contents = {"observe": [mine], "many": [mine] * 3, "blob": [mine * 5000]}[what]
        for entry in run.observe_many([{"role": "user", "content": content} for content in contents]):
            alive[entry.id] = (tenant, user, session)
    elif what == "finish":
        run.finish()
    elif what == "import":
        lines = exported(mem, tenant_id=tenant, user_id=user)
        if lines:
            mem.import_(lambda: lines)
    else:
        forget(mem, alive, tenant, user, session, what)


def exported(mem: Memory, **scope: str) -> list[bytes]:
    try:
        return list(mem.export(**scope))  # type: ignore[arg-type]
    except UnknownScope:
        return []


def forget(
    mem: Memory, alive: dict[str, tuple[str, str, str]], tenant: str, user: str, session: str, what: str
) -> None:
    if what == "forget event":
        of_others = [id_ for id_, scope in alive.items() if scope[:2] != (tenant, user)]
        for id_ in of_others[:2]:
            with pytest.raises(MunimentError):
                mem.forget(event=id_, user_id=user, tenant_id=tenant)
        return
    selector = {"user_id": user} | ({"session": session} if what == "forget session" else {})
    try:
        mem.forget(**selector, tenant_id=tenant)
    except UnknownScope:
        return
    gone = (tenant, user) if what == "forget user" else (tenant, user, session)
    for id_ in [id_ for id_, scope in alive.items() if scope[: len(gone)] == gone]:
        del alive[id_]


def look(mem: Memory, alive: dict[str, tuple[str, str, str]]) -> None:
    for tenant in TENANTS:
        for user in USERS:
            theirs = {id_ for id_, scope in alive.items() if scope[:2] == (tenant, user)}
            seen = {
                entry.id
                for entry in mem.ledger.entries(user_id=user, tenant_id=tenant)
                if entry.kind == "message" and entry.body
            }
            assert seen == theirs
            for id_ in theirs:
                assert mem.ledger.content(id_, tenant_id=tenant).startswith(f"<{tenant}/{user}/")
            dump = b"".join(exported(mem, tenant_id=tenant, user_id=user))
            for other_tenant in TENANTS:
                for other in USERS:
                    if (other_tenant, other) != (tenant, user):
                        assert f"<{other_tenant}/{other}/".encode() not in dump
    assert mem.verify().ok
