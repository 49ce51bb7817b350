"""Laundered citations: a mark beside a sentence proves nothing, in an output as in a draft (RP-03, RP-08)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from research_desk import begin, opener

from muniment.handles.study import Study
from muniment.research.urls import cid_of, normalize_url
from muniment.testing.stories import PAGES, QUESTION, TOOL_USE

TRUE = [
    ("The field study followed 550 homes in Norway for three winters.", 1),
    ("A heat pump costs 11,500 euros to install, a gas boiler 4,200 euros.", 2),
    ("Replacing every gas boiler would raise the winter peak of the grid by 9 gigawatts.", 3),
]
LAUNDERED = {
    "another claim": ("Gas boilers in Portugal were taxed at 14 percent under the law of 2011.", 1),
    "another number": ("The field study followed 650 homes in Norway for three winters.", 1),
    "another unit": ("Replacing every gas boiler would raise the winter peak of the grid by 9 megawatts.", 3),
    "negated": ("The field study did not follow 550 homes in Norway for three winters.", 1),
    "turned round": (
        "Running costs of a heat pump are 38 percent higher than those of a gas boiler in a well insulated house.",
        2,
    ),
    "another place": ("The field study followed 550 homes in Sweden for three winters.", 1),
    "another source": ("A heat pump costs 11,500 euros to install, a gas boiler 4,200 euros.", 3),
    "blocked": ("The blocked report counted 77 villages along the river in 2019.", 4),
    "unchecked": ("The unchecked report counted 78 villages along the river in 2019.", 5),
    "invalid": ("The dead report counted 79 villages along the river in 2019.", 6),
}  # fmt: skip
URLS = [
    *(page["url"] for page in PAGES),
    "https://blocked.example/report",
    "https://unchecked.example/report",
    "https://dead.example/report",
]
POLICY = {"research": {"validated_share_min": 0.4, "invalid_share_max": 0.3, "perspectives_min": 1}}
LIMITS = {"max_wave1_agents": 1, "max_wave2_agents": 0}


def cid(number: int) -> str:
    return cid_of(normalize_url(URLS[number - 1]))


class Checker:
    def check_many(self, urls: list[str]) -> list[Any]:
        said = {"https://blocked.example/report": ("blocked", 403), "https://dead.example/report": ("invalid", 404)}
        nothing = {"final_url": None, "text": None, "title": None, "media_type": "text/plain"}
        return [SimpleNamespace(status=said[url][0], http_status=said[url][1], reason="so", **nothing) for url in urls]


def output(sentences: list[tuple[str, int]], order: list[int], more: str = "") -> str:
    """Numbers are given by the list of sources, which may stand in any order."""
    number = {source: at for at, source in enumerate(order, 1)}
    lines = [f"- {sentence} [{number[source]}]" for sentence, source in sentences]
    listed = [f"[{number[source]}] {URLS[source - 1]}" for source in order]
    return "\n".join(["## Findings", "", *lines, more, "", "## Sources", "", *listed, "", "## Gaps", "", "None", ""])


def walked(study: Study, text: str) -> Study:
    study.route()
    assert study.ingest("p1", text, tool_use=TOOL_USE).accepted
    study.pivot()
    study.supply(PAGES)
    study.look(Checker(), [URLS[3], URLS[5]])
    study.citations()
    study.pack()
    assert study.manifest().stage == "synthesis", study.gates()
    return study


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Any]:
    with opener("memory", tmp_path) as store:
        yield lambda name="dr_1": begin(
            store(name, POLICY), tmp_path / name, run_id=name, question=QUESTION, limits=LIMITS
        )


@pytest.fixture
def study(opened: Any) -> Study:
    return walked(opened(), output([*TRUE, *LAUNDERED.values()], [1, 2, 3, 4, 5, 6]))


@pytest.mark.req("RP-08")
def test_none_of_them_is_packed_and_each_is_flagged(study: Study) -> None:
    packed = [claim for entry in study.synthesis_input().pack.summaries for claim in entry.key_claims]
    assert {(claim.claim, *claim.citation_cids) for claim in packed} == {(said, cid(at)) for said, at in TRUE}
    claims = {(claim.claim, claim.cited): claim for claim in study.claims()}
    for name, (sentence, source) in LAUNDERED.items():
        found = claims[sentence, (cid(source),)]
        assert found.support in ("not_supported", "refuted"), name
        assert found.citation_cids == (), name
        assert found.confidence < 50, name
    text = study.synthesis_input().text
    for sentence, source in LAUNDERED.values():
        assert sentence not in text or ((sentence, 2) in TRUE and source == 3)


@pytest.mark.req("RP-03")
def test_only_what_was_looked_at_may_be_cited(study: Study) -> None:
    status = {citation.cid: citation.status for citation in study.sources()}
    assert [status[cid(at)] for at in range(1, 7)] == ["valid", "valid", "valid", "blocked", "unchecked", "invalid"]


@pytest.mark.req("RP-08")
@pytest.mark.parametrize("seed", range(4))
def test_a_citation_is_never_given_by_its_place(opened: Any, seed: int) -> None:
    """Whatever the order of the list and of the sentences, each claim keeps its own source."""
    chance = random.Random(seed)
    order = chance.sample(range(1, 7), 6)
    sentences = chance.sample([*TRUE, *LAUNDERED.values()], len(TRUE) + len(LAUNDERED))
    made = walked(opened(), output(sentences, order))
    packed = [claim for entry in made.synthesis_input().pack.summaries for claim in entry.key_claims]
    assert {(claim.claim, *claim.citation_cids) for claim in packed} == {(said, cid(at)) for said, at in TRUE}


@pytest.mark.req("RP-08")
def test_a_mark_that_closes_a_paragraph_is_a_sentences_own_only_if_it_bears_it(opened: Any) -> None:
    false, true = LAUNDERED["another number"][0], TRUE[0][0]
    last = "At minus 10 degrees the heat pumps delivered a coefficient of performance of 2.4."
    made = walked(opened(), output([], [1, 2, 3, 4, 5, 6], f"{false} {true} {last} [1]"))
    claims = {claim.claim: claim for claim in made.claims()}
    assert (claims[true].support, claims[true].citation_cids) == ("supported", (cid(1),))
    assert (claims[last].support, claims[last].citation_cids) == ("supported", (cid(1),))
    assert claims[false].citation_cids == ()
    assert claims[false].support != "supported"
    assert false not in made.synthesis_input().text


@pytest.mark.req("RP-08")
def test_a_placeholder_is_in_no_pack(opened: Any) -> None:
    holders = [
        "TODO: add the key finding of this perspective here.",
        "Key claim 1 goes here once it is known.",
        "[Insert finding about heat pumps here].",
        "Lorem ipsum dolor sit amet, consectetur adipiscing elit.",
        "TBD.",
    ]
    made = walked(opened(), output([*TRUE, *((each, 1) for each in holders)], [1, 2, 3, 4, 5, 6]))
    packed = [claim.claim for entry in made.synthesis_input().pack.summaries for claim in entry.key_claims]
    assert sorted(packed) == sorted(sentence for sentence, _ in TRUE)


@pytest.mark.soak
@pytest.mark.req("RP-08")
@pytest.mark.parametrize("name", LAUNDERED)
def test_in_a_draft_it_is_found_too(study: Study, name: str) -> None:
    sentence, source = LAUNDERED[name]
    good = "\n\n".join(f"{said} [{cid(at)}]" for said, at in TRUE)
    for mark in (cid(source), cid(source)[:12], f"source]({URLS[source - 1]}"):
        draft = f"# Report\n\n{good}\n\n{sentence} [{mark}{')' if '(' in mark else ']'}\n"
        before = study.manifest().revision
        check = _check(study, draft)
        assert not check.passed, (name, mark)
        problems = {finding.problem for finding in check.findings if finding.span is not None}
        wanted = {"blocked": "invalid_citation", "unchecked": "invalid_citation", "invalid": "invalid_citation"}
        assert wanted.get(name, "unsupported_citation") in problems, (name, mark, check.findings)
        assert study.manifest().revision == before + 1
    assert study.manifest().stage == "synthesis"


@pytest.mark.req("RP-08")
def test_in_a_draft_what_is_unknown_or_uncited_is_found(study: Study) -> None:
    number = TRUE[0][0]
    cases = {
        f"{number} [cid_{'0' * 64}]": "unknown_citation",
        f"{number} [https://elsewhere.example/page]": "unknown_citation",
        f"{number} [9]": "unknown_citation",
        f"{number}": "uncited_figure",
    }
    for draft, problem in cases.items():
        assert problem in {finding.problem for finding in _check(study, f"# Report\n\n{draft}\n").findings}, draft
    study.resume()
    assert study.manifest().reviews == len(cases)


@pytest.mark.req("RP-08")
def test_in_a_draft_a_mark_at_the_end_bears_the_last_sentence_alone(study: Study) -> None:
    true, false = TRUE[0][0], LAUNDERED["another number"][0]
    assert not _check(study, f"# Report\n\n{false} {true} [{cid(1)}]\n").passed
    assert _check(study, f"# Report\n\n{true} [{cid(1)}]\n").passed


def _check(study: Study, draft: str) -> Any:
    return study.check(draft, sections=[])
