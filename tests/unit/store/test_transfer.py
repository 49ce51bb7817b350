"""Export and import: the same bytes on every engine, nothing broken let in, nothing forgotten brought back."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from dump_lines import dump_of, plain, resealed
from effort import SOAK
from muniment.core.canonical import canonical_bytes
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.core.ports.schema import EntryRow
from muniment.errors import (
    ChainBroken,
    Conflict,
    InvalidInput,
    InvalidJson,
    MunimentError,
    StorageFailure,
    TooLarge,
    UnknownKind,
)
from muniment.handles.derived import derivations
from muniment.handles.memory import Memory, open
from muniment.store import transfer
from muniment.store.chain import header_hash
from muniment.store.derivation import Derivation, declare
from muniment.store.forget import SCRUB_DUE
from muniment.store.items import Change, latest

Maker = Callable[..., Memory]
Counts = Callable[[Memory], dict[str, int]]
ENGINES = ("sqlite", "postgres")


def fill(mem: Memory, tenant_id: str = "default") -> None:
    """Several users and sessions, blobs, keys, finished and open runs, a forgotten event and a rewritten run."""
    for user, session in itertools.product(("ana", "bob"), ("s1", "s2")):
        run = mem.run(user_id=user, session_id=session, tenant_id=tenant_id, objective=f"{user} {session}")
        run.observe(
            "user", f"{user} {session} 我\0", idempotency_key=f"{session}", metadata={"n": 2**70}, tags={"a", "b"}
        )
        run.observe_tool("fetch", content=f"{user} " * 20_000, args={"x": 1})
        if session == "s1":
            run.finish()
        else:
            mem.forget(event=next(iter(run.ledger.entries())).id, tenant_id=tenant_id)
            mem.forget(event=run.observe("user", "gone", idempotency_key="gone").id, tenant_id=tenant_id)


# -- round trips


@pytest.mark.soak
@pytest.mark.req("X-05", "LG-05")
@pytest.mark.parametrize(("here", "there"), list(itertools.permutations(ENGINES)))
def test_a_dump_comes_out_of_every_other_engine_as_it_went_in(make: Maker, here: str, there: str) -> None:
    source, target = make(here), make(there)
    fill(source)
    lines = dump_of(source)
    report = target.import_(lambda: lines)
    assert dump_of(target) == lines
    assert sum(report.written.values()) == len(lines) - 2
    assert report.skipped == {}
    assert target.verify() == source.verify()
    assert target.store.rebuild().repaired == ()
    again = target.import_(lambda: lines)
    assert sum(again.written.values()) == 0
    assert dump_of(target) == lines


@pytest.mark.soak
@pytest.mark.parametrize("scope", [{"user_id": "ana"}, {"user_id": "ana", "session_id": "s2"}])
def test_a_user_or_a_session_travels_alone_and_the_rest_follows(make: Maker, scope: dict[str, str]) -> None:
    source, target = make("sqlite"), make("memory")
    fill(source)
    part = dump_of(source, **scope)
    assert b"bob" not in b"".join(part)
    target.import_(lambda: part)
    assert dump_of(target, **scope) == part
    assert target.verify().ok
    whole = dump_of(source)
    target.import_(lambda: whole)
    assert dump_of(target) == whole


@pytest.mark.req("LG-06")
def test_an_imported_session_goes_on(make: Maker) -> None:
    source, target = make("memory"), make("sqlite", seed="other")
    run = source.run(user_id="ana", session_id="s1", run_id="r1")
    said = run.observe("user", "x", idempotency_key="k")
    lines = dump_of(source)
    target.import_(lambda: lines)
    there = target.run(user_id="ana", session_id="s1", run_id="r1")
    assert there.observe("user", "x", idempotency_key="k") == said
    assert there.observe("user", "y").seq == 3
    assert target.verify().ok
    assert there.finish().is_finished
    more = dump_of(target)
    source.import_(lambda: more)
    assert dump_of(source) == more, "what went on there comes back here"


@pytest.mark.soak
def test_a_dump_from_a_file(make: Maker, tmp_path: Path) -> None:
    source, target = make("sqlite"), make("memory")
    fill(source)
    path = tmp_path / "dump.jsonl"
    path.write_bytes(b"".join(source.export()))
    seen: list[int] = []
    target.import_(path, progress=seen.append)
    target.import_(str(path))
    assert sum(seen) == len(dump_of(source)) - 2
    assert b"".join(target.export()) == path.read_bytes()


class Stop(Exception):
    pass


@pytest.mark.soak
@pytest.mark.parametrize("engine", ENGINES)
def test_an_import_that_was_interrupted_is_run_again(make: Maker, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "BATCH_ROWS", 5 if SOAK else 8)
    source, target = make("memory"), make(engine)
    fill(source)
    lines = dump_of(source)
    steps = itertools.count(1)
    for stop_at in itertools.count(1):
        calls = itertools.count(1)

        def progress(_rows: int, stop_at: int = stop_at, calls: Any = calls) -> None:
            next(steps)
            if next(calls) == stop_at:
                raise Stop

        try:
            target.import_(lambda: lines, progress=progress)
        except Stop:
            assert target.verify().ok, "every step leaves whole chains and whole blobs"
            continue
        break
    assert stop_at > 4
    assert dump_of(target) == lines


# -- broken dumps


@pytest.fixture(scope="module")
def lines() -> list[bytes]:
    with open(":memory:", clock=TickingClock(), ids=CountingIds()) as source:
        fill(source)
        return dump_of(source)


def at(lines: list[bytes], name: str, number: int = 0) -> int:
    return [place for place, line in enumerate(plain(lines)) if line.get("table") == name][number]


def refused(target: Memory, counts: Counts, lines: list[bytes], *errors: type[MunimentError]) -> MunimentError:
    before = counts(target)
    with pytest.raises(MunimentError) as caught:
        target.import_(lambda: lines)
    assert counts(target) == before, "something was written"
    assert isinstance(caught.value, errors or MunimentError), repr(caught.value)
    return caught.value


RAW: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "nothing": lambda lines: [],
    "a header alone": lambda lines: lines[:1],
    "cut in the middle": lambda lines: lines[: len(lines) // 2],
    "cut before the trailer": lambda lines: lines[:-1],
    "cut in the middle of a line": lambda lines: [*lines[:7], lines[7][: len(lines[7]) // 2]],
    "a line dropped": lambda lines: [*lines[:3], *lines[4:]],
    "a line twice": lambda lines: [*lines[:4], lines[3], *lines[4:]],
    "two lines swapped": lambda lines: [*lines[:3], lines[4], lines[3], *lines[5:]],
    "a byte altered": lambda lines: [*lines[:3], lines[3].replace(b"ana s1", b"ana s9"), *lines[4:]],
    "white space added": lambda lines: [*lines[:3], b" " + lines[3], *lines[4:]],
    "a digest of something else": lambda lines: [*lines[:-1], lines[-1].replace(b'"digest":"', b'"digest":"0')],
    "more after the end": lambda lines: [*lines, lines[1]],
    "two dumps": lambda lines: [*lines, *lines],
    "a garbage line": lambda lines: [*lines[:3], b"garbage\n", *lines[3:]],
    "an empty line": lambda lines: [*lines[:3], b"\n", *lines[3:]],
    "a number": lambda lines: [*lines[:3], b"5\n", *lines[3:]],
    "a list": lambda lines: [b"[]\n", *lines[1:]],
    "invalid UTF-8": lambda lines: [*lines[:3], b'{"a":"\xff"}\n', *lines[3:]],
    "a key twice": lambda lines: [*lines[:3], b'{"table":"entries","table":"items"}\n', *lines[3:]],
    "NaN": lambda lines: [*lines[:3], b'{"table":NaN}\n', *lines[3:]],
    "deep nesting": lambda lines: [*lines[:3], b"[" * 200_000 + b"\n", *lines[3:]],
    "another format": lambda lines: [lines[0].replace(b"export.v1", b"export.v9"), *lines[1:]],
    "no header": lambda lines: lines[1:],
}


@pytest.mark.req("LG-05")
@pytest.mark.parametrize("how", RAW)
def test_a_damaged_dump_is_refused_with_nothing_written(
    make: Maker, counts: Counts, lines: list[bytes], how: str
) -> None:
    refused(make("sqlite"), counts, RAW[how](lines), InvalidInput, ChainBroken)


def test_a_line_of_many_megabytes_is_refused(make: Maker, counts: Counts, lines: list[bytes]) -> None:
    megabytes = 100 if SOAK else 10
    huge = b'{"table":"entries","row":"' + b"x" * (megabytes * 1024 * 1024) + b'"}\n'
    refused(make(), counts, [*lines[:3], huge, *lines[3:]], InvalidInput)
    refused(make(), counts, [*lines[:3], b"x" * (129 * 1024 * 1024)], TooLarge)


def test_a_file_without_an_end_of_line_is_not_read_into_memory_whole(
    make: Maker, counts: Counts, tmp_path: Path
) -> None:
    path = tmp_path / "endless"
    with path.open("wb") as file:
        file.truncate(200 * 1024 * 1024)  # a hole of zeros
    target = make()
    before = counts(target)
    with pytest.raises(TooLarge):
        target.import_(path)
    assert counts(target) == before


def test_the_line_is_named(make: Maker, counts: Counts, lines: list[bytes]) -> None:
    error = refused(make(), counts, [*lines[:3], b'{"a":"\xff"}\n', *lines[3:]], InvalidJson)
    assert error.message.startswith("line 4: ")


def _edit(name: str, number: int = 0, **values: Any) -> Callable[[list[dict[str, Any]]], None]:
    """Set columns of the n-th row of a table; None takes the column away."""

    def edit(lines: list[dict[str, Any]]) -> None:
        row = [line["row"] for line in lines if line.get("table") == name][number]
        for column, value in values.items():
            row.pop(column, None)
            if value is not None:
                row[column] = value

    return edit


def _drop(name: str, number: int = 0) -> Callable[[list[dict[str, Any]]], None]:
    def drop(lines: list[dict[str, Any]]) -> None:
        del lines[[place for place, line in enumerate(lines) if line.get("table") == name][number]]

    return drop


def _twice(name: str, number: int = 0) -> Callable[[list[dict[str, Any]]], None]:
    def twice(lines: list[dict[str, Any]]) -> None:
        place = [place for place, line in enumerate(lines) if line.get("table") == name][number]
        lines.insert(place, lines[place])

    return twice


def _swap(lines: list[dict[str, Any]]) -> None:
    places = [place for place, line in enumerate(lines) if line.get("table") == "entries"]
    lines[places[1]], lines[places[2]] = lines[places[2]], lines[places[1]]


def _header(**values: Any) -> Callable[[list[dict[str, Any]]], None]:
    return lambda lines: lines[0].update(values)


FORGED: dict[str, Callable[[list[dict[str, Any]]], None]] = {
    "content altered": _edit("entries", 1, body='{"content":"forged"}'),
    "content gone": _edit("entries", 1, body=None),
    "content gone with its salt": _edit("entries", 1, body=None, salt=None),
    "forgotten but still there": _edit("entries", 1, receipt_id="rcp_x"),
    "salt altered": _edit("entries", 1, salt="00" * 16),
    **{
        f"{column} altered": _edit("entries", 1, **{column: value})
        for column, value in {
            "id": "evt_forged",
            "user_id": "eve",
            "agent_id": "eve",
            "session_id": "eve",
            "run_id": "eve",
            "seq": 7,
            "ts": "2020-01-01T00:00:00.000000Z",
            "recorded_at": "2020-01-01T00:00:00.000000Z",
            "kind": "system",
            "role": "assistant",
            "trust": "tool",
            "flags": "redacted",
            "content_hash": "00" * 32,
            "prev_hash": "00" * 32,
            "hash": "00" * 32,
        }.items()
    },
    "an entry dropped": _drop("entries", 1),
    "the last entry dropped": _drop("entries", -1),
    "an entry twice": _twice("entries", 1),
    "entries swapped": _swap,
    "a session dropped": _drop("sessions"),
    "a session twice": _twice("sessions", 1),
    "a session's head altered": _edit("sessions", 0, head_hash="00" * 32),
    "a session's length altered": _edit("sessions", 0, head_seq=2),
    "a session's last time altered": _edit("sessions", 0, head_recorded_at="2030-01-01T00:00:00.000000Z"),
    "a session's name altered": _edit("sessions", 0, session_id="a0"),
    "a blob altered": _edit("blobs", 0, data="00"),
    "a blob emptied": _edit("blobs", 0, data=None),
    "a blob's size altered": _edit("blobs", 0, size=5),
    "a blob's name altered": _edit("blobs", 0, hash="00" * 32),
    "a blob of another entry": _edit("blobs", 0, entry_id="evt_x"),
    "a blob dropped": _drop("blobs"),
    "a blob twice": _twice("blobs"),
    "an item twice": _twice("items"),
    "an item's first version dropped": _drop("items"),
    "an item of version 0": _edit("items", 0, version=0),
    "an item of version 5": _edit("items", 0, version=5),
    "an item that is no JSON": _edit("items", 0, body="{"),
    "an item that is no object": _edit("items", 0, body="[]"),
    "an item that is not canonical": _edit("items", 0, body="{ }"),
    "an item of no trust": _edit("items", 0, trust="root"),
    "an item of an odd time": _edit("items", 0, created_at="yesterday"),
    "an item of an unknown kind": _edit("items", 0, kind="spell"),
    "an item without content or receipt": _edit("items", 0, body=None, receipt_id=None),
    "an item with a NUL": _edit("items", 0, status="a\0b"),
    "a link twice": _twice("links"),
    "a link elsewhere": _edit("links", 0, item_id="run_x"),
    "a link with a NUL": _edit("links", 0, source_id="a\0b"),
    "a key twice": _twice("idempotency"),
    "a key with an odd name": _edit("idempotency", 0, entry_id=""),
    "a column nobody knows": _edit("entries", 0, extra="x"),
    "a column of another type": _edit("entries", 0, seq="1"),
    "a column that is missing": _edit("entries", 0, hash=None),
    "hex that is none": _edit("entries", 0, hash="zz"),
    "a true that is no number": _edit("sessions", 0, head_seq=True),
    "a table nobody knows": lambda lines: lines.insert(1, {"table": "migrations", "row": {}}),
    "a table that is not exported": lambda lines: lines.insert(
        1, {"table": "ids", "row": {"id": "x", "kind": "event"}}
    ),
    "another tenant": _header(tenant_id="acme"),
    "no tenant": _header(tenant_id=""),
    "a tenant that is no name": _header(tenant_id="a\nb"),
    "the tenant that means all": _header(tenant_id="*"),
    "a tenant that is a number": _header(tenant_id=5),
    "the scope of another user": _header(scope={"user_id": "bob"}),
    "the scope of another session": _header(scope={"user_id": "ana", "session_id": "s1"}),
    "an odd scope": _header(scope={"tenant": "x"}),
    "a scope that is a list": _header(scope=[]),
}


@pytest.mark.req("LG-05", "LG-02")
@pytest.mark.parametrize("how", FORGED)
def test_a_forged_dump_with_a_right_digest_is_refused_all_the_same(
    make: Maker, counts: Counts, lines: list[bytes], how: str
) -> None:
    forged = plain(lines)
    FORGED[how](forged)
    refused(make("sqlite"), counts, resealed(forged), InvalidInput, ChainBroken)


def resign(lines: list[dict[str, Any]], tenant_id: str = "default") -> None:
    """Chain the first session anew over whatever its rows now say: a forger with all the time in the world."""
    session = lines[1]["row"]
    last = hashlib.sha256(
        canonical_bytes(["muniment.session.v1", tenant_id, session["user_id"], session["session_id"]])
    ).digest()
    for line in lines[2:]:
        if line["table"] == "sessions":
            break
        if line["table"] != "entries":
            continue
        row = line["row"]
        if "body" in row:
            row["content_hash"] = hashlib.sha256(bytes.fromhex(row["salt"]) + row["body"].encode()).hexdigest()
        row["prev_hash"] = last.hex()
        values = {
            name: bytes.fromhex(row[name])
            if name in ("content_hash", "prev_hash", "hash", "salt") and name in row
            else row.get(name)
            for name in EntryRow._fields
        }
        last = header_hash(tenant_id, EntryRow(**values))
        row["hash"] = last.hex()
        session |= {"head_hash": row["hash"], "head_seq": row["seq"], "head_recorded_at": row["recorded_at"]}


@pytest.mark.soak
@pytest.mark.req("LG-05")
@pytest.mark.parametrize(
    "values",
    [
        {"kind": "spell"},
        {"role": "root"},
        {"trust": "root"},
        {"flags": "z,a"},
        {"flags": ","},
        {"ts": "yesterday"},
        {"recorded_at": "2026-01-01"},
        {"recorded_at": "2020-01-01T00:00:00.000000Z"},
        {"id": ""},
        {"id": "a\nb"},
        {"id": "x" * 300},
        {"agent_id": "\x7f"},
        {"run_id": ""},
        {"body": "{}"},
        {"body": "[]"},
        {"body": "{"},
        {"body": "null"},
        {"body": '{"content":5}'},
        {"body": '{"content": "x"}'},
        {"body": '{"content":"x","typo":1}'},
        {"body": '{"blob":"zz","bytes":1}'},
        {"body": '{"content":"x","blob":"00"}'},
        {"body": '{"content":"x","tool":{"name":""}}'},
        {"body": '{"content":"\\ud800"}'},
    ],
)
def test_a_chain_that_holds_is_not_enough(
    make: Maker, counts: Counts, lines: list[bytes], values: dict[str, Any]
) -> None:
    forged = plain(lines)
    resign(forged)
    assert resealed(forged) == lines, "an honest forger changes nothing"
    [line["row"] for line in forged if line.get("table") == "entries"][1].update(values)
    resign(forged)
    refused(make("sqlite"), counts, resealed(forged), InvalidInput, ChainBroken)


def test_a_source_that_can_be_read_only_once_writes_nothing(make: Maker, counts: Counts, lines: list[bytes]) -> None:
    target = make("sqlite")
    before = counts(target)
    once = iter(lines)
    with pytest.raises(InvalidInput):
        target.import_(lambda: once)
    assert counts(target) == before


# -- what is here already


def test_a_session_that_went_on_differently_is_refused(make: Maker, counts: Counts) -> None:
    source, target = make("memory"), make("sqlite", seed="other")
    run = source.run(user_id="ana", session_id="s1", run_id="r1")
    run.observe("user", "shared")
    shared = dump_of(source)
    target.import_(lambda: shared)
    target.run(user_id="ana", session_id="s1", run_id="r1").observe("user", "only there")
    for _ in range(3):
        run.observe("user", "only here")
        diverged = dump_of(source)
        error = refused(target, counts, diverged, Conflict)
        assert "differ" in error.message or "collides" in error.message
    assert [entry.content for entry in target.ledger.entries(user_id="ana")] == ["", "shared", "only there"]
    assert target.verify().ok
    assert sum(target.import_(lambda: shared).written.values()) == 0, "an older dump of it is fine"


@pytest.mark.req("X-09")
def test_an_id_that_something_else_of_the_tenant_has_is_refused(make: Maker, counts: Counts) -> None:
    """What another tenant has under that id is no hindrance, and stays."""
    source = make("memory", seed="other")
    source.run(user_id="ana", session_id="s1", run_id="r1").observe("user", "x", id="e1")
    dump = dump_of(source)
    for tenant_id, id_ in itertools.product(("acme", "default"), ("e1", "r1")):
        target = make("sqlite")
        run = target.run(user_id="bob", session_id="s9", tenant_id=tenant_id)
        run.observe("user", "theirs", id=id_)
        if tenant_id == "default":
            refused(target, counts, dump, Conflict)
        else:
            target.import_(lambda: dump)
            assert dump_of(target) == dump
            assert target.ledger.get(id_, tenant_id="acme").content == "theirs"


def test_an_item_that_differs_is_refused(make: Maker, counts: Counts, lines: list[bytes]) -> None:
    target = make("sqlite")
    target.import_(lambda: lines)
    changed = plain(lines)
    item = next(
        line["row"]
        for line in changed
        if line.get("table") == "items" and '"objective":"' in line["row"].get("body", "")
    )
    item["body"] = item["body"].replace('"objective":"', '"objective":"forged ')
    refused(target, counts, resealed(changed), InvalidInput)  # the ledger of the dump says otherwise
    changed = plain(lines)
    receipt = next(line["row"] for line in changed if line.get("table") == "items" and line["row"]["kind"] == "receipt")
    receipt["body"] = receipt["body"].replace('"note":"', '"note":"forged ')
    refused(target, counts, resealed(changed), Conflict)  # what is here says otherwise


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("how", [{"user_id": "ana"}, {"session": "s1", "user_id": "ana"}, {"tenant": "default"}])
def test_what_was_forgotten_here_stays_forgotten(make: Maker, engine: str, how: dict[str, str]) -> None:
    source, target = make("memory"), make(engine, seed="other")
    fill(source)
    dump = dump_of(source)
    target.import_(lambda: dump)
    target.forget(**how)  # type: ignore[arg-type]
    after = dump_of(target)
    report = target.import_(lambda: dump)
    assert {name: count for name, count in report.written.items() if count} == {}
    assert dump_of(target) == after
    assert b"ana s1" not in b"".join(after)
    assert target.verify().ok


def _note(entry: Any, _lookup: Any) -> list[Change]:
    if not entry.content:
        return []
    return [
        Change(
            id=f"note-{entry.id}",
            kind="note",
            status="a",
            body={"text": entry.content},
            created_at=entry.recorded_at,
            trust=entry.trust,
            sources=(entry.id,),
            user_id=entry.scope.user_id,
            session_id=entry.scope.session_id,
        )
    ]


NOTES = derivations() | declare(
    Derivation("note", without=lambda item, lost: None, listens=frozenset({"message"}), project=_note)  # type: ignore[arg-type]
)


@pytest.mark.req("LG-07")
def test_what_was_derived_elsewhere_from_what_was_forgotten_here_does_not_come_back(make: Maker) -> None:
    """The other store derives; this one has the entry, forgot it, and has never seen the note."""
    source = make("memory", derivations=NOTES)
    target = make("sqlite", seed="other", derivations=NOTES)
    said = source.run(user_id="ana", session_id="s1").observe("user", "secret words")
    dump = dump_of(source)
    bare = resealed(
        [line for line in plain(dump) if not (line.get("table") in ("items", "links") and "note" in json.dumps(line))]
    )
    target.import_(lambda: bare)
    receipt = target.forget(event=said.id)
    target.import_(lambda: dump)
    left = b"".join(dump_of(target))
    assert b"secret words" not in left
    assert f"note-{said.id}".encode() in left, "it is there, as a tombstone"
    assert receipt.receipt_id.encode() in left
    assert target.store.rebuild().repaired == ()


@pytest.mark.req("LG-07")
def test_a_newer_version_of_an_item_forgotten_here_comes_as_a_tombstone(make: Maker) -> None:
    source, target = make("memory"), make("sqlite", seed="other")
    run = source.run(user_id="ana", session_id="s1", run_id="r1", objective="secret aim")
    run.observe("user", "x")
    first = dump_of(source)
    target.import_(lambda: first)
    target.forget(user_id="ana")
    run.finish()
    second = dump_of(source)
    target.import_(lambda: second)
    assert b"secret aim" not in b"".join(dump_of(target))
    assert target.verify().ok


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("fails", [True, False])
def test_a_receipt_that_an_import_made_longer_waits_for_the_scrub(
    make: Maker, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The patch that brings a fact carries its words; it is emptied on the way in, and what it leaves is told."""
    source, target = make("memory"), make("sqlite", seed="other")
    run = source.run(user_id="ana", session_id="s1", run_id="r1")
    said = run.observe("user", "I live in Xyzzyville")
    first = dump_of(source)
    target.import_(first)
    receipt = target.forget(event=said.id)
    run.remember("user.city", "Xyzzyville", sources=[said.id])

    def broken(*_args: Any, **_more: Any) -> Any:
        raise StorageFailure("the disk is gone")

    def stored() -> Any:
        return target._ctx.engine.read("default", lambda reader: latest(reader, receipt.receipt_id))

    assert (stored().status, stored().plain()["scrubbed"]) == ("issued", True)
    with monkeypatch.context() as patched:
        if fails:
            patched.setattr(type(target._ctx.engine), "scrub", broken)
        with pytest.raises(StorageFailure) if fails else nullcontext():
            target.import_(dump_of(source))
    assert len(stored().plain()["erased"]) > len(receipt.erased)
    assert stored().status == (SCRUB_DUE if fails else "issued")
    assert target.store.scrub().receipts == fails
    assert stored().status == "issued"
    assert target.verify().ok


def test_kinds_nobody_declares_here_are_refused(make: Maker, counts: Counts) -> None:
    source = make("memory", derivations=NOTES)
    source.run(user_id="ana").observe("user", "x")
    refused(make("sqlite"), counts, dump_of(source), UnknownKind)


@pytest.mark.req("LG-07", "LG-09")
def test_forgotten_blobs_do_not_travel(make: Maker) -> None:
    source, target = make("sqlite"), make("memory")
    run = source.run(user_id="ana", session_id="s1")
    gone, stays = (run.observe("user", word * 70_000) for word in "ab")
    source.forget(event=gone.id)
    dump = dump_of(source)
    assert sum(line.get("table") == "blobs" for line in plain(dump)) == 1
    target.import_(lambda: dump)
    assert target.ledger.content(stays.id) == "b" * 70_000
    assert dump_of(target) == dump
    assert target.verify().forgotten == 1


@pytest.mark.soak
def test_an_export_is_one_consistent_view(make: Maker) -> None:
    mem = make("sqlite")
    run = mem.run(user_id="ana", session_id="s1")
    run.observe_many([{"role": "user", "content": str(number)} for number in range(1000)])
    export = mem.export()
    head = [next(export) for _ in range(10)]
    run.observe_many([{"role": "user", "content": "later"}] * 10)
    mem.run(user_id="bob").observe("user", "later")
    lines = [*head, *export]
    assert b"later" not in b"".join(lines)
    make("memory").import_(lambda: lines)


def test_chosen_ids_that_begin_like_minted_ones_are_dumped_in_an_order_that_is_read(make: Maker) -> None:
    """A store keeps its rows in the order of the ids, minted or not; one that is out of order is refused."""
    source = make("sqlite")
    minted = [f"{prefix}_{digit * 32}" for prefix in ("run", "act", "ws") for digit in "0af"]
    for chosen in (*minted, "run_x", "run_0", "act_1", "a", "zzz", "run_"):
        source.run(user_id="ana", session_id="s1", run_id=chosen).observe("user", "I live in Lisbon.")
    lines = plain(dump_of(source))
    of_items = [at for at, line in enumerate(lines) if line.get("table") in ("items", "links")]
    start, end = of_items[0], of_items[-1] + 1
    own = lambda line: str(line["row"].get("item_id") or line["row"]["id"])  # noqa: E731
    kept = [list(group) for _, group in itertools.groupby(lines[start:end], own)]
    assert kept == sorted(kept, key=lambda group: own(group[0]))
    other = make("sqlite", seed="other")
    other.import_(resealed(lines))
    assert other.verify().ok
    assert dump_of(other) == dump_of(source)
    for order in ([kept[-1], *kept[1:-1], kept[0]], [*kept, kept[-1]]):
        with pytest.raises(ChainBroken, match="out of order"):
            make("sqlite", seed="third").import_(resealed([*lines[:start], *itertools.chain(*order), *lines[end:]]))
