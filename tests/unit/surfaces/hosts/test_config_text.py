"""Configuration files edited where they stand: put in and taken out again, byte for byte, over generated files."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.errors import InvalidInput
from muniment.surfaces.hosts import config_files, json_text
from products import for_each

SCALARS = st.none() | st.booleans() | st.integers(-999, 999) | st.text(max_size=6)
NAMES = st.text(min_size=1, max_size=6).filter(lambda name: name not in ("hooks", "mcpServers"))
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)
SERVER = {"command": "muniment", "args": ["mcp"], "env": {"A": "b"}}


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A settings file as people and programs write them."""
    value: dict[str, Any] = draw(st.dictionaries(NAMES, VALUES, max_size=4))
    if draw(st.booleans()):
        value["hooks"] = {"Stop": draw(st.lists(st.just({"hooks": [{"command": "say"}]}), max_size=2))}
    if draw(st.booleans()):
        value["mcpServers"] = draw(st.dictionaries(NAMES, st.just({"command": "x"}), max_size=2))
    indent = draw(st.sampled_from([None, 2, 4, "\t"]))
    text = json.dumps(value, indent=indent, ensure_ascii=draw(st.booleans()))
    if draw(st.booleans()) and indent is not None:
        text = re.sub(r",\n", ", // a note, {[\n", text, count=1)
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return draw(st.sampled_from(["", "// first\n", "\n"])) + text + draw(st.sampled_from(["", "\n", "\n\n"]))


@given(documents())
def test_what_is_put_in_is_there_and_nothing_else_changes(text: str) -> None:
    before = json_text.parse(text).value
    made = json_text.with_member(text, ("mcpServers", "muniment"), SERVER)
    made = json_text.with_element(made, ("hooks", "Stop"), {"hooks": [{"command": "ours"}]})
    after = json_text.parse(made).value
    assert after["mcpServers"].pop("muniment") == SERVER
    assert after["hooks"]["Stop"].pop() == {"hooks": [{"command": "ours"}]}
    assert _without_empty(after) == _without_empty(before)
    if "//" not in made:
        json.loads(made)
    kept = iter(made)
    assert all(letter in kept for letter in text), "no letter of what was there is lost, and their order stays"
    taken = json_text.without_member(made, ("mcpServers", "muniment"))
    taken = json_text.without_elements(taken, ("hooks", "Stop"), lambda each: "ours" in json.dumps(each))
    assert _without_empty(json_text.parse(taken).value) == _without_empty(before)


def _without_empty(value: dict[str, Any]) -> dict[str, Any]:
    kept = {**value, "hooks": {name: each for name, each in value.get("hooks", {}).items() if each}}
    return {name: each for name, each in kept.items() if each or name not in ("hooks", "mcpServers")}


def test_neighbours_keep_their_form() -> None:
    text = '{\n\t"a": 1, // one\n\t"b": [1,2]  /* two */\n}\n'
    assert json_text.with_member(text, ("c",), {"d": 1}) == (
        '{\n\t"a": 1, // one\n\t"b": [1,2],  /* two */\n\t"c": {\n\t\t"d": 1\n\t}\n}\n'
    )
    assert json_text.with_member('{"a": 1}', ("c",), 2) == '{"a": 1, "c": 2}'
    assert json_text.with_member('{\n  "a": 1,\n}', ("c",), 2) == '{\n  "a": 1,\n  "c": 2,\n}'
    assert json_text.with_member("", ("c",), 2) == '{\n  "c": 2\n}\n'
    assert json_text.without_member('{\n  "a": 1,\n  "c": 2,\n}', ("c",)) == '{\n  "a": 1,\n}'
    assert json_text.without_member('{"c": 2, "a": 1}', ("c",)) == '{"a": 1}'
    assert json_text.without_member('{\n  "a": 1, // x\n  "c": 2\n}', ("c",)) == '{\n  "a": 1 // x\n}'


@for_each(
    "text", ["{", "[1 2]", '{"a" 1}', "{'a': 1}", '{"a": 1}}', '{"a": 01x}', '{"a": 1, "a": 2}', "/* open", "[" * 300]
)
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        json_text.parse(text)


KEYS = st.from_regex(r"[a-z]{1,4}", fullmatch=True)


@st.composite
def tables(draw: st.DrawFn) -> str:
    lines = [f"{name} = {draw(st.integers(0, 9))}" for name in draw(st.lists(KEYS, max_size=3, unique=True))]
    for name in draw(st.lists(KEYS.map(lambda each: f"t_{each}"), max_size=2, unique=True)):
        lines += [*draw(st.sampled_from([(), ("",), ("# a note",)])), f"[{name}]", 'x = "[mcp_servers.muniment]"']
    for name in draw(st.lists(KEYS, max_size=2, unique=True)):
        lines += [f"[mcp_servers.{name}]", 'command = "x"', f"[mcp_servers.{name}.env]", "A = '''", "[b]", "'''"]
    end = draw(st.sampled_from(["\n", "\r\n"]))
    return end.join(lines) + draw(st.sampled_from(["", end, end * 2]))


@given(tables())
def test_a_table_is_put_in_and_taken_out(text: str) -> None:
    made = config_files.with_table(text, ("mcp_servers", "muniment"), SERVER)
    assert made.startswith(text)
    after = tomllib.loads(made)
    assert after["mcp_servers"].pop("muniment") == SERVER
    assert {**after, "mcp_servers": after["mcp_servers"]} == {"mcp_servers": {}, **tomllib.loads(text)}
    taken = config_files.without_table(made, ("mcp_servers", "muniment"))
    assert tomllib.loads(taken) == tomllib.loads(text)
    assert taken.rstrip() == text.rstrip()
    assert config_files.without_table(text, ("mcp_servers", "muniment")) == text


def test_what_stands_behind_a_table_stays() -> None:
    text = config_files.with_table("a = 1\n", ("mcp_servers", "muniment"), SERVER) + "\n# mine\n[other]\nb = 2\n"
    with_note = config_files.without_table(text, ("mcp_servers", "muniment"))
    assert tomllib.loads(with_note) == {"a": 1, "other": {"b": 2}}


@pytest.mark.parametrize("text", ["a = ", "[x", 'mcp_servers = { other = { command = "x" } }', "mcp_servers = 3"])
def test_toml_that_cannot_be_added_to_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        config_files.with_table(text, ("mcp_servers", "muniment"), SERVER)


@pytest.mark.timeout(60)
def test_long_text_is_read_once() -> None:
    for piece in ('{"a": ', "/* ", '"\\', "[1,", " \n//", "*/*"):
        with pytest.raises(InvalidInput):
            json_text.parse("{" + piece * 200_000)
