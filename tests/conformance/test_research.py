"""Router and summary schemas v1 (003): the document's own examples, its tables' required columns, the 0–100 scale."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from typing import Any

import pytest
from contract_cases import DROP, changed, seed_text

import muniment
from muniment.contracts.kinds import record_of
from muniment.contracts.schemas import validate
from muniment.research.urls import cid_of, normalize_url
from products import for_each

PERSPECTIVES: dict[str, Any] = {
    "schema_version": "perspectives.v1",
    "run_id": "dr_20260213_001",
    "created_at": "2026-02-13T12:05:00Z",
    "perspectives": [
        {
            "id": "p1",
            "title": "Technical overview",
            "track": "standard",
            "agent_type": "ClaudeResearcher",
            "prompt_contract": {
                "max_words": 900,
                "max_sources": 12,
                "tool_budget": {"search_calls": 4, "fetch_calls": 6},
                "must_include_sections": ["Findings", "Sources", "Gaps"],
            },
            "expected_platforms": ["docs", "github", "blog"],
        }
    ],
}
PACK: dict[str, Any] = {
    "schema_version": "summary_pack.v1",
    "run_id": "dr_20260213_001",
    "generated_at": "2026-02-13T12:40:00Z",
    "limits": {"max_summary_kb": 5, "max_total_summary_kb": 60},
    "summaries": [
        {
            "perspective_id": "p1",
            "source_artifact": "wave-1/p1.md",
            "summary_md": "summaries/p1.summary.md",
            "key_claims": [{"claim": "X uses Y for Z.", "citation_cids": ["cid_abc"], "confidence": 85}],
        }
    ],
    "total_estimated_tokens": 4200,
}
EXAMPLES = {"Perspectives": PERSPECTIVES, "SummaryPack": PACK}


def test_the_examples_are_the_documents() -> None:
    text = seed_text("003")
    if text is None:
        pytest.skip("../shared/seeds is not here: the copies above stand for the document")
    assert [json.loads(block) for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL)] == [PERSPECTIVES, PACK]


@pytest.mark.req("X-01")
@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_documents_example_is_valid_and_comes_back(kind: str) -> None:
    assert validate(kind, EXAMPLES[kind]) == []
    assert record_of(kind).from_wire(EXAMPLES[kind]).to_wire() == EXAMPLES[kind]


REQUIRED = {
    "Perspectives": [
        *[(key,) for key in PERSPECTIVES],
        *[("perspectives", 0, key) for key in PERSPECTIVES["perspectives"][0] if key != "expected_platforms"],
        *[("perspectives", 0, "prompt_contract", key) for key in PERSPECTIVES["perspectives"][0]["prompt_contract"]],
    ],
    "SummaryPack": [
        *[(key,) for key in PACK],
        *[("summaries", 0, key) for key in PACK["summaries"][0]],
        *[("summaries", 0, "key_claims", 0, key) for key in PACK["summaries"][0]["key_claims"][0]],
    ],
}


@for_each(("kind", "at"), [(kind, at) for kind, places in REQUIRED.items() for at in places])
def test_what_the_tables_tick_is_required_and_not_null(kind: str, at: tuple[Any, ...]) -> None:
    assert [issue.message for issue in validate(kind, changed(EXAMPLES[kind], at, DROP))] == [
        "a required key is missing"
    ]
    assert len(validate(kind, changed(EXAMPLES[kind], at, None))) == 1


def test_what_the_tables_cross_is_optional() -> None:
    document = copy.deepcopy(PERSPECTIVES)
    del document["perspectives"][0]["expected_platforms"]
    assert validate("Perspectives", document) == []


@for_each(
    ("kind", "at", "value"),
    [
        ("Perspectives", ("schema_version",), "perspectives.v2"),
        ("Perspectives", ("perspectives", 0, "track"), "orthogonal"),
        ("Perspectives", ("perspectives", 0, "prompt_contract", "max_words"), "900"),
        ("SummaryPack", ("schema_version",), "perspectives.v1"),
        ("SummaryPack", ("total_estimated_tokens",), True),
    ],
)
def test_refused(kind: str, at: tuple[Any, ...], value: Any) -> None:
    assert len(validate(kind, changed(EXAMPLES[kind], at, value))) == 1


@pytest.mark.req("X-07")
@for_each(("confidence", "valid"), [(0, True), (100, True), (0.85, True), (100.5, False), (-1, False)])
def test_confidence_runs_to_a_hundred_here(confidence: float, valid: bool) -> None:
    document = changed(PACK, ("summaries", 0, "key_claims", 0, "confidence"), confidence)
    assert (validate("SummaryPack", document) == []) is valid


# -- what a run writes --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a run that has its pack."""
    from muniment.testing.stories import QUESTION, walk_to

    directory = tmp_path_factory.mktemp("research") / "dr_1"
    with muniment.open(":memory:") as mem:
        walk_to(mem.research(QUESTION, user_id="ana", run_id="dr_1", directory=directory), "synthesis")
    paths = sorted(path for path in directory.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in paths}


@pytest.mark.req("RP-01", "RP-04")
@pytest.mark.parametrize(
    ("kind", "path"), [("Perspectives", "perspectives.json"), ("SummaryPack", "summaries/summary-pack.json")]
)
def test_what_a_run_writes_is_of_the_contract_and_comes_back(kind: str, path: str, written: dict[str, bytes]) -> None:
    document = json.loads(written[path])
    assert validate(kind, document) == []
    assert record_of(kind).from_wire(document).to_wire() == document


@pytest.mark.req("RP-03")
def test_a_line_for_each_source_named_by_the_hash_of_its_address(written: dict[str, bytes]) -> None:
    lines = [json.loads(line) for line in written["citations/citations.jsonl"].splitlines()]
    assert [line["cid"] for line in lines] == sorted({cid_of(normalize_url(line["url_original"])) for line in lines})
    assert all(line["found_by"] == ["p1", "p2", "p3"] and line["snippet"] for line in lines)


@pytest.mark.req("RP-04", "RP-05")
def test_the_pack_keeps_to_the_limits_that_it_repeats(written: dict[str, bytes]) -> None:
    pack, manifest = json.loads(written["summaries/summary-pack.json"]), json.loads(written["manifest.json"])
    assert pack["limits"] == manifest["limits"]
    sizes = [len(written[entry["summary_md"]]) for entry in pack["summaries"]]
    assert max(sizes) <= pack["limits"]["max_summary_kb"] * 1024
    assert sum(sizes) <= pack["limits"]["max_total_summary_kb"] * 1024
    cited = {line["cid"]: line["status"] for line in map(json.loads, written["citations/citations.jsonl"].splitlines())}
    for entry in pack["summaries"]:
        assert len(entry["key_claims"]) <= pack["limits"]["max_key_claims"]
        assert entry["source_artifact"] in written
        for claim in entry["key_claims"]:
            assert claim["claim"].encode() in written[entry["summary_md"]]
            assert claim["claim"].encode() in written[entry["source_artifact"]]
            assert 0 <= claim["confidence"] <= 100
            assert claim["citation_cids"]
            assert all(cited[cid] in ("valid", "paywalled") for cid in claim["citation_cids"])


@pytest.mark.req("RP-07")
def test_the_history_says_what_each_move_was_based_on(written: dict[str, bytes]) -> None:
    manifest = json.loads(written["manifest.json"])
    assert [move["stage"] for move in manifest["history"]] == ["init", "wave1", "citations", "synthesis"]
    held = {path: hashlib.sha256(data).hexdigest() for path, data in written.items()}
    assert manifest["history"][-1]["inputs"].items() <= held.items()
    assert {each["path"]: each["digest"] for each in manifest["artifacts"]}.items() <= held.items()
    gates = json.loads(written["gates.json"])
    assert [gate["gate"] for gate in gates["gates"]] == ["A", "B", "C", "D", "E"]
    assert gates["revision"] == manifest["revision"] == len(written["audit.jsonl"].splitlines())
