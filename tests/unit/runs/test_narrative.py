"""The narrative (CS-11): eight sections whatever the snapshot holds, its words and no others, the same bytes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from snapshot_cases import HOSTILE, documents, relaxed, snapshots, texts

from muniment.contracts.snapshot import CompactionSnapshot
from muniment.runs.narrative import HEADINGS, escaped, is_verified, narrative, pointer_text, span_text, value_text
from products import for_each

GOLDEN = Path(__file__).parents[2] / "golden" / "narrative"
PLAIN = {"text", "softbreak", "text_special"}
BLOCKS = {"heading", "paragraph", "bullet_list", "ordered_list", "list_item", "inline"}


def read(name: str) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))
    return plain


def parsed(page: str) -> list[Token]:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(page)


def section(page: str, number: int) -> str:
    after = page.split(f"{HEADINGS[number - 1]}\n\n")[1]
    return after.split("\n\n## ")[0]


# -- golden ---------------------------------------------------------------------------------------------


@pytest.mark.req("CS-11")
@pytest.mark.parametrize("name", sorted(path.stem for path in GOLDEN.glob("*.json")))
def test_golden_pages(name: str) -> None:
    page = (GOLDEN / f"{name}.md").read_text("utf-8")
    assert narrative(CompactionSnapshot.from_wire(read(name))) == page


@pytest.mark.req("CS-11", "X-05")
def test_the_bytes_are_the_same_in_another_process_and_key_order() -> None:
    plain = read("full")
    backwards = json.loads(json.dumps(plain), object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    page = narrative(CompactionSnapshot.from_wire(plain))
    assert narrative(CompactionSnapshot.from_wire(backwards)) == page
    code = (
        "import json, sys\n"
        "from muniment.contracts.snapshot import CompactionSnapshot\n"
        "from muniment.runs.narrative import narrative\n"
        "sys.stdout.buffer.write(narrative(CompactionSnapshot.from_wire(json.load(sys.stdin))).encode())\n"
    )
    for seed in ("0", "77"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            input=json.dumps(plain).encode(),
            env={"PYTHONHASHSEED": seed, "PYTHONUTF8": "1"},
            capture_output=True,
            check=True,
        )
        assert done.stdout.decode() == page


# -- sections -------------------------------------------------------------------------------------------


@pytest.mark.req("CS-11")
@relaxed
@given(snapshots())
def test_eight_sections_in_order_whatever_is_stored(snapshot: CompactionSnapshot) -> None:
    page = narrative(snapshot)
    assert [line for line in page.splitlines() if line.lstrip().startswith("#")] == ["# Run narrative", *HEADINGS]
    tokens = parsed(page)
    headings = [tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "heading_open"]
    assert headings == ["Run narrative", *(heading.removeprefix("## ") for heading in HEADINGS)]
    assert page.count("## ") == 8, "also for who looks with a plain search"
    assert page.splitlines() == page.rstrip("\n").split("\n"), "no stored text breaks a line"
    assert all(section(page, number).strip() for number in range(1, 9)), "no section is empty"
    assert_plain(page, tokens)


def assert_plain(page: str, tokens: list[Token]) -> None:
    """Stored text is text to a Markdown reader: every list item is a line of ours, and nothing else is made."""
    assert {token.type.removesuffix("_open").removesuffix("_close") for token in tokens} <= BLOCKS
    inline = {child.type for token in tokens for child in token.children or ()}
    assert inline <= PLAIN, inline - PLAIN
    items = sum(token.type == "list_item_open" for token in tokens)
    lines = [line.lstrip() for line in page.splitlines()]
    assert items == sum(line.startswith(("- ", "1. ", "2. ", "3. ")) for line in lines)


@relaxed
@given(texts())
def test_an_escape_neither_adds_nor_loses(text: str) -> None:
    shown = escaped(text)
    (paragraph,) = [token for token in parsed(shown) if token.type == "inline"] or [None]
    read_back = "".join(child.content for child in (paragraph.children or ())) if paragraph else ""
    bare = "".join(
        " " if char.isspace() or ord(char) < 32 or 0x7F <= ord(char) < 0xA0 or char in _TURNS else char for char in text
    )
    assert read_back == " ".join(bare.split())
    inside = [token for token in parsed(f"- x {shown} y") if token.type == "inline"]
    assert [child.type for child in inside[0].children or () if child.type not in PLAIN] == []


_TURNS = "\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"


@pytest.mark.req("CS-11")
@relaxed
@given(snapshots())
def test_every_claim_and_pointer_stands_in_its_section(snapshot: CompactionSnapshot) -> None:
    page = narrative(snapshot)
    for claim in snapshot.state.claims:
        lines = section(page, 3 if is_verified(claim) else 6).splitlines()
        assert any(f"{value_text(claim.claim_id)}: {value_text(claim.statement)}" in line for line in lines)
        assert all(f"  - {pointer_text(ref)}" in lines for ref in claim.evidence_refs)
    for conflict in snapshot.state.conflicts:
        lines = section(page, 4).splitlines()
        assert all(f"    - {pointer_text(ref)}" in lines for ref in (*conflict.side_a_refs, *conflict.side_b_refs))
    for each in snapshot.latest_context_manifest_ids:
        assert f"  - {value_text(each)}" in section(page, 8)


@pytest.mark.req("CS-11")
@relaxed
@given(documents())
def test_the_same_snapshot_gives_the_same_bytes(document: dict[str, Any]) -> None:
    snapshot = CompactionSnapshot.from_wire(document)
    read_back = CompactionSnapshot.from_wire(json.loads(snapshot.to_bytes()))
    assert narrative(snapshot) == narrative(snapshot) == narrative(read_back)


@pytest.mark.req("CS-11")
@relaxed
@given(documents(), st.sampled_from(["objective", "sequence", "provenance_mode"]))
def test_it_depends_on_what_it_shows(document: dict[str, Any], key: str) -> None:
    other = document | {key: document[key] + (1 if key == "sequence" else "x")}
    assert narrative(CompactionSnapshot.from_wire(document)) != narrative(CompactionSnapshot.from_wire(other))


# -- single things --------------------------------------------------------------------------------------


def test_ids_and_ordinary_words_stand_as_they_are() -> None:
    for plain in (
        "clm_01J9-a.b:c/d",
        "ev_0a1b__2c",
        "She moved (in May), paid 5 > 3, a+b=c; R & D, 50 %!",
        "snp_x.12",
        "1.2.3",
        "日本語",
    ):
        assert escaped(plain) == plain


@for_each("text", [each for each in HOSTILE if each.strip()])
def test_hostile_text_is_one_plain_line(text: str) -> None:
    (only,) = [token for token in parsed(f"- {escaped(text)}") if token.type == "inline"]
    assert {child.type for child in only.children or ()} <= PLAIN
    assert "p://" not in escaped(text)
    assert "## " not in escaped(text)
    assert "www." not in escaped(text)
    assert "\x1b" not in escaped(text)


@for_each(
    ("span", "shown"),
    [
        ({"start": 12, "end": 34}, "12–34"),
        ([12, 34], "12–34"),
        ("L1-L4", "L1-L4"),
        ({"page": 4}, "page: 4"),
        ({"start": 1, "end": 2, "page": 3}, "end: 2; page: 3; start: 1"),
        ([1, 2, 3], "1, 2, 3"),
        ({}, "none"),
        ([], "none"),
        ("", "(empty)"),
    ],
)
def test_spans_of_every_shape(span: Any, shown: str) -> None:
    assert span_text(span) == shown


def test_values_as_a_person_would_write_them() -> None:
    assert value_text({"b": [1, 2.0, None], "a": {"x": True}}) == "a: (x: true); b: (1, 2, null)"
    assert value_text([]) == value_text({}) == "none"


def test_more_than_three_next_actions_are_not_dropped_in_silence() -> None:
    plain = read("full")
    plain["state"]["next_actions"] = ["one", "two", "three", "four", "five"]
    shown = section(narrative(CompactionSnapshot.from_wire(plain)), 7)
    assert shown == "1. one\n2. two\n3. three\n\n2 more in the snapshot"


def test_a_claim_that_says_verified_but_has_no_evidence_says_so() -> None:
    plain = read("full")
    plain["state"]["claims"] = [{"claim_id": "k", "status": "verified", "statement": "s", "evidence_refs": []}]
    assert section(narrative(CompactionSnapshot.from_wire(plain)), 3) == "- k: s\n  - no evidence"
