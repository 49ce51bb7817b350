"""Sources of a run (RP-03): one line each, status by evidence alone, snippets verbatim, read back strictly."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.policy import ResearchPolicy
from muniment.errors import InvalidRecord, TooLarge
from muniment.research._markdown import Reading, read_markdown
from muniment.research.records import CITABLE, Citation, CitationStatus, SourceCheck
from muniment.research.sources import (
    NamedSource,
    StoredSource,
    citations_text,
    gather_sources,
    identify,
    read_citations,
    settle,
)
from muniment.research.urls import cid_of
from products import for_each

POLICY = ResearchPolicy()
NOW = "2026-11-15T12:00:00Z"
LATER = "2026-11-15T13:00:00Z"
URL = "https://example.org/a"


def output(*urls: str | tuple[str, str | None]) -> Reading:
    pairs = [(url, None) if isinstance(url, str) else url for url in urls]
    return cast(
        "Reading", SimpleNamespace(urls=[SimpleNamespace(url=url, title=title, start=0) for url, title in pairs])
    )


def look(text: str = "It rained.", **facts: Any) -> StoredSource:
    return StoredSource(**{"text": text, "corpus_id": "study", "chunk_ids": ("c1", "c2"), "added_at": NOW, **facts})


def check(status: CitationStatus, reason: str = "HTTP status 403", **facts: Any) -> SourceCheck:
    return SourceCheck(cid=cid_of(URL), url=URL, status=status, reason=reason, checked_at=LATER, **facts)


def settle_one(
    look: StoredSource | None = None, check: SourceCheck | None = None, policy: ResearchPolicy = POLICY
) -> Citation:
    cid = cid_of(URL)
    found = gather_sources([("p1", output(URL))])
    (citation,) = settle(found, {cid: look} if look else {}, {cid: check} if check else {}, policy)
    return citation


# -- gathering --------------------------------------------------------------------------------------------


@pytest.mark.req("RP-03")
def test_spellings_of_one_address_are_one_source_with_all_who_found_it() -> None:
    found = gather_sources(
        [
            ("p2", output("HTTPS://Example.org/a/?utm_source=x", "https://example.org/b")),
            ("p1", output(("https://example.org/a#top", "A  title\nof it"), "https://example.org/a")),
            ("p2", output("https://example.org/a")),
        ]
    )
    assert [(one.url, one.found_by) for one in found] == [(URL, ("p2", "p1")), ("https://example.org/b", ("p2",))]
    assert found[0].url_original == "HTTPS://Example.org/a/?utm_source=x"
    assert found[0].title == "A title of it"
    assert found[0].cid == cid_of(URL)


@pytest.mark.req("RP-03")
def test_what_is_no_address_is_an_invalid_source_that_says_why() -> None:
    found = gather_sources([("p1", output("https://e..org", "https://u:hunter2@e..org", "ftp://e.org/x"))])
    citations = settle(found, {}, {}, POLICY)
    assert {citation.status for citation in citations} == {"invalid"}
    assert sorted(citation.url for citation in citations) == ["ftp://e.org/x", "https://e..org"]
    assert all(citation.notes and citation.cid == cid_of(citation.url) for citation in citations)
    assert read_citations(citations_text(citations)) == citations


def test_passwords_are_in_no_line() -> None:
    found = gather_sources([("p1", output("https://u:hunter2@e.org/a", "ftp://u:hunter2@e.org"))])
    assert "hunter2" not in citations_text(settle(found, {}, {}, POLICY))


def test_an_endless_address_is_kept_in_part() -> None:
    (one,) = gather_sources([("p1", output("https://e.org/" + "a" * 100_000))])
    assert len(one.url) == len(one.url_original) == 8_192
    assert identify("https://e.org/" + "a" * 100_000).cid == one.cid == cid_of(one.url)


def test_a_real_output_is_gathered() -> None:
    reading = read_markdown(
        "## Findings\n\nRain fell in March [1]. See [the report](https://example.org/report/).\n\n"
        "## Sources\n\n1. [Weather](https://weather.example.org/march?utm_source=mail)\n"
    )
    assert {one.url for one in gather_sources([("p1", reading)])} == {
        "https://example.org/report",
        "https://weather.example.org/march",
    }


# -- settling ---------------------------------------------------------------------------------------------


@pytest.mark.req("RP-03")
def test_an_address_nobody_looked_at_is_unchecked() -> None:
    citation = settle_one()
    assert citation.status == "unchecked"
    assert citation.status not in CITABLE
    assert "checked_at" not in citation.to_wire()
    assert "snippet" not in citation.to_wire()


@pytest.mark.req("RP-03")
def test_supplied_text_makes_a_source_valid() -> None:
    citation = settle_one(look("It rained. It snowed.", title="Weather"))
    assert (citation.status, citation.title, citation.snippet) == ("valid", "Weather", "It rained. It snowed.")
    assert (citation.corpus_id, citation.chunk_ids, citation.checked_at) == ("study", ("c1", "c2"), NOW)
    assert "notes" not in citation.to_wire()


@pytest.mark.req("RP-03")
@pytest.mark.parametrize("status", ["paywalled", "blocked", "invalid", "unchecked"])
def test_supplied_text_outweighs_a_look_and_says_so(status: CitationStatus) -> None:
    citation = settle_one(look(), check(status, http_status=403))
    assert citation.status == "valid"
    assert citation.notes is not None
    assert status in citation.notes
    assert "HTTP status 403" in citation.notes
    assert (citation.http_status, citation.checked_at) == (403, LATER)


@pytest.mark.req("RP-03")
@for_each("status", ["valid", "paywalled", "blocked", "invalid", "unchecked"])
@for_each("stored", [None, look(supplied=False)])
def test_without_supplied_text_the_look_decides(status: CitationStatus, stored: StoredSource | None) -> None:
    citation = settle_one(stored, check(status))
    assert citation.status == status
    assert citation.notes == "HTTP status 403"
    assert citation.snippet == (stored and stored.text)


def test_where_an_address_led_is_noted() -> None:
    assert settle_one(None, check("valid", "it answered", final_url="https://example.org/b")).notes == (
        "it answered; it led to https://example.org/b"
    )
    assert settle_one(None, check("valid", "it answered", final_url=URL)).notes == "it answered"


def test_too_many_sources_are_refused() -> None:
    found = gather_sources([("p1", output(*(f"https://e.org/{at}" for at in range(4))))])
    assert len(settle(found, {}, {}, POLICY.model_copy(update={"sources_max": 4}))) == 4
    with pytest.raises(TooLarge, match="4 sources"):
        settle(found, {}, {}, POLICY.model_copy(update={"sources_max": 3}))


# -- snippets ---------------------------------------------------------------------------------------------


@for_each(
    ("text", "chars_max", "snippet"),
    [
        ("One two. Three four. Five.", 100, "One two. Three four. Five."),
        ("One two. Three four. Five.", 22, "One two. Three four."),
        ("One two. Three four. Five.", 20, "One two. Three four."),
        ("One two. Three four. Five.", 19, "One two."),
        ("One two. Three four. Five.", 7, "One"),
        ("One two. Three four. Five.", 6, "One"),
        ("  \nOne two.\nThree four five", 12, "One two."),
        ("下雨了。天晴了。又下雨了。", 9, "下雨了。天晴了。"),
        ("下雨了。天晴了。", 2, "下雨"),
        ("Mr. Smith came late. He left.", 21, "Mr. Smith came late."),
        ("It is 3.14159 or so. Yes.", 6, "It is"),
        ("abcdefgh", 3, "abc"),
    ],
)
def test_a_snippet_is_the_beginning_by_whole_sentences(text: str, chars_max: int, snippet: str) -> None:
    assert settle_one(look(text), policy=POLICY.model_copy(update={"snippet_chars_max": chars_max})).snippet == snippet


@given(st.text("ab. \n。", max_size=60).filter(str.strip), st.integers(1, 40))
def test_a_snippet_is_verbatim_and_bounded(text: str, chars_max: int) -> None:
    snippet = settle_one(look(text), policy=POLICY.model_copy(update={"snippet_chars_max": chars_max})).snippet
    assert snippet
    assert len(snippet) <= chars_max
    assert text.strip().startswith(snippet)


# -- citations.jsonl --------------------------------------------------------------------------------------


def three() -> list[Citation]:
    found = gather_sources(
        [("p1", output("https://e.org/\u2028x", "https://e.org/ü", ("https://e.org/3", "T\u2028t")))]
    )
    return settle(found, {found[0].cid: look("a\u2028b\u0085c")}, {}, POLICY)


@pytest.mark.req("RP-03")
def test_lines_are_written_by_cid_and_read_back() -> None:
    citations = three()
    text = citations_text(reversed(citations))
    assert text == citations_text(citations)
    assert [citation.cid for citation in citations] == sorted(citation.cid for citation in citations)
    assert text.count("\n") == 3
    assert read_citations(text) == citations
    assert citations_text(read_citations(text)) == text
    assert citations_text([]) == ""
    assert read_citations("") == []


@for_each(
    ("spoil", "line", "path"),
    [
        (lambda lines: [lines[0], "{", lines[2], ""], 2, "$"),
        (lambda lines: [lines[0], "[]", lines[2], ""], 2, "$"),
        (lambda lines: [lines[0], "", lines[1], ""], 2, "$"),
        (lambda lines: [lines[0], lines[1], lines[2]], 3, "$"),
        (lambda lines: [lines[1], lines[0], lines[2], ""], 2, "$.cid"),
        (lambda lines: [lines[0], lines[1], lines[1], ""], 3, "$.cid"),
        (lambda lines: [lines[0], lines[1].replace('"status":"', '"status":"x'), lines[2], ""], 2, "$.status"),
        (lambda lines: [lines[0], lines[1], lines[2].replace("https:", "http:"), ""], 3, "$.cid"),
        (lambda lines: [lines[0], lines[1].replace('{"', '{ "', 1), lines[2], ""], 2, "$"),
        (lambda lines: [lines[0], lines[1], lines[2].replace('"status":', '"more":1,"status":'), ""], 3, "$.more"),
        (
            lambda lines: [lines[0], lines[1].replace('"status":', '"status":"valid","status":'), lines[2], ""],
            2,
            "$.status",
        ),
    ],
)
def test_a_bad_line_is_named(spoil: Any, line: int, path: str) -> None:
    text = "\n".join(spoil(citations_text(three()).split("\n")))
    with pytest.raises(InvalidRecord, match=rf"line {line}:") as caught:
        read_citations(text)
    assert caught.value.issues[0].path == path


def test_found_is_a_record_of_plain_values() -> None:
    assert gather_sources([("p1", output("nonsense"))]) == [
        NamedSource(
            cid_of("nonsense"),
            "nonsense",
            "nonsense",
            None,
            ("p1",),
            "only what begins with http:// or https:// is the address of a source",
        )
    ]
