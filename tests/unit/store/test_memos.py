"""Nothing that was forgotten stays in the memory of the process (LG-07): no cache of a store, no memo of a function."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from muniment.core.limits import REMEMBERED, TABLES, Memo, remembered
from muniment.handles.memory import Memory
from muniment.testing.hash_embedder import HashEmbedder

Maker = Callable[..., Memory]

SAID = (
    "Please never call me {0} in front of my boss.",
    "Let's go with the {0} plan. I will send {0} the papers by Friday.",
    "You may call me {0} again, I sent the papers yesterday.",
    "My sister {0} lives in Lisbon; she moved there in May 2021.",
    "Ich habe {0} gestern in München gesehen.",
    "我的妹妹叫{1}昨天去了北京。",
    "私の友達は{1}です。",
    "เมื่อวานฉันเจอ{2}ที่ตลาด",
    "어제 {3}를 만났어요.",
    "Вчера {4} приехала.",
)
ASKED = ("Who are {0} and {1}, and what did {0} list?", "{1}是谁", "Что делает {4}?", "{3}는 어디에 살아?")


HIDDEN = (
    "xinalbroZ",
    "垚焱淼鑫",
    "\u0e01\u0e34\u0e19\u0e32\u0e25\u0e1a\u0e4c\u0e23\u0e2d\u0e0b",
    "닉라블조",
    "акиналброЗ",
)
"""The words that are looked for, backwards, so that none stands in the code of the test."""


def words() -> tuple[str, ...]:
    return tuple(part[::-1] for part in HIDDEN)


def held(needles: tuple[str, ...]) -> Iterator[str | bytes]:
    """Every text that something in the process holds and that has one of the words."""
    in_bytes = tuple(needle.encode() for needle in needles)
    gc.unfreeze()  # what was there before the tests is looked through too
    gc.collect()
    waiting: list[Any] = gc.get_objects()
    gc.freeze()  # and not by every collection of the tests to come
    known = {id(each) for each in (*waiting, *needles, *in_bytes)}
    while waiting:
        for each in gc.get_referents(waiting.pop()):
            if id(each) in known:
                continue
            known.add(id(each))
            if isinstance(each, str):
                if any(needle in each for needle in needles):
                    yield each
            elif isinstance(each, bytes):
                if any(needle in each for needle in in_bytes):
                    yield each
            elif isinstance(each, dict | tuple | list | set | frozenset):
                waiting.append(each)


def use(mem: Memory) -> list[str]:
    """Say all of it, and ask for it in every way that reads texts."""
    names = words()
    run = mem.run(user_id="ana", session_id="s")
    events = [run.observe("user", text.format(*names), speaker=names[0]).id for text in SAID]
    run.remember(f"user.{names[0]}", names[0], sources=events[:1])
    for text in ASKED:
        asked = text.format(*names)
        run.compose("responder", query=asked)
        run.search(asked)
    return events


@pytest.mark.req("LG-07")
def test_no_memory_of_the_process_holds_what_was_forgotten(make: Maker) -> None:
    stores = [make("memory"), make("sqlite")]
    events = [use(mem) for mem in stores]
    needles = tuple(dict.fromkeys(form for word in words() for form in (word, word.casefold())))
    assert next(held(needles), None) is not None
    for mem, ids in zip(stores, events, strict=True):
        for event in ids:
            mem.forget(event=event)
    assert list(held(needles)) == []


def test_a_forget_empties_what_functions_and_tables_remember(make: Maker) -> None:
    read: list[str] = []

    @remembered(8)
    def length(text: str) -> int:
        read.append(text)
        return len(text)

    table: Memo[str, int] = Memo()
    table["said"] = 1
    try:
        mem = make("memory")
        event = mem.run(user_id="ana").observe("user", "Hello.")
        assert (length("one"), length("one")) == (3, 3)
        mem.forget(event=event.id)
        assert table == {}
        assert length("one") == 3
        assert read == ["one", "one"]
    finally:
        REMEMBERED.pop()


def test_a_table_lives_no_longer_than_who_made_it() -> None:
    embedder = HashEmbedder()
    embedder.embed(["a word"])
    tables = len(TABLES)
    del embedder
    gc.collect()
    assert len(TABLES) < tables


def test_an_embedder_keeps_no_word_beyond_a_forget(make: Maker) -> None:
    embedder, mem = HashEmbedder(), make("memory")
    before = embedder.embed(["my secret"])
    assert embedder._places
    mem.forget(event=mem.run(user_id="ana").observe("user", "Hello.").id)
    assert not embedder._places
    assert embedder.embed(["my secret"]).tolist() == before.tolist()
