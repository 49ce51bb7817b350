"""The index names the analyzer that made it: one of before answers, and a verification says that it is due."""

from __future__ import annotations

from pathlib import Path

import pytest

import muniment
from muniment.core.text.analyzer import ANALYZER_VERSION
from muniment.errors import IntegrityFailure
from muniment.memory._segments import (
    IndexedTurn,
    build_segment,
    decode_segment,
    drop_turns,
    encode_segment,
    is_outdated,
    merge_segments,
)


def _block(number: int) -> bytes:
    turn = IndexedTurn(f"evt_{number}", "s", number, "0" * 16, "user", 9, 1, [7])
    return encode_segment(build_segment([turn]))


NOW = _block(2)
BEFORE = NOW[:4] + b"1\n" + _block(1)[6:]
"""A block that an earlier analyzer made."""


def test_a_block_names_its_analyzer() -> None:
    assert (is_outdated(NOW), is_outdated(BEFORE)) == (False, True)
    assert NOW[:6] == b"MSEG" + ANALYZER_VERSION.encode()
    for block in (NOW, BEFORE):
        assert encode_segment(decode_segment(block)) == block
    with pytest.raises(IntegrityFailure, match="not a segment"):
        decode_segment(b"MSEX" + NOW[4:])


@pytest.mark.parametrize("parts", [(BEFORE, NOW), (NOW, BEFORE)])
def test_what_is_merged_from_a_block_of_before_is_of_before(parts: tuple[bytes, bytes]) -> None:
    merged = merge_segments([decode_segment(part) for part in parts])
    assert is_outdated(encode_segment(merged))
    assert is_outdated(encode_segment(drop_turns(merged, {"evt_2"}) or merged))
    assert not is_outdated(encode_segment(merge_segments([decode_segment(NOW), decode_segment(NOW)])))


def test_after_a_rebuild_other_forms_of_words_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def plain(text: str, words: object = None) -> list[str]:
        return text.lower().rstrip(".").split()

    with muniment.open(tmp_path / "store.sqlite") as mem:
        run = mem.run(user_id="ana", session_id="s1")
        with monkeypatch.context() as before:
            before.setattr("muniment.memory.index.analyze", plain)
            before.setattr("muniment.memory._segments.Segment.__init__.__defaults__", ("1\n",))
            run.observe("user", "Mi hermana vive en Sevilla.")
            mem.store.index()
        assert mem.verify().outdated == 1
        mem.store.rebuild()
        assert mem.verify().outdated == 0
        assert [hit.text for hit in run.search("¿Dónde vivían?")] == ["Mi hermana vive en Sevilla."]
