"""What is kept under names, below any framework: paths, deltas, folds, and what searches compare."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.ports.schema import LIVE, NEVER, REMOVED, SUPERSEDED, PlaceRow
from muniment.errors import InvalidInput, StoreDamaged
from muniment.memory.kept.search import VectorFeatures, WordFeatures
from muniment.memory.kept.threads import Channel, apply_delta, channels_told, make_delta, pack, state_of, unpack
from muniment.memory.kept.values import (
    KeptEntry,
    Placed,
    after_path,
    fold,
    labels_of,
    path_of,
    prefix_rows,
    prefixes_of,
)
from muniment.store.ledger import VALUE_KEPT, VALUE_REMOVED, VALUES_PROLONGED

labels = st.lists(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=6), max_size=4)


@given(labels, labels)
def test_a_path_tells_its_labels_and_a_prefix_is_a_range(one: list[str], other: list[str]) -> None:
    path = path_of(one)
    assert labels_of(path) == tuple(one)
    below = path_of([*one, *other])
    assert path <= below < after_path(path)
    assert prefixes_of(below)[len(one)] == path
    if one != other[: len(one)]:
        assert not path_of(other).startswith(path)


@pytest.mark.parametrize("bad", [["a\x00b"], ["x" * 1200]])
def test_a_path_that_no_index_takes_is_refused(bad: list[str]) -> None:
    with pytest.raises(InvalidInput):
        path_of(bad)


@given(st.binary(max_size=400), st.binary(max_size=400), st.integers(0, 400), st.integers(0, 60))
def test_a_delta_gives_back_what_it_was_made_of(base: bytes, new: bytes, at: int, cut: int) -> None:
    for other in (new, base, base[:at] + new + base[at:], base[:at] + base[at + cut :], new + base, base + new, b""):
        assert apply_delta(base, make_delta(base, other)) == other


def test_a_delta_of_what_was_appended_or_put_in_is_short() -> None:
    rng = np.random.default_rng(7)
    base = rng.bytes(50_000)
    added = rng.bytes(300)
    for other in (b"\x01\x02" + base[1:] + added, base[:20_000] + added + base[20_000:], base[:9_000] + base[9_200:]):
        delta = make_delta(base, other)
        assert apply_delta(base, delta) == other
        assert sum(len(part) for part in delta if isinstance(part, bytes)) <= 340


@pytest.mark.parametrize("shape", [b"a", b"ab", b"abcabcabd", bytes(range(256))])
def test_the_work_of_a_delta_grows_with_the_lengths(shape: bytes) -> None:
    """Hostile: bytes that repeat, where every place looks like every other."""
    for size in (1_000, 64_000):
        base = shape * (size // len(shape))
        other = base[: size // 2] + b"!" + base[size // 2 :][::-1]
        delta = make_delta(base, other)
        assert len(delta) <= 2 * 64 + 1
        assert apply_delta(base, delta) == other


def test_a_channel_is_told_by_another_until_that_takes_as_much_as_the_whole() -> None:
    rng = np.random.default_rng(3)
    state, before, told_of, spent, wholes = b"", {}, {}, 0, 0
    for step in range(150):
        state += base64.b64encode(rng.bytes(90))
        told, before = channels_told({"a": ("bytes", state), "b": ("bytes", b"same" * 100)}, before, f"e{step}")
        told_of[f"e{step}"] = told
        spent += len(str(told))
        wholes += "parts" not in told["a"]
        assert step == 0 or told["b"] == {"at": "e0"}
    assert wholes < 30
    assert spent < 10 * len(state), "and not the sum of all states, which is 75 times as much"

    def read(at: str) -> Channel:
        said = told_of[at]["a"]
        named = said.get("at") or said.get("by")
        return state_of(said, at, None if named is None else read(named))

    assert read("e149").typed == ("bytes", state)
    with pytest.raises(StoreDamaged):
        state_of(told_of["e149"]["a"] | {"size": 3, "by": "x"}, "e149", read("e0"))


@pytest.mark.parametrize("packed", [{"b": "!"}, {"z": "AAAA", "size": 9}, {}, {"z": 3, "size": 1}])
def test_what_cannot_be_unpacked_is_damage(packed: dict[str, object]) -> None:
    with pytest.raises(StoreDamaged):
        unpack(packed)


def test_what_says_it_is_short_is_not_inflated() -> None:
    bomb = pack(b"0" * 10_000_000)
    with pytest.raises(StoreDamaged):
        unpack(bomb | {"size": 100})


def entry(number: int, **told: object) -> KeptEntry:
    return KeptEntry(f"e{number}", "corpus:x", "kept_values", number, {"space": "values_x", **told})


def test_what_stands_is_what_was_put_last() -> None:
    standing: dict[Placed, PlaceRow] = {}
    put = {"event": VALUE_KEPT, "path": ["a", "b"], "names": ["k"]}
    path = path_of(["a", "b"])
    first = fold([entry(1, **put, at=10, expires=50)], standing)
    assert [(row.state, row.made, row.changed, row.expires) for row in first] == [(LIVE, 10, 10, 50)]
    fold([entry(2, event=VALUES_PROLONGED, prolonged=[[path, "k", 90], [path, "other", 70]])], standing)
    second = fold([entry(3, **put, at=60)], standing)
    assert {row.entry_id: (row.state, row.made, row.expires) for row in second} == {
        "e1": (SUPERSEDED, 10, NEVER),
        "e3": (LIVE, 10, NEVER),
    }
    gone = fold([entry(4, event=VALUE_REMOVED, path=["a", "b"], names=["k"], at=70)], standing)
    assert [(row.entry_id, row.state) for row in gone] == [("e3", REMOVED)]
    assert standing == {}
    again = fold([entry(5, **put, at=80)], standing)
    assert [(row.made, row.entry_id) for row in again] == [(80, "e5")]
    assert [row.prefix for row in prefix_rows(again[0])] == ["", path_of(["a"]), path]


def test_a_score_by_words_is_the_share_of_the_query_that_a_text_says() -> None:
    words = WordFeatures("m")
    texts = ["Ana likes pizza", "Ben likes chess", "Ana likes pizza and plays the guitar in a band", "nothing"]
    scored = words.packed(words.made(texts))
    found = scored("pizza")
    assert found.scores.tolist() == [1, 0, 1, 0]
    assert found.answers.tolist() == [True, False, True, False]
    assert found.density[0] > found.density[2]
    both = scored("pizza chess").scores
    assert both[1] > both[0] > 0, "the rarer word counts for more"
    assert scored("").scores.tolist() == [0, 0, 0, 0]
    assert words.packed([])("pizza").scores.tolist() == []


def test_a_score_by_vectors_is_the_cosine() -> None:
    rows = {"a": [3.0, 4.0], "b": [4.0, -3.0], "none": [0.0, 0.0], "-a": [-3.0, -4.0]}
    vectors = VectorFeatures("v", lambda texts: [rows[text] for text in texts])
    found = vectors.packed(vectors.made(["a", "b", "none", "-a"]))("a")
    assert np.allclose(found.scores, [1, 0, 0, -1], atol=1e-6)
    assert vectors.packed([])("a").scores.tolist() == []
