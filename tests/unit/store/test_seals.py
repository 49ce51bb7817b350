"""What was redacted, kept sealed for its owner (LG-10): who reads it, that it goes with its event, and that neither the
secret nor the key stands anywhere else. A seal that is read is checked (TM-12).
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

import muniment
from dump_lines import plain, resealed
from muniment.core.canonical import canonical_text
from muniment.core.outside.seal_keys import load_seal_keys
from muniment.core.ports.engine import Patch
from muniment.errors import Forgotten, InvalidInput, MissingDependency, NoSealKey, NotFound, StoreDamaged
from muniment.handles.memory import Memory
from muniment.store.items import checked_item, select_items
from muniment.store.ledger.redaction_trace import Trace, redacted_values
from muniment.store.ledger.secrets import redact_text, redact_value

KEY, NEW = "5e" * 32, "a7" * 32
CARD, PASSWORD, TOKEN = "4111 1111" + " 1111 1111", "tru" + "stno1-zq", "ghp_" + "k3Y" * 12
SECRETS = (CARD, PASSWORD, TOKEN)
SAID = f"My card is {CARD}; password={PASSWORD}, thanks."
SEAL = {"ledger": {"redact": "seal"}}


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def mem(request: pytest.FixtureRequest, make: Any) -> Memory:
    made: Memory = make(request.param, policy=SEAL)
    made._ctx.seal_keys = load_seal_keys(lambda: KEY)
    return made


def observe(mem: Memory, user_id: str = "ana", **more: Any) -> str:
    run = mem.run(user_id=user_id, session_id=f"s-{user_id}", run_id=f"r-{user_id}", **more)
    args = {"login": {"token": TOKEN}, "number": 4111111111111111, "api_key": ["short", None]}
    run.observe_tool("pay", content=SAID, args=args)
    return run.observe("user", SAID).id


def values_of(mem: Memory, event_id: str, **scope: str) -> list[tuple[str, Any]]:
    answer = mem.ledger.unseal(event_id, **{"user_id": "ana"} | scope)
    return [(each.place, each.value) for each in answer.values]


def items_of(mem: Memory, tenant_id: str = "default") -> list[Any]:
    return mem._ctx.engine.read(tenant_id, lambda reader: select_items(reader, (("kind", "=", "seal"),)))


@pytest.mark.req("LG-10")
def test_an_owner_reads_what_was_redacted_and_nobody_else(mem: Memory) -> None:
    event = observe(mem, objective=f"log in with password={PASSWORD}")
    entries = list(mem.ledger.entries(user_id="ana"))
    started, tool, said = entries
    assert said.id == event
    assert said.content == "My card is [redacted:card_number]; password=[redacted:password], thanks."
    assert values_of(mem, event) == [("$.content", CARD), ("$.content", PASSWORD)]
    assert [(each.start, each.end) for each in mem.ledger.unseal(event, user_id="ana").values] == [(11, 33), (44, 63)]
    assert values_of(mem, tool.id)[2:] == [
        ("$.tool.args.login.token", TOKEN),
        ("$.tool.args.number", 4111111111111111),
        ("$.tool.args.api_key[0]", "short"),
    ]
    assert values_of(mem, started.id) == [("$.metadata.objective", PASSWORD)]
    assert values_of(mem, mem.run(user_id="ana", run_id="r-ana", session_id="s-ana").observe("user", "hi").id) == []
    other = observe(mem, "bob")
    for scope in ({"user_id": "bob"}, {"user_id": "ana", "tenant_id": "acme"}, {"user_id": "cora"}):
        with pytest.raises(NotFound):
            values_of(mem, event, **scope)
    with pytest.raises(NotFound):
        values_of(mem, other)
    with pytest.raises(InvalidInput):
        values_of(mem, event, user_id="")
    assert mem.verify().ok


@pytest.mark.req("LG-10")
def test_a_seal_opens_at_its_own_place_alone(mem: Memory) -> None:
    """Swapped between users, events, places and within one event: each is damage, not somebody else's secret."""
    mine, theirs = observe(mem), observe(mem, "bob")
    by_event = {json.loads(item.body)["event_id"]: item for item in items_of(mem)}

    def put(event: str, body: dict[str, Any]) -> None:
        made = checked_item(by_event[event]._replace(body=canonical_text(body)))
        where = (("id", "=", made.id), ("version", "=", 1))
        mem._ctx.engine.write(
            "default", lambda tx: tx.do(Patch("items", where, {"body": made.body, "digest": made.digest}))
        )

    own, other = json.loads(by_event[mine].body), json.loads(by_event[theirs].body)
    first, second = own["values"]
    forgeries: list[list[dict[str, Any]]] = [
        other["values"],
        [second, first],
        [first],
        [first | {"place": "$.speaker"}, second],
        [first | {"kind": "api_key"}, second],
        [first | {"start": 12}, second],
        [first | {"data": second["data"]}, second],
        [first | {"data": "AAAA"}, second],
        [first | {"data": "no base64 at all"}, second],
        [{}],
        [],
    ]
    for forged in forgeries:
        put(mine, own | {"values": forged})
        with pytest.raises(StoreDamaged):
            values_of(mem, mine)
    put(mine, own)
    assert values_of(mem, mine)[0] == ("$.content", CARD)
    assert values_of(mem, theirs, user_id="bob")[0] == ("$.content", CARD)


@pytest.mark.req("LG-07")
def test_a_seal_goes_with_its_event(mem: Memory) -> None:
    for what in ("event", "session", "user_id"):
        user = f"u-{what}"
        event = observe(mem, user)
        held = [item for item in items_of(mem) if item.user_id == user]
        assert len(held) == 2
        mem.forget(
            **{"event": {"event": event}, "session": {"session": f"s-{user}"}, "user_id": {"user_id": user}}[what]
        )
        with pytest.raises(Forgotten):
            values_of(mem, event, user_id=user)
        left = [item for item in items_of(mem) if item.user_id == user and item.body is not None]
        assert len(left) == (1 if what == "event" else 0)
        assert all(json.loads(item.body)["event_id"] != event for item in left)
    assert mem.verify().ok


@pytest.mark.req("LG-07", "LG-10")
def test_neither_secret_nor_key_stands_in_the_files_and_a_seal_leaves_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    folder, key_file = tmp_path / "store", tmp_path / "seal.key"
    folder.mkdir()
    key_file.write_text(f"# ours\n{KEY}\n", "ascii")

    def held() -> bytes:
        return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))

    with muniment.open(folder / "m.db", policy=SEAL, seal_key=f"file:{key_file}") as mem:
        event = observe(mem, objective=f"password={PASSWORD}")
        exported = b"".join(mem.export())
        sealed = [each["data"] for item in items_of(mem) for each in json.loads(item.body)["values"]]
        assert values_of(mem, event)
        for bytes_ in (
            held(),
            exported,
            caplog.text.encode(),
            repr(mem._ctx.seal_keys and mem._ctx.seal_keys()).encode(),
        ):
            for secret in (*SECRETS, KEY, "4111111111111111"):
                assert secret.encode() not in bytes_
            assert bytes.fromhex(KEY) not in bytes_
        assert len(sealed) == 8
        assert all(data.encode() in held() and data.encode() in exported for data in sealed)
        build = mem.run(user_id="ana", session_id="s2").compose(query="card password pay", purpose="planner")
        assert not any(secret in build.text or secret in str(build.packet) for secret in SECRETS)
        assert not any(secret in hit.text for secret in SECRETS for hit in mem.run(user_id="ana").search("card pay"))
        mem.forget(user_id="ana")
    assert not any(data.encode() in held() for data in sealed)


def test_a_dump_takes_seals_along_as_they_are(mem: Memory, make: Any) -> None:
    event = observe(mem)
    lines = list(mem.export(user_id="ana"))
    for engine in ("memory", "sqlite"):
        other: Memory = make(engine)  # its own policy does not seal, and it has no key
        other.import_(lines)
        with pytest.raises(NoSealKey):
            values_of(other, event)
        other._ctx.seal_keys = load_seal_keys(lambda: NEW)
        with pytest.raises(NoSealKey) as caught:
            values_of(other, event)
        assert KEY not in str(caught.value.to_dict())
        assert NEW not in str(caught.value.to_dict())
        other._ctx.seal_keys = load_seal_keys(lambda: [NEW, KEY])
        assert values_of(other, event)[0] == ("$.content", CARD)
        assert list(other.export(user_id="ana"))[-1] == lines[-1]
        assert other.verify().ok
        other.store.rebuild()
        assert values_of(other, event)[0] == ("$.content", CARD)


def test_a_dump_with_a_seal_moved_or_misshapen_is_refused(make: Any) -> None:
    mem: Memory = make("memory", policy=SEAL)
    mem._ctx.seal_keys = load_seal_keys(lambda: KEY)
    observe(mem)
    changes: list[dict[str, Any]] = [{"user_id": "bob"}, {"status": "open"}, {"name": "0" * 32}, {"body": "{}"}]
    for change in changes:
        lines = plain(list(mem.export()))
        row = next(line["row"] for line in lines if line.get("row", {}).get("kind") == "seal")
        row.update(change)
        with pytest.raises(InvalidInput):
            make("memory").import_(resealed(lines))


def test_keys_are_rotated_in_place(mem: Memory) -> None:
    events = [observe(mem, user) for user in ("ana", "bob")]
    before = {item.id: item.body for item in items_of(mem)}
    mem._ctx.seal_keys = load_seal_keys(lambda: f"{NEW}  # since May\n{KEY}\n")
    assert values_of(mem, events[0])[0] == ("$.content", CARD)
    report = mem.store.reseal()
    assert (report.resealed, report.kept, report.locked) == (4, 0, 0)
    assert (again := mem.store.reseal()).kept == 4
    assert again.key_id == report.key_id
    after = {item.id: item.body for item in items_of(mem)}
    assert after.keys() == before.keys()
    assert all(after[id_] != before[id_] for id_ in after)
    mem._ctx.seal_keys = load_seal_keys(lambda: NEW)
    assert values_of(mem, events[1], user_id="bob")[0] == ("$.content", CARD)
    assert mem.verify().ok
    mem._ctx.seal_keys = load_seal_keys(lambda: KEY)
    with pytest.raises(NoSealKey):
        values_of(mem, events[0])
    assert mem.store.reseal().locked == 4
    mem.forget(user_id="ana")
    assert sum(item.body is not None for item in items_of(mem)) == 2


@pytest.mark.req("TM-12")
def test_a_damaged_or_missing_seal_is_store_damaged(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    statements = (
        "UPDATE items SET body = replace(body, '\"data\":\"', '\"data\":\"A') WHERE kind = 'seal'",
        "UPDATE items SET user_id = 'bob' WHERE kind = 'seal'",
        "DELETE FROM items WHERE kind = 'seal'",
    )
    for statement in statements:
        path.unlink(missing_ok=True)
        with muniment.open(path, policy=SEAL, seal_key=lambda: KEY) as mem:
            event = observe(mem)
        with closing(sqlite3.connect(path)) as file, file:
            assert file.execute(statement).rowcount == 2
        with muniment.open(path, seal_key=lambda: KEY) as mem, pytest.raises(StoreDamaged):
            values_of(mem, event)


def test_a_policy_that_seals_takes_nothing_without_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with muniment.open(policy=SEAL) as mem, pytest.raises(NoSealKey):
        mem.run(user_id="ana").observe("user", "nothing secret here")
    with muniment.open(policy={"ledger": {"redact": "seal", "redact_secrets": False}}) as mem:
        assert mem.run(user_id="ana").observe("user", SAID).content == SAID
    with muniment.open() as mem:  # the default: gone, as before
        said = mem.run(user_id="ana").observe("user", SAID)
        assert said.flags == ("redacted",)
        assert values_of(mem, said.id) == []
        assert items_of(mem) == []
    for place in (KEY, "file:", "env:", "vault:x", 7, b"\0" * 32):
        with pytest.raises(InvalidInput) as refused:
            muniment.open(seal_key=place)  # type: ignore[arg-type]
        assert KEY not in str(refused.value.to_dict())
    monkeypatch.setenv("OUR_KEY", "not a key")
    for named, error in (
        (f"file:{tmp_path}/none", NoSealKey),
        ("env:OUR_KEY", InvalidInput),
        ("env:NO_KEY", NoSealKey),
    ):
        with muniment.open(policy=SEAL, seal_key=named) as mem, pytest.raises(error) as raised:
            mem.run(user_id="ana").observe("user", SAID)
        assert "not a key" not in str(raised.value.to_dict())
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingDependency):
        muniment.open(seal_key="env:OUR_KEY")


PIECES = (
    CARD, "5555 5555 5555 4444", f"password={PASSWORD}", TOKEN, f"Bearer {'a1B2' * 8}", "[redacted:password]", " and ",
    "AKIA" + "IOSFODNN7EXAMPLE", "https://ana:s3cret@host/x", "\n", "é", "token: ", "password is ", "x", "api_key=",
    "-----BEGIN PRIVATE" + " KEY-----\nAA",
)  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_what_is_put_back_gives_the_text_that_was_redacted(text: str) -> None:
    trace = Trace()
    clean = redact_text(text, trace)
    plain: Counter[str] = Counter()
    assert clean == redact_text(text, plain)
    assert Counter(trace) == plain
    whole, at = "", 0
    for mark in trace.marks:
        assert "redacted:" in clean[mark.start : mark.end]
        whole += clean[at : mark.start] + mark.original
        at = mark.end
    assert whole + clean[at:] == text


def test_every_shape_of_data_is_followed() -> None:
    data = {"a b": [f"password={PASSWORD}", {TOKEN: 1}], "secret": {TOKEN: 1, "x": {"y": [True, 2, ""]}}, "n": 5}
    clean = redact_value(data, Counter())
    found = [(each.place, each.value, each.is_name) for each in redacted_values(data, clean, redact_text)]
    assert found == [
        ('$["a b"][0]', PASSWORD, False),
        ('$["a b"][1]["[redacted:github_token]"]', TOKEN, True),
        ('$.secret["[redacted:github_token]"]', TOKEN, True),
        ('$.secret["[redacted:github_token]"]', 1, False),
        ("$.secret.x.y[1]", 2, False),
    ]
