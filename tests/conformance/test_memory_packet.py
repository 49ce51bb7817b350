"""MemoryPacket v1 (000): our record, our schema and the document's own schema say the same of every document."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from contract_cases import Maker, assert_path_stands, random_mutation, seed_text, single_mutations
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.contracts.packet import MemoryPacket
from muniment.contracts.schemas import schema_of, validate
from muniment.core.canonical import canonical_text
from products import for_each

DOCUMENT_SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parent / "memorypacket_v1.schema.json").read_text(encoding="utf-8")
)
OURS = schema_of("MemoryPacket")
THEIRS_JUDGE = jsonschema_rs.Draft202012Validator(DOCUMENT_SCHEMA, validate_formats=False)
OUR_JUDGE = jsonschema_rs.Draft202012Validator(OURS, validate_formats=False)
THEIRS_WITH_FORMATS = jsonschema_rs.Draft202012Validator(DOCUMENT_SCHEMA, validate_formats=True)
OURS_WITH_FORMATS = jsonschema_rs.Draft202012Validator(OURS, validate_formats=True)
MAKER = Maker(DOCUMENT_SCHEMA)


def agree(document: Any) -> bool:
    """The verdict all three give; fails when they differ."""
    theirs, ours, issues = (
        THEIRS_JUDGE.is_valid(document),
        OUR_JUDGE.is_valid(document),
        validate("MemoryPacket", document),
    )
    assert theirs == ours == (not issues), (theirs, ours, issues, document)
    assert THEIRS_WITH_FORMATS.is_valid(document) == OURS_WITH_FORMATS.is_valid(document), document
    for issue in issues:
        assert_path_stands(document, issue.path)
    return theirs


def test_the_committed_copy_is_the_documents_schema() -> None:
    text = seed_text("000")
    if text is None:
        pytest.skip("../shared/seeds is not here: the committed copy stands for the document")
    found = re.search(r"```jsx\n(.*?)```", text, re.DOTALL)
    assert found is not None
    assert json.loads(found[1]) == DOCUMENT_SCHEMA


@pytest.mark.req("X-02", "X-03", "X-08")
def test_every_single_mutation_of_the_largest_packet_is_judged_alike() -> None:
    largest = MAKER.maximal()
    assert agree(largest)
    verdicts = [agree(document) for document in single_mutations(largest)]
    assert len(verdicts) > 3000
    assert 0.05 < sum(verdicts) / len(verdicts) < 0.6, "both verdicts must be exercised"


@pytest.mark.req("X-02")
def test_every_single_mutation_of_the_smallest_packet_is_judged_alike() -> None:
    smallest = MAKER.minimal()
    assert agree(smallest)
    verdicts = [agree(document) for document in single_mutations(smallest)]
    assert not all(verdicts)


@pytest.mark.req("X-02", "X-03")
@settings(max_examples=examples(120), deadline=None)
@given(st.integers(0, 2**64))
def test_random_packets_and_their_mutations_are_judged_alike(seed: int) -> None:
    rng = random.Random(seed)
    packet = MAKER.random(rng)
    assert agree(packet)
    for _ in range(10):
        agree(random_mutation(packet, rng))


@pytest.mark.req("X-02", "X-03")
@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**64))
def test_a_packet_is_written_back_as_it_was_read(seed: int) -> None:
    packet = MAKER.random(random.Random(seed))
    assert canonical_text(MemoryPacket.from_wire(packet).to_wire()) == canonical_text(packet)


@pytest.mark.req("X-03")
def test_defaults_fill_nothing_in() -> None:
    packet = MAKER.minimal()
    wire = MemoryPacket.from_wire(packet).to_wire()
    assert wire == packet
    assert "tenant_id" not in wire["meta"]["scope"]
    assert "preferences" not in wire["long_term"]


@pytest.mark.req("X-01")
def test_a_record_is_immutable() -> None:
    packet = MemoryPacket.from_wire(MAKER.maximal())
    with pytest.raises(ValueError, match="frozen"):
        packet.meta.purpose = "tool"  # type: ignore[misc]
    assert isinstance(packet.citations, tuple)


@for_each("section", list(DOCUMENT_SCHEMA["properties"]))
def test_all_seven_sections_are_required(section: str) -> None:
    packet = MAKER.minimal()
    del packet[section]
    (issue,) = validate("MemoryPacket", packet)
    assert (issue.path, issue.message) == (f"$.{section}", "a required key is missing")
