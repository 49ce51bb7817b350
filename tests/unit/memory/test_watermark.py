"""Searches and packets are the same bytes wherever the watermark of the words is, and every position of it is valid."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest

import muniment
from effort import SOAK
from muniment.core.canonical import digest
from muniment.core.ports.engine import Patch, Select, Transaction
from muniment.core.ports.rows import put, select
from muniment.core.ports.schema import SEGMENTS
from muniment.errors import EmbedderFailure
from muniment.handles.memory import Memory
from muniment.memory import index as memory_index
from muniment.memory._segments import build_segment, encode_segment
from muniment.memory.index import IndexCache, analyse_turn, follow, index_fault, read_turns
from muniment.memory.vectors import embed_behind
from muniment.store.engines.sqlite import SqliteReader
from muniment.store.watermark import TAIL_MAX, read_user
from muniment.testing.hash_embedder import HashEmbedder

Maker = Callable[..., Memory]
NOW = "2026-06-01T00:00:00Z"
NOT_BEHIND = {"ledger": {"embed_in_background": False}}
SESSIONS = ("s1", "s2", "s3")
WORDS = ("Berlin", "flat", "moved", "dog", "dogs", "invoice", "paid", "Graz", "never", "agreed", "yesterday", "柏林")


def _opened(stack: ExitStack, target: str, embedder: Any) -> Memory:
    """Another process at the store, with cold caches. It is never closed, as one that is killed: closing indexes."""
    mem = muniment.open(target, embedder=embedder, policy=NOT_BEHIND)
    stack.callback(mem._ctx.engine.close)
    return mem


def _batch(rng: Random) -> list[dict[str, Any]]:
    batch: list[dict[str, Any]] = []
    for _ in range(rng.choice((1, 1, 2, 9, 60))):
        text = " ".join(rng.choices(WORDS, k=rng.choice((0, 3, 8, 200)))) + rng.choice((".", "?"))
        event: dict[str, Any] = {"role": rng.choice(("user", "assistant")), "content": text}
        if rng.random() < 0.3:
            event["speaker"] = rng.choice(("Ben", "Kate"))
        if rng.random() < 0.3:
            event["ts"] = f"2025-0{rng.randint(1, 9)}-01T00:00:00Z"
        batch.append(event)
    return batch


def _answers(mem: Memory, rng: Random) -> list[Any]:
    """What a user can see of their turns: hits, a packet and its pool, episodes."""
    query, session = " ".join(rng.choices(WORDS, k=3)), rng.choice(SESSIONS)
    run = mem.run(user_id="ana", session_id=session, run_id=f"asking-{session}")
    build = run.compose("planner", query=query, now=NOW, exclude_session=rng.random() < 0.5)
    return [
        [hit.to_wire() for hit in run.search(query, k=20, now=NOW)],
        build.packet_bytes.replace(build.id.encode(), b""),
        build.text,
        build.pool.to_wire(),
        [episode.to_wire() for episode in mem.ledger.episodes(user_id="ana")],
        [episode.to_wire() for episode in mem.ledger.episodes(user_id="ana", session_id=session)],
    ]


def _drain(mem: Memory, rng: Random) -> None:
    follow(mem._ctx, "default", "ana", entries_max=rng.choice((None, 1, 2, 7, 40)))


def _position(mem: Memory) -> tuple[int, int, int]:
    user = mem._ctx.engine.read("default", lambda reader: read_user(reader, "ana"))
    return user.indexed, user.embedded, user.tail


@pytest.mark.parametrize("embedder", [None, HashEmbedder()], ids=["words", "vectors"])
@pytest.mark.parametrize("seed", range(12 if SOAK else 3))
def test_answers_do_not_depend_on_the_watermark(
    tmp_path: Path, seed: int, embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes write, forget, rebuild and index a part by chance; then all of it is indexed."""
    rng = Random(seed)
    monkeypatch.setattr(memory_index, "PIECE_ENTRIES", rng.choice((3, 50, 4096)))
    target = str(tmp_path / "a.db")
    behind = set()
    with ExitStack() as stack:
        mems = [_opened(stack, target, embedder) for _ in range(2)]
        for step in range(14):
            actor = rng.choice(mems)
            act = rng.random()
            ids = [entry.id for entry in actor.ledger.entries(user_id="ana") if entry.kind == "message"]
            if act < 0.2 and ids:
                actor.forget(event=rng.choice(ids))
            elif act < 0.25 and ids:
                actor.store.rebuild()
            else:
                actor.run(user_id="ana", session_id=rng.choice(SESSIONS)).observe_many(_batch(rng))
            if rng.random() < 0.5:
                _drain(rng.choice(mems), rng)
            if rng.random() < 0.2:
                mems[rng.randrange(2)] = _opened(stack, target, embedder)
            assert mems[0].verify().ok, step
            indexed, embedded, tail = _position(mems[0])
            behind.add(tail - indexed)
            assert embedded <= tail, step
            state = rng.getstate()
            here = _answers(mems[0], rng)
            rng.setstate(state)
            assert _answers(mems[1], rng) == here, step
            follow(mems[0]._ctx, "default", "ana", embeds=False)
            for mem in (*mems, _opened(stack, target, embedder)):
                rng.setstate(state)
                assert _answers(mem, rng) == here, step
            assert mems[1].verify().ok, step
    assert len(behind - {0}) > 2


def _observe(mem: Memory, count: int, user: str = "ana") -> None:
    run = mem.run(user_id=user, session_id="s1", run_id=f"run-{user}")
    for number in range(count):
        run.observe("user", f"The flat number {number} is in Graz.")


def _blocks(mem: Memory, table: str = "segments") -> int:
    return len(mem._ctx.engine.read("default", lambda reader: reader.do(Select(table))))


def test_the_append_that_makes_the_tail_too_long_indexes_it(any_mem: Memory) -> None:
    _observe(any_mem, TAIL_MAX - 1)  # and the entry with which the run began
    assert _position(any_mem) == (0, 0, TAIL_MAX)
    assert _blocks(any_mem) == _blocks(any_mem, "statements") == _blocks(any_mem, "episodes") == 0
    _observe(any_mem, 1)
    assert _position(any_mem) == (TAIL_MAX + 1, 0, TAIL_MAX + 1)
    assert min(_blocks(any_mem), _blocks(any_mem, "statements"), _blocks(any_mem, "episodes")) > 0
    _observe(any_mem, 3)
    assert _position(any_mem)[0] == TAIL_MAX + 1
    assert any_mem.verify().ok


@pytest.mark.parametrize("how", ["batch", "facts", "documents"])
def test_whatever_appends_indexes_a_tail_that_is_too_long(mem: Memory, how: str) -> None:
    run = mem.run(user_id="ana", session_id="s1")
    owner = "ana"
    if how == "batch":
        run.observe_many([{"role": "user", "content": f"Turn {number}"} for number in range(TAIL_MAX + 5)])
    elif how == "facts":
        said = run.observe("user", "I moved to flat 1.")
        for number in range(TAIL_MAX + 5):
            run.assert_fact(f"flat.{number}", number, evidence=[said.id]) if hasattr(run, "assert_fact") else None
    else:
        pages = "\n\n".join(f"# Part {number}\n\n" + f"The lease {number} runs on. " * 40 for number in range(400))
        mem.corpus("papers").add(text=pages, title="A long paper")
        owner = "corpus:papers"
    user = mem._ctx.engine.read("default", lambda reader: read_user(reader, owner))
    if user.tail > TAIL_MAX:
        assert user.tail - user.indexed <= TAIL_MAX
    assert mem.verify().ok


def test_closing_indexes_what_was_appended(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "a.db", embedder=HashEmbedder()) as mem:
        for user in ("ana", "bob"):
            _observe(mem, 3, user)
    with muniment.open(tmp_path / "a.db", embedder=HashEmbedder()) as mem:
        indexed, _, tail = _position(mem)
        assert (indexed, tail) == (4, 4)
        mem.store.index()
        assert _position(mem) == (4, 4, 4)
        assert (mem.store.overview().unindexed, mem.store.overview().unembedded) == (0, 0)
        assert mem.verify().ok


class _Killed(BaseException):
    """Ends the work as a kill does."""


@pytest.mark.parametrize("after", range(6))
def test_an_index_that_was_broken_off_at_a_commit_is_valid(
    any_mem: Memory, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """Before each commit, and right behind it."""
    monkeypatch.setattr(memory_index, "PIECE_ENTRIES", 40)
    run = any_mem.run(user_id="ana", session_id="s1")
    run.observe_many([{"role": "user", "content": f"The flat {number} in Graz."} for number in range(110)])
    before = [hit.to_wire() for hit in run.search("flat 91 in Graz", k=20, now=NOW)]
    engine, left = any_mem._ctx.engine, [after]
    write = type(engine).write

    def failing(self: Any, tenant_id: str, work: Callable[[Any], Any]) -> Any:
        left[0] -= 2
        if left[0] < -1:
            raise _Killed
        answer = write(self, tenant_id, work)
        if left[0] == -1:
            raise _Killed
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(type(engine), "write", failing)
        with pytest.raises(_Killed):
            any_mem.store.index()
    assert _position(any_mem)[0] == min(111, 40 * ((after + 1) // 2))
    assert any_mem.verify().ok
    any_mem._ctx.clear_caches()
    assert [hit.to_wire() for hit in run.search("flat 91 in Graz", k=20, now=NOW)] == before
    any_mem.store.index()
    assert _position(any_mem)[0] == 111
    assert any_mem.verify().ok


@pytest.mark.parametrize("values", [{"indexed": 3}, {"indexed": 0}, {"indexed": 200}, {"embedded": 200}])
def test_verify_names_a_watermark_that_the_index_does_not_keep_to(any_mem: Memory, values: dict[str, int]) -> None:
    _observe(any_mem, 10)
    any_mem.store.index()
    any_mem._ctx.engine.write("default", lambda tx: tx.do(Patch("users", (("user_id", "=", "ana"),), values)))
    assert not any_mem.verify().ok
    any_mem.store.rebuild()
    assert any_mem.verify().ok or "embedded" in values


def test_a_store_that_does_not_index_verifies_and_finds_nothing(make: Maker) -> None:
    mem = make("sqlite", policy={"ledger": {"index_turns": False}})
    run = mem.run(user_id="ana", session_id="s1")
    run.observe_many([{"role": "user", "content": f"Never call flat {number}."} for number in range(300)])
    assert _position(mem) == (0, 0, 301)
    assert run.search("flat") == []
    assert len(list(mem.ledger.episodes(user_id="ana"))) > 0
    assert mem.verify().ok
    mem.store.rebuild()
    assert mem.verify().ok


def test_an_embedder_that_fails_keeps_no_append_from_being_answered(make: Maker) -> None:
    class Away(HashEmbedder):
        is_away = True

        def embed(self, texts: Sequence[str]) -> Any:
            if self.is_away:
                raise EmbedderFailure("the embedder is away")
            return super().embed(texts)

    mem = make("sqlite")
    mem._ctx.embedder = embedder = Away()
    _observe(mem, TAIL_MAX)
    assert _position(mem) == (TAIL_MAX + 1, 0, TAIL_MAX + 1)
    run = mem.run(user_id="ana")
    assert all("dense_turn" not in hit.parts for hit in run.search("flat 7"))
    with pytest.raises(EmbedderFailure):
        mem.store.index()
    embedder.is_away = False
    mem.store.index()
    assert _position(mem) == (TAIL_MAX + 1, TAIL_MAX + 1, TAIL_MAX + 1)
    assert any("dense_turn" in hit.parts for hit in run.search("flat 7"))


class _Slow(HashEmbedder):
    """One that takes its time, and remembers in which threads it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[str] = set()
        self.may_go_on = threading.Event()

    def embed_passages(self, texts: Sequence[str]) -> Any:
        self.threads.add(threading.current_thread().name)
        assert self.may_go_on.wait(30)
        return super().embed_passages(texts)


def test_no_write_waits_for_an_embedder(tmp_path: Path) -> None:
    """Turns are found by their words until their vectors are there."""
    embedder = _Slow()
    with muniment.open(tmp_path / "a.db", embedder=embedder) as mem:
        _observe(mem, TAIL_MAX + 5)
        run = mem.run(user_id="ana", session_id="s2")
        assert run.search("flat 7")
        build = run.compose("responder", query="flat 7", now=NOW)
        assert build.request.vectors is not None
        assert (build.request.vectors.entries, build.request.vectors.embedder) == (0, embedder.identity)
        assert _position(mem)[1] == 0
        embedder.may_go_on.set()
        for _ in range(600):
            if _position(mem)[1] == _position(mem)[2]:
                break
            time.sleep(0.02)
        assert _position(mem)[1] == _position(mem)[2]
        assert embedder.threads == {"muniment-embedding"}
        assert any("dense_turn" in hit.parts for hit in run.search("flat 7"))
        later = run.compose("responder", query="flat 7", now=NOW)
        assert later.request.vectors is not None
        assert later.request.vectors.entries == later.request.vectors.of > 0
        for kept in (build, later):
            again = mem.replay(kept.id)
            assert (again.packet_bytes, again.request.vectors) == (kept.packet_bytes, kept.request.vectors)


def test_a_turn_without_a_vector_is_as_near_as_the_mean(make: Maker) -> None:
    """It turns meaning off for nobody, and is found by its words."""
    mem = make("sqlite")
    mem._ctx.embedder = HashEmbedder()
    _observe(mem, 50)
    mem.store.index()
    run = mem.run(user_id="ana", session_id="s1", run_id="run-ana")
    late = run.observe("user", "The lighthouse keeper paints herons.")
    hits = {hit.id: hit for hit in run.search("Who paints a lighthouse?", k=60)}
    assert next(iter(hits)) == late.id
    assert hits[late.id].parts.get("dense_turn", 0.0) == 0.0
    assert sum(1 for hit in hits.values() if hit.parts.get("dense_turn")) == 50
    mem.store.index()
    assert {hit.id: hit for hit in run.search("Who paints a lighthouse?", k=60)}[late.id].parts["dense_turn"] > 0


def test_forgotten_turns_of_the_tail_lose_their_vectors(make: Maker) -> None:
    """Vectors may be ahead of the words."""
    mem = make("sqlite")
    embedder = HashEmbedder()
    _observe(mem, 5)
    assert embed_behind(mem._ctx, embedder, "default", "ana") == 5
    assert _position(mem) == (0, 6, 6)
    (entry, *_) = [each for each in mem.ledger.entries(user_id="ana") if each.kind == "message"]
    assert mem.forget(event=entry.id).counts["vectors"] == 1
    assert mem.verify().ok


def test_a_forget_leaves_the_indexes_of_other_tenants_in_memory(any_mem: Memory) -> None:
    kept = {}
    for tenant in ("acme", "globex"):
        run = any_mem.run(user_id="ana", tenant_id=tenant)
        run.observe_many([{"role": "user", "content": f"The flat {number} in Graz."} for number in range(5)])
        run.search("flat")
        kept[tenant] = any_mem._ctx.cache(IndexCache).get((tenant, "ana"))
    (entry, *_) = any_mem.ledger.entries(user_id="ana", tenant_id="acme")
    any_mem.forget(event=entry.id, tenant_id="acme")
    cache = any_mem._ctx.cache(IndexCache)
    assert cache.get(("acme", "ana")) is None
    assert cache.get(("globex", "ana")) is kept["globex"]


@pytest.mark.parametrize("embedder", [None, HashEmbedder()], ids=["words", "vectors"])
def test_composing_after_a_write_reads_nothing_in_proportion_to_history(
    make: Maker, monkeypatch: pytest.MonkeyPatch, embedder: Any
) -> None:
    """The rows that are read for one more turn and a packet do not grow with the 4,000 or 400 turns before."""
    counted: list[dict[str, int]] = []
    for size in (400, 4_000):
        mem = make("sqlite")
        mem._ctx.embedder = embedder
        run = mem.run(user_id="ana", session_id="old")
        for at in range(0, size, 200):
            run.observe_many([{"role": "user", "content": f"The flat {at + n} in Graz."} for n in range(200)])
        run = mem.run(user_id="ana", session_id="new")
        run.observe("user", "Where is the flat?")
        run.compose("responder", query="Where is the flat?")
        rows: dict[str, int] = {}
        fetch = SqliteReader._fetch

        def counting(self: Any, table: str, *given: Any, rows: dict[str, int] = rows, **more: Any) -> Any:
            answer = fetch(self, table, *given, **more)  # noqa: B023
            rows[table] = rows.get(table, 0) + len(answer)
            return answer

        with monkeypatch.context() as patch:
            patch.setattr(SqliteReader, "_fetch", counting)
            run.observe("user", "And the other flat?")
            run.compose("responder", query="Where is the other flat?")
        counted.append(rows)
    small, large = counted
    assert large.get("segments", 0) == large.get("vectors", 0) == 0
    assert sum(large.values()) <= sum(small.values()) + 200, (small, large)


@pytest.mark.parametrize("altered", [0, 511, 512, 1_300, 1_499])
def test_verify_compares_every_turn_of_a_long_block(tmp_path: Path, altered: int) -> None:
    """It holds some hundred texts at a time."""
    turns = [{"role": "user", "content": f"Crate {number} holds {WORDS[number % 9]}."} for number in range(1_500)]
    with muniment.open(tmp_path / "sound.db") as mem:
        mem.run(user_id="ana", session_id="s1", run_id="r1").observe_many(turns)
        follow(mem._ctx, "default", "ana")
        assert mem.verify().ok
        (block, *_) = mem._ctx.engine.read("default", lambda reader: select(reader, SEGMENTS))

        def alter(tx: Transaction) -> None:
            """As if the block had been made from another text, its digest included."""
            said = list(read_turns(tx, "default", "ana", 0, 1_501))
            entry, _ = said[altered]
            said[altered] = (entry, "Something else was in it.")
            data = encode_segment(build_segment([analyse_turn(*each) for each in said]))
            put(tx, SEGMENTS, [block._replace(data=data, digest=digest(data)[:16])])

        mem._ctx.engine.write("default", alter)
        fault = mem._ctx.engine.read("default", lambda reader: index_fault(reader, "default", "ana"))
        assert fault == "the index from turn 0 on is not what was said"
        assert not mem.verify().ok
