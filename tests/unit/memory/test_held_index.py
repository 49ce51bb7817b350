"""The index that a process holds is, after any history, the one that another process puts together from scratch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import muniment
from muniment.handles.memory import Memory
from muniment.memory import _index as recall_index
from muniment.memory import index as memory_index
from muniment.memory._index import StoredIndex
from muniment.memory.index import load_index

WORDS = ("Berlin", "flat", "moved", "dog", "dogs", "invoice", "paid", "Graz", "vegetarian", "yesterday", "柏林")
SESSIONS = ("s1", "s2", "s3")
NOW = "2026-06-01T00:00:00Z"


def _index(mem: Memory, without: frozenset[str] = frozenset()) -> StoredIndex:
    return mem._ctx.engine.read("default", lambda reader: load_index(mem._ctx, reader, "default", "ana", without))


def _contents(index: StoredIndex) -> list[Any]:
    found: list[Any] = [index.ids(), list(index.session_ids), list(index.speakers)]
    arrays = [index.session, index.speaker, index.role, index.ts, index.length]
    found += [(each.dtype.str, each.tolist()) for each in arrays]
    for term in sorted({term for ordinal in range(len(index)) for term in index.terms(ordinal)}):
        found += [(each.dtype.str, each.tolist()) for each in index.postings(term)]
    return found


def _act(mem: Memory, rng: Random) -> None:
    """One step of a history."""
    act = rng.random()
    run = mem.run(user_id="ana", session_id=rng.choice(SESSIONS))
    if act < 0.15:
        ids = _index(mem).ids()
        if ids:
            mem.forget(event=rng.choice(ids))
    elif act < 0.2:
        mem.store.rebuild()
    else:
        batch: list[dict[str, Any]] = []
        for _ in range(rng.choice((1, 1, 1, 2, 9))):
            text = " ".join(rng.choices(WORDS, k=rng.choice((0, 3, 8, 200)))) + rng.choice((".", "?"))
            event = {"role": rng.choice(("user", "assistant")), "content": text}
            if rng.random() < 0.3:
                event["speaker"] = rng.choice(("Ben", "Kate"))
            if rng.random() < 0.3:
                event["ts"] = f"2025-0{rng.randint(1, 9)}-01T00:00:00Z"
            batch.append(event)
        run.observe_many(batch)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_held_is_what_a_new_process_puts_together(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    target = tmp_path / "a.db"
    with muniment.open(target) as one, muniment.open(target) as two:
        for step in range(25):
            _act(rng.choice((one, two)), rng)
            mem = rng.choice((one, two))
            without = frozenset(rng.sample(SESSIONS, rng.randint(0, 2)))
            query = rng.choice(WORDS)
            with muniment.open(target) as fresh:
                assert _contents(_index(mem, without)) == _contents(_index(fresh, without)), step
                assert _contents(_index(mem)) == _contents(_index(fresh)), step
                found, wanted = (each.run(user_id="ana").search(query, k=9, now=NOW) for each in (mem, fresh))
                assert found == wanted, step


@contextmanager
def _counted_builds(patch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many turns each index had that was put together from its blocks."""
    built: list[int] = []

    class Counting(StoredIndex):
        def __init__(self, segments: Any, names: Any) -> None:
            built.append(sum(map(len, segments)))
            super().__init__(segments, names)

    patch.setattr(memory_index, "StoredIndex", Counting)
    patch.setattr(recall_index, "StoredIndex", Counting)
    yield built


@pytest.mark.parametrize("leaves_out", [False, True])
def test_writes_and_left_out_sessions_build_no_index_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leaves_out: bool
) -> None:
    with muniment.open(tmp_path / "a.db") as mem, _counted_builds(monkeypatch) as built:
        mem.run(user_id="ana", session_id="old").observe_many(
            [{"role": "user", "content": f"The flat number {number} is in Graz."} for number in range(70)]
        )
        run = mem.run(user_id="ana", session_id="new")
        run.search("flat")
        assert len(built) == 1
        for number in range(40):
            run.observe("user", f"I moved to flat {number}.")
            run.compose("responder", query="Where is the flat?", exclude_session=leaves_out)
            run.search("Which flat did I move to?")
        assert len(built) == 1
        view = _index(mem, frozenset({"new"}))
        run.observe("user", "And again.")
        assert _index(mem, frozenset({"new"})) is view
        assert not np.isin(view.ids(), [hit.id for hit in run.search("moved again", k=3)]).all()
