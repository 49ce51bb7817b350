"""Bytes at the boundary, through the library: what fits goes in whole, one byte less and it stays out (RP-05)."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from muniment.contracts.research import SummaryPack
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.core.policy import Policy
from muniment.errors import InvalidInput
from muniment.handles.derived import new_context
from muniment.handles.memory import Memory
from muniment.handles.study import Study
from muniment.research.plan import deal_tracks
from muniment.store.engines.opening import open_engine
from muniment.testing.stories import TOOL_USE

POLICY = Policy.from_wire({"research": {"near_duplicate": 1.0, "claim_chars_max": 2000}})
CLAIMS = [
    "The field study 😀 followed 550 homes in Norway for three winters.",
    "北京市在2023年新增了1200公里的地铁线路。",
    "The café in Zürich sold 4,300 crêpes 🥞🥞 during the summer of 2021.",
    "上海港的集装箱吞吐量在2022年达到4730万标准箱。",
]
numbers = itertools.count(1)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bytes")


def memory() -> Memory:
    context = new_context(engine=open_engine(":memory:"), policy=POLICY, clock=TickingClock(), ids=CountingIds("b"))
    return Memory(context)


def perspectives(count: int) -> list[dict[str, Any]]:
    contract = {
        "max_words": 5000, "max_sources": 50, "tool_budget": {"search_calls": 9, "fetch_calls": 9},
        "must_include_sections": ["Findings", "Sources", "Gaps"],
    }  # fmt: skip
    return [
        {
            "id": f"p{at}", "title": f"视角 {at} 🎯", "track": track, "agent_type": "ClaudeResearcher",
            "prompt_contract": contract,
        }
        for at, track in enumerate(deal_tracks(count, POLICY.research.tracks), 1)
    ]  # fmt: skip


def packed(place: Path, claims: list[list[str]], limits: dict[str, Any]) -> Study:
    """A run with a perspective for each list of claims, each sentence borne by a page of its own perspective."""
    study = memory().research(
        "What is known?",
        user_id="ana",
        run_id="dr_1",
        limits={"max_wave1_agents": 12, "max_key_claims": 50} | limits,
        directory=place / str(next(numbers)),
    )
    study.route(perspectives(len(claims)))
    for at, said in enumerate(claims, 1):
        lines = "\n".join(f"- {claim} [1]" for claim in said)
        text = f"## Findings\n\n{lines}\n\n## Sources\n\n[1] https://s{at}.example/page\n\n## Gaps\n\nNone\n"
        page = {"url": f"https://s{at}.example/page", "text": "\n\n".join(said)}
        assert study.ingest(f"p{at}", text, tool_use=TOOL_USE, sources=[page]).accepted
    study.pivot()
    study.citations()
    study.pack()
    return study


def sizes(study: Study) -> list[int]:
    return [path.stat().st_size for path in sorted(study.directory.glob("summaries/*.md"))]


def test_one_summary_is_full_to_the_byte(place: Path) -> None:
    """With emoji and Chinese: at the size of the whole it is whole, and one byte less leaves a whole claim out."""
    whole = packed(place, [CLAIMS], {})
    (size,) = sizes(whole)
    assert all(claim in whole.synthesis_input().text for claim in CLAIMS)
    same = packed(place, [CLAIMS], {"max_summary_kb": size / 1024})
    assert sizes(same) == [size]
    assert same.gates().gates[3].status == "pass"
    less = packed(place, [CLAIMS], {"max_summary_kb": (size - 1) / 1024})
    text = less.synthesis_input().text
    assert sizes(less)[0] < size
    assert sum(claim in text for claim in CLAIMS) == len(CLAIMS) - 1
    assert "\ufffd" not in text


@pytest.mark.soak
@pytest.mark.req("RP-05")
@pytest.mark.parametrize("filler", ["a", "汉", "😀"])
def test_a_kilobyte_is_1024_bytes_of_utf8(place: Path, filler: str) -> None:
    """A claim made as long as it takes to fill one kilobyte exactly; with one more byte it has no room."""

    def claims(letters: int, more: str = "") -> list[str]:
        return [*CLAIMS, f"The word {filler * letters}{'b' * (len(more))} was found in 37 letters of the archive."]

    (size,) = sizes(packed(place, [claims(1)], {}))
    letters, odd = divmod(1024 - size, len(filler.encode()))
    exact = claims(1 + letters, "b" * odd)
    full = packed(place, [exact], {"max_summary_kb": 1})
    assert sizes(full) == [1024]
    assert all(claim in full.synthesis_input().text for claim in exact)
    over = claims(1 + letters, "b" * (odd + 1))
    short = packed(place, [over], {"max_summary_kb": 1})
    assert sizes(short)[0] < 1024
    left_out = [claim for claim in over if claim not in short.synthesis_input().text]
    assert len(left_out) == 1
    assert short.gates().gates[3].status == "pass"


@pytest.mark.soak
@pytest.mark.req("RP-05")
def test_twelve_perspectives_share_a_total_to_the_byte(place: Path) -> None:
    claims = [
        [f"Town {at * 7 + each} counted {at * 100 + each} heat pumps 🏠 in 2023." for each in range(at % 4 + 1)]
        for at in range(1, 13)
    ]
    whole = packed(place, claims, {})
    total = sum(sizes(whole))
    assert sum(sizes(packed(place, claims, {"max_total_summary_kb": total / 1024}))) == total
    less = packed(place, claims, {"max_total_summary_kb": (total - 1) / 1024})
    assert sum(sizes(less)) < total
    pack = less.synthesis_input().pack
    assert len(pack.summaries) == 12
    assert pack.limits == json.loads((less.directory / "manifest.json").read_bytes())["limits"]


@pytest.mark.req("RP-05")
@pytest.mark.parametrize(
    "limits", [{"max_summary_kb": 0.001}, {"max_total_summary_kb": 0.02}, {"max_summary_kb": 1e-9}]
)
def test_limits_that_no_title_fits_are_named_and_the_run_stays(place: Path, limits: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="title alone takes") as refused:
        packed(place, [CLAIMS, CLAIMS[:1]], limits)
    assert refused.value.details["perspective_id"] in ("p1", "p2")
    directory = max(place.iterdir(), key=lambda path: int(path.name))
    manifest = json.loads((directory / "manifest.json").read_bytes())
    assert manifest["stage"] == "citations"
    assert not list(directory.glob("**/.pending")) + list(directory.glob("summaries/*"))


@pytest.mark.req("RP-05")
def test_gate_d_measures_the_bytes_on_disk(place: Path) -> None:
    study = packed(place, [CLAIMS], {"max_summary_kb": 1})
    gate = study.gates().gates[3]
    assert gate.status == "pass"
    path = study.directory / "summaries/p1.summary.md"
    path.write_bytes(path.read_bytes() + "😀".encode() * 200)
    gate = study.gates().gates[3]
    assert gate.status == "fail"
    assert str(path.stat().st_size) in " ".join(gate.reasons)
    path.unlink()
    assert study.gates().gates[3].status == "fail"
    study.resume()
    assert study.gates().gates[3].status == "pass"


letters = st.sampled_from(["a", "é", "汉", "😀", "한"])


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[list[str]], dict[str, float]]:
    claims = [
        [
            f"Town {at}{each} has {draw(letters) * draw(st.integers(1, 30))} and counted {at * 37 + each} pumps."
            for each in range(draw(st.integers(1, 4)))
        ]
        for at in range(1, draw(st.integers(2, 4)))
    ]
    one, total = draw(st.integers(60, 700)), draw(st.integers(120, 1500))
    return claims, {"max_summary_kb": one / 1024, "max_total_summary_kb": total / 1024}


@pytest.mark.soak
@pytest.mark.req("RP-04", "RP-05")
@settings(deadline=None, max_examples=8, suppress_health_check=list(HealthCheck))
@given(run=runs())
def test_whatever_the_limits_no_byte_is_over_and_no_sentence_cut(
    place: Path, run: tuple[list[list[str]], dict[str, float]]
) -> None:
    claims, limits = run
    study = packed(place, claims, limits)
    found = sizes(study)
    assert max(found) <= limits["max_summary_kb"] * 1024
    assert sum(found) <= limits["max_total_summary_kb"] * 1024
    pack = SummaryPack.from_wire(json.loads((study.directory / "summaries/summary-pack.json").read_bytes()))
    assert (study.manifest().stage == "synthesis") == any(entry.key_claims for entry in pack.summaries)
    for said, entry in zip(claims, pack.summaries, strict=True):
        text = (study.directory / entry.summary_md).read_bytes().decode()
        lines = [line[2:].rpartition(" [")[0] for line in text.splitlines() if line.startswith("- ")]
        assert set(lines) <= set(said)
        assert {claim.claim for claim in entry.key_claims} <= set(lines)
