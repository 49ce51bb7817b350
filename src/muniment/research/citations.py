"""The sources of a run (RP-03): gathered from its outputs, settled by what is known of them, written one line each.

An output's word proves nothing about its sources. One is valid because somebody supplied its text, or because its
address was looked at and answered; what cannot be an address at all is a source too, and an invalid one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.canonical import canonical_text, parse_json
from muniment.core.policy import ResearchPolicy
from muniment.core.text.sentences import sentence_spans
from muniment.errors import InvalidInput, InvalidRecord, Issue, TooLarge
from muniment.research.run_records import Citation, CitationStatus, SourceCheck
from muniment.research.urls import URL_CHARS_MAX, cid_of, normalize_url, without_credentials

if TYPE_CHECKING:
    from muniment.research.reading.outputs import Reading

__all__ = ["Look", "NamedSource", "Source", "citations_text", "gather_sources", "identify", "read_citations", "settle"]

_TITLE_CHARS_MAX = 300


class Source(NamedTuple):
    """What an address, as it is written somewhere, is the address of."""

    cid: str
    url: str
    """Normalised; where that cannot be done, as written. What the cid is the hash of."""
    problem: str | None
    """Why it is no web address."""


class NamedSource(NamedTuple):
    """A source of the run, as its outputs name it."""

    cid: str
    url: str
    url_original: str
    title: str | None
    found_by: tuple[str, ...]
    problem: str | None


class Look(NamedTuple):
    """The text that is stored of a source."""

    text: str
    corpus_id: str
    chunk_ids: tuple[str, ...]
    added_at: str
    title: str | None = None
    supplied: bool = True
    """Handed in by somebody; else it came from looking at the address."""


# -- gathering ----------------------------------------------------------------------------------------


def identify(url: str) -> Source:
    """The source of an address. One that is no web address has an id too, of its own text without any password."""
    try:
        normal = normalize_url(url)
    except InvalidInput as refused:
        written = _kept(url)
        return Source(cid_of(written), written, refused.message)
    return Source(cid_of(normal), normal, None)


def _kept(url: str) -> str:
    return without_credentials(url.strip())[:URL_CHARS_MAX]


def gather_sources(readings: Iterable[tuple[str, Reading]]) -> list[NamedSource]:
    """The sources that outputs name, each once, in order of first sight. `readings`: perspective id and output."""
    found: dict[str, NamedSource] = {}
    for perspective_id, reading in readings:
        for written in reading.urls:
            cid, url, problem = identify(written.url)
            title = _tidy(written.title)
            known = found.get(cid) or NamedSource(cid, url, _kept(written.url), title, (), problem)
            by = known.found_by if perspective_id in known.found_by else (*known.found_by, perspective_id)
            found[cid] = known._replace(found_by=by, title=known.title or title)
    return list(found.values())


def _tidy(title: str | None) -> str | None:
    return " ".join((title or "").split())[:_TITLE_CHARS_MAX].rstrip() or None


# -- settling -----------------------------------------------------------------------------------------


def settle(
    found: Sequence[NamedSource], looks: Mapping[str, Look], checks: Mapping[str, SourceCheck], policy: ResearchPolicy
) -> list[Citation]:
    """What stands in citations.jsonl, by cid. `checks` holds the newest look at each address that was looked at."""
    if len(found) > policy.sources_max:
        raise TooLarge(
            f"the run names {len(found)} sources; {policy.sources_max} is the limit",
            hint="raise research.sources_max in the policy, or ask for fewer sources in the contracts",
        )
    made = (_citation(source, looks.get(source.cid), checks.get(source.cid), policy) for source in found)
    return sorted(made, key=lambda citation: citation.cid)


def _citation(found: NamedSource, look: Look | None, check: SourceCheck | None, policy: ResearchPolicy) -> Citation:
    status, notes = _standing(found, look, check)
    fields: dict[str, Any] = {
        "schema_version": "citation.v1",
        "cid": found.cid,
        "url": found.url,
        "url_original": found.url_original,
        "status": status,
        "title": (look and _tidy(look.title)) or found.title,
        "found_by": found.found_by,
        "snippet": look and _beginning(look.text, policy.snippet_chars_max),
        "corpus_id": look and look.corpus_id,
        "chunk_ids": look.chunk_ids if look else (),
        "checked_at": check.checked_at if check else look.added_at if look and look.supplied else None,
        "http_status": check and check.http_status,
        "notes": notes,
    }
    return Citation(**{name: value for name, value in fields.items() if value is not None})


def _standing(found: NamedSource, look: Look | None, check: SourceCheck | None) -> tuple[CitationStatus, str | None]:
    """The status, and what should be known about it."""
    if found.problem is not None:
        return "invalid", found.problem
    if look is not None and look.supplied:
        if check is None or check.status == "valid":
            return "valid", None
        return "valid", f"its text was supplied; a look at the address found it {check.status}: {check.reason}"
    if check is None:
        return "unchecked", "nobody looked at it"
    moved = check.final_url and check.final_url != found.url
    return check.status, f"{check.reason}; it led to {check.final_url}" if moved else check.reason


def _beginning(text: str, chars_max: int) -> str:
    """Verbatim: as many whole sentences as fit, else as many words, else characters."""
    text = text.strip()
    if len(text) <= chars_max:
        return text
    head = text[: chars_max + 1]
    *whole, _ = sentence_spans(f"{head}x")  # what the cut runs through is not whole
    ends = [end for _, end in whole if end <= chars_max]
    if ends:
        return head[: ends[-1]]
    words = head.rpartition(" ")[0].rstrip()
    return words or head[:chars_max]


# -- citations.jsonl ----------------------------------------------------------------------------------


def citations_text(citations: Iterable[Citation]) -> str:
    """Canonical JSON, one line for each, by cid."""
    ordered = sorted(citations, key=lambda citation: citation.cid)
    return "".join(f"{canonical_text(citation.to_wire())}\n" for citation in ordered)


def read_citations(text: str) -> list[Citation]:
    """Read back what `citations_text` writes, and nothing else: `InvalidRecord` names the first line that is not so."""
    lines = text.split("\n")
    citations = [_read_line(number, line) for number, line in enumerate(lines[:-1], start=1)]
    if lines[-1]:
        raise _bad_line(len(lines), [Issue("$", "the file is cut off within this line", "truncated")])
    for number, (before, after) in enumerate(pairwise(citations), start=2):
        if before.cid >= after.cid:
            problem = "stands twice" if before.cid == after.cid else "is not in the order of the ids"
            raise _bad_line(number, [Issue("$.cid", f"the source {problem}", "order")])
    return citations


def _read_line(number: int, line: str) -> Citation:
    try:
        citation = Citation.from_wire(parse_json(line))
    except InvalidRecord as error:
        raise _bad_line(number, error.issues) from None
    except InvalidInput as error:
        raise _bad_line(number, [Issue(error.path or "$", error.message, error.code)]) from None
    if citation.cid != cid_of(citation.url):
        raise _bad_line(number, [Issue("$.cid", "it is not the hash of the address", "cid")])
    if canonical_text(citation.to_wire()) != line:
        raise _bad_line(number, [Issue("$", "it is not written as canonical JSON", "canonical")])
    return citation


def _bad_line(number: int, issues: Sequence[Issue]) -> InvalidRecord:
    return InvalidRecord(
        f"citations.jsonl, line {number}: {issues[0].message}", issues, hint="write the file anew from the store"
    )
