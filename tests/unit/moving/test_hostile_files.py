"""Files that would have to be believed or run to be read: refused with a typed error, and nothing is written. MV-06."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import chat_exports as exports
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.errors import InvalidInput, InvalidJson, MunimentError, TooLarge, UnsafeFile
from muniment.handles.memory import Memory
from muniment.moving import sources
from muniment.moving.formats.values import Placed
from muniment.moving.sources import read_values
from products import for_each

# -- archives -----------------------------------------------------------------------------------------


@pytest.mark.req("MV-06")
def test_a_zip_bomb_is_refused_before_it_is_unpacked(mem: Memory, tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", b"[" + b" " * (64 * 1024 * 1024) + b"]")
    with pytest.raises(UnsafeFile, match="would unpack"):
        mem.store.import_from("chatgpt", [path], user_id="ana")


def test_a_member_that_is_larger_than_it_says(mem: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = exports.chatgpt_zip(tmp_path / "export.zip")
    monkeypatch.setattr(sources, "MEMBER_BYTES_MAX", 2000)
    with pytest.raises((TooLarge, UnsafeFile)):
        mem.store.import_from("chatgpt", [path], user_id="ana")


def test_a_locked_or_broken_archive(mem: Memory, tmp_path: Path) -> None:
    data = exports.chatgpt_zip(tmp_path / "export.zip").read_bytes()
    locked = bytearray(data)
    at = data.index(b"PK\x01\x02")
    locked[at + 8] |= 1
    for number, each in enumerate((bytes(locked), data[: len(data) // 2], data[:60] + b"\xff" * 40 + data[100:])):
        path = tmp_path / f"{number}.zip"
        path.write_bytes(each)
        with pytest.raises(InvalidInput):
            mem.store.import_from("chatgpt", [path], user_id="ana")
    assert mem.store.tenants() == []


def test_names_that_lead_elsewhere_write_nothing(mem: Memory, tmp_path: Path) -> None:
    path = exports.write_zip(
        tmp_path / "export.zip", {"../../conversations.json": [exports.chatgpt_conversation()], "/etc/x.json": []}
    )
    report = mem.store.import_from("chatgpt", [path], user_id="ana")
    assert report.written["messages"] == 6
    assert sorted(each.name for each in tmp_path.iterdir()) == ["export.zip"]


# -- JSON ---------------------------------------------------------------------------------------------


def values_of(text: str | bytes, limit: int = 10_000) -> list[Placed]:
    data = text.encode() if isinstance(text, str) else text
    return list(read_values(io.BytesIO(data), element_chars_max=limit))


@for_each(
    "text",
    ["[1, 2", '{"a": ', "[NaN]", "[1] [2]", '{"a" 1}', "[1 2]", '["\\ud800' + "]", "{1: 2}", b"\xff\xfe[]", "[" * 9000,
     "[" + '{"a":' * 9000, '{"a":[1,]}', "[" + "9" * 5000 + "]"],
)  # fmt: skip
def test_json_that_is_none(text: str | bytes) -> None:
    with pytest.raises((InvalidJson, TooLarge)):
        values_of(text)


def test_an_element_without_end_is_too_large() -> None:
    with pytest.raises(TooLarge):
        values_of('["' + "a" * 300_000, limit=100_000)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(json_values, max_size=6), st.integers(0, 3))
@settings(max_examples=examples(100), deadline=None)
def test_elements_are_those_of_the_list(held: list[Any], indent: int) -> None:
    text = json.dumps(held, indent=indent or None)
    assert [placed.value for placed in values_of(text)] == held
    found = values_of(json.dumps({"first": 1, "held": held, "last": {"a": 2}}, indent=indent or None))
    assert [placed.value for placed in found if placed.key == "held"] == held
    assert [placed.path for placed in found if placed.key == "held"] == [f"$.held[{at}]" for at in range(len(held))]


def test_json_lines_are_read_line_by_line() -> None:
    found = values_of('{"a": 1}\n\n{"a": 2}\n')
    assert [(placed.path, placed.value) for placed in found] == [("line 1", {"a": 1}), ("line 2", {"a": 2})]
    assert [placed.key for placed in values_of('{"a": 1,\n"b": 2}')] == ["a", "b"]


@pytest.mark.soak
@pytest.mark.slow
def test_a_large_export_is_read_in_little_memory(tmp_path: Path) -> None:
    """40 MB of conversations take less than a tenth of that at any time."""
    path = tmp_path / "conversations.json"
    one = json.dumps(exports.chatgpt_conversation()) + ","
    with path.open("w") as file:
        file.write("[")
        for _ in range(40_000_000 // len(one)):
            file.write(one)
        file.write(one[:-1] + "]")
    tracemalloc.start()
    with path.open("rb") as stream:
        count = sum(1 for _ in read_values(stream))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count > 5000
    assert most < 4_000_000


# -- whatever a file holds ----------------------------------------------------------------------------

SYSTEM_NAMES = ["mem0", "zep", "letta", "chatgpt", "claude"]
known_keys = st.sampled_from(
    ["mapping", "messages", "chat_messages", "content", "parts", "value", "namespace", "fact", "uuid", "id", "role",
     "current_node", "message", "author", "memory", "data", "memory_id", "event", "text", "label", "blocks", "agents",
     "created_at", "valid_at", "tool_calls", "attachments", "conversations_memory", "project_memories", "docs", "key"]
)  # fmt: skip
shaped = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12) | known_keys,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(known_keys | st.text(max_size=4), inner, max_size=5),
    max_leaves=20,
)


@given(st.sampled_from(SYSTEM_NAMES), shaped)
@settings(max_examples=examples(150), deadline=None)
def test_a_file_of_odd_shape_is_left_out_or_refused(tmp_path_factory: Any, system: Any, value: Any) -> None:
    """No file makes a reader fail with anything but a typed error, and a dry run answers what the import does."""
    import muniment

    path = tmp_path_factory.mktemp("odd") / "odd.json"
    path.write_text(json.dumps([value, {"memory": value}, {"content": value, "role": "user"}]))
    with muniment.open(":memory:") as mem:
        try:
            dry = mem.store.import_from(system, [path], user_id="ana", dry_run=True)
        except MunimentError:
            return
        real = mem.store.import_from(system, [path], user_id="ana")
        assert dry.to_wire() | {"dry_run": False} == real.to_wire()
        assert mem.store.import_from(system, [path], user_id="ana").written == {}
