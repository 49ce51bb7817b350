"""Canonical JSON (X-05): RFC 8785 to the byte, ints with all their digits, a reader that takes nothing in two ways."""

from __future__ import annotations

import enum
import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.core.canonical import MAX_DEPTH, MAX_INT_DIGITS, canonical_bytes, canonical_text, parse_json
from muniment.errors import InvalidJson, TooLarge
from products import for_each

ROOT = Path(__file__).resolve().parents[3]
GOLDEN: dict[str, Any] = json.loads((ROOT / "tests" / "golden" / "canonical.json").read_text(encoding="utf-8"))

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


def from_hex(bits: str) -> float:
    value: float = struct.unpack(">d", bytes.fromhex(bits))[0]
    return value


# -- golden ---------------------------------------------------------------------------------------------


@pytest.mark.req("X-05")
@for_each(("bits", "text"), GOLDEN["numbers"])
def test_numbers_of_rfc_8785_appendix_b(bits: str, text: str) -> None:
    assert canonical_text(from_hex(bits)) == text
    assert struct.pack(">d", float(text)) == struct.pack(">d", from_hex(bits) + 0.0)  # -0 becomes 0


@pytest.mark.req("X-05")
@pytest.mark.parametrize("bits", ["7fffffffffffffff", "7ff0000000000000", "fff0000000000000"])
def test_what_is_not_a_number_is_refused(bits: str) -> None:
    with pytest.raises(InvalidJson, match="not a JSON number") as caught:
        canonical_text({"a": [0, from_hex(bits)]})
    assert caught.value.path == "$.a[1]"


@pytest.mark.req("X-05")
@for_each("case", GOLDEN["documents"], ids=lambda case: case["name"])
def test_documents(case: dict[str, str]) -> None:
    assert canonical_text(parse_json(case["source"])) == case["canonical"]
    assert canonical_bytes(parse_json(case["source"].encode())) == case["canonical"].encode()


@pytest.mark.req("X-05")
@for_each("case", GOLDEN["refusals"], ids=lambda case: case["name"])
@for_each("as_bytes", [True, False])
def test_refusals(case: dict[str, str], as_bytes: bool) -> None:
    with pytest.raises(InvalidJson, match=case["says"]) as caught:
        parse_json(case["source"].encode() if as_bytes else case["source"])
    assert caught.value.path is not None


def test_a_refusal_says_where() -> None:
    for source, path in [
        ('{"a":{"b c":1,"b c":1}}', '$.a["b c"]'),
        ('{"a":[0,"\\ud800"]}', "$.a[1]"),
        ('{"x":[1e400]}', "$.x[0]"),
    ]:
        with pytest.raises(InvalidJson) as caught:
            parse_json(source)
        assert caught.value.path == path


@for_each("source", [b'"\xff"', b'"\xed\xa0\x80"', b'"\xc0\x80"', b"\xff\xfe{\x00}\x00", b'"\xf4\x90\x80\x80"'])
def test_bytes_that_are_not_utf_8(source: bytes) -> None:
    with pytest.raises(InvalidJson, match="not UTF-8"):
        parse_json(source)


def test_limits() -> None:
    at_most = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert canonical_text(parse_json(at_most)) == at_most
    deep: list[Any] = []
    for _ in range(MAX_DEPTH):
        deep = [deep]
    with pytest.raises(InvalidJson, match="deeper"):
        canonical_text(deep)
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(InvalidJson, match="deeper"):
        canonical_text(loop)
    digits = "9" * MAX_INT_DIGITS
    assert canonical_text(parse_json(digits)) == digits
    with pytest.raises(InvalidJson, match="digits"):
        canonical_text(10**MAX_INT_DIGITS)
    with pytest.raises(TooLarge):
        parse_json(b"[1, 2]", max_bytes=5)
    assert parse_json(b"[1, 2]", max_bytes=6) == [1, 2]


@for_each("value", [{1: 2}, {None: 1}, {"a": {1, 2}}, {"a": b"x"}, object(), {"a": 1j}, {"\ud800": 1}, "\udfff"])
def test_what_has_no_canonical_form(value: Any) -> None:
    with pytest.raises(InvalidJson):
        canonical_text(value)


def test_what_extends_a_json_type_is_written_as_it() -> None:
    class Colour(enum.StrEnum):
        RED = "red"

    class Level(enum.IntEnum):
        HIGH = 3

    class Mine(dict[str, Any]):
        pass

    class Half(float):
        pass

    value = Mine(a=Colour.RED, b=Level.HIGH, c=(1, 2), d=Half(0.5))
    assert canonical_text(value) == '{"a":"red","b":3,"c":[1,2],"d":0.5}'


# -- properties -----------------------------------------------------------------------------------------


def same(left: Any, right: Any) -> bool:
    """Equal as JSON: true is not 1, and 1.0 is 1; ints are compared exactly, and with a float as doubles."""
    if isinstance(left, bool) or isinstance(right, bool) or left is None or right is None:
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) or isinstance(right, float):
        return float(left) == float(right)  # a double from 2**53 on reads back as the integer its text shows
    return bool(left == right)


@pytest.mark.req("X-05")
@settings(max_examples=examples(100), deadline=None)
@given(VALUES)
def test_reading_undoes_writing_and_writing_is_a_fixpoint(value: Any) -> None:
    text = canonical_text(value)
    again = parse_json(text)
    assert same(again, value)
    assert canonical_text(again) == text
    assert parse_json(canonical_bytes(value)) == again


@pytest.mark.req("X-05")
@settings(max_examples=examples(60), deadline=None)
@given(st.dictionaries(TEXT, VALUES, max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(value: dict[str, Any], rng: Any) -> None:
    items = list(value.items())
    rng.shuffle(items)
    assert canonical_text(dict(items)) == canonical_text(value)
    keys = list(parse_json(canonical_text(value)))
    assert keys == sorted(keys, key=lambda key: key.encode("utf-16-be"))


@settings(max_examples=examples(150), deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_the_shortest_that_reads_back(value: float) -> None:
    text = canonical_text(value)
    assert float(text) == value
    assert len(text.lstrip("-").replace(".", "").split("e")[0].strip("0")) <= 17
    if value and abs(value) < 1e21 and abs(value) >= 1e-6:
        assert "e" not in text
    elif value:
        assert "e" in text


@settings(max_examples=examples(60), deadline=None)
@given(st.text(max_size=60) | st.binary(max_size=60))
def test_no_input_gives_anything_but_a_value_or_our_error(source: str | bytes) -> None:
    try:
        value = parse_json(source)
    except InvalidJson:
        return
    canonical_text(value)


# -- another process, another interpreter -----------------------------------------------------------------

_DIGEST = """
import hashlib, json, sys
from muniment.core.canonical import canonical_bytes, parse_json
golden = json.load(open(sys.argv[1], encoding="utf-8"))
values = [parse_json(case["source"]) for case in golden["documents"]] + [{key: 1 for key in {"x", "y", "é", "z"}}]
print(hashlib.sha256(canonical_bytes(values)).hexdigest())
"""


def digest_in(python: str, **env: str) -> str:
    done = subprocess.run(
        [python, "-c", _DIGEST, str(ROOT / "tests" / "golden" / "canonical.json")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1", **env},
    )
    return done.stdout.strip()


@pytest.mark.req("X-05")
def test_the_same_bytes_in_another_process_under_another_hash_seed() -> None:
    values = [parse_json(case["source"]) for case in GOLDEN["documents"]]
    values += [{"x": 1, "y": 1, "é": 1, "z": 1}]
    here = hashlib.sha256(canonical_bytes(values)).hexdigest()
    assert {digest_in(sys.executable, PYTHONHASHSEED=seed) for seed in ("0", "1", "4242")} == {here}


def other_pythons() -> list[str]:
    """Interpreters of other versions that run: on the PATH, or installed beside this one."""
    found: dict[int, str] = {}
    beside = Path(sys.base_prefix).parent
    for minor in range(11, 20):
        candidates = [shutil.which(f"python3.{minor}"), *map(str, beside.glob(f"*/bin/python3.{minor}"))]
        for python in candidates:
            if python is None or minor == sys.version_info.minor or minor in found:
                continue
            if subprocess.run([python, "-c", "import json"], capture_output=True, check=False).returncode == 0:
                found[minor] = python
    return list(found.values())


@pytest.mark.req("X-05")
def test_the_same_bytes_under_another_python() -> None:
    others = other_pythons()
    if not others:
        pytest.skip(f"no other Python than {sys.version_info.major}.{sys.version_info.minor} found: NOT COMPARED")
    assert {digest_in(python) for python in others} == {digest_in(sys.executable)}
