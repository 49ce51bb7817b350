"""`research source … check`: the second half of a research run, from its sources to the checked report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from muniment.errors import InvalidInput
from muniment.surfaces.cli.calling import Call, Command, wire
from muniment.surfaces.cli.parameters import Word
from muniment.surfaces.cli.reading import text_given
from muniment.surfaces.cli.research_lines import answered, command, gate_lines, next_lines, summary_lines
from muniment.surfaces.cli.terminal import coloured, counted, one_line, style

if TYPE_CHECKING:
    from muniment.contracts.research import SummaryPack
    from muniment.handles.study import Study
    from muniment.research.records import CheckedClaim, Citation, DraftCheck, GateResult, SourceCheck

__all__ = ["check", "citations", "claims", "pack", "page_named", "source", "synthesis"]

_SUPPORT = {"supported": "green", "unchecked": "yellow", "refuted": "red", "not_supported": "red", "uncited": "yellow"}


# -- pages and snippets from files --------------------------------------------------------------------


def page_named(given: str) -> dict[str, Any]:
    """`URL=FILE`: an address may hold an equals sign, so the last one counts."""
    url, _, file = given.rpartition("=")
    if not url or not file:
        raise InvalidInput(
            f"{given!r:.120} is not an address and a file", path="$.source", hint="write --source https://…=page.html"
        )
    return _page_from(url, file, None)


def _page_from(url: str, file: str, title: str | None) -> dict[str, Any]:
    """A page as a file of text, Markdown or HTML; which of them, its suffix says."""
    from muniment.core.policy import CorpusPolicy
    from muniment.memory._chunking import media_type_of
    from muniment.memory.corpus import read_text_file

    text = read_text_file(Path(file), CorpusPolicy().document_bytes_max, "corpus.document_bytes_max")
    return _source(url, text, title, media_type=media_type_of(file))


def _source(url: str, text: str, title: str | None, **more: str) -> dict[str, Any]:
    return {"url": url, "text": text, **({} if title is None else {"title": title}), **more}


def _pages_in(name: str) -> list[dict[str, Any]]:
    """A file of JSON, one source a line: url and text, or as `SuppliedSource` has it."""
    from muniment.surfaces.cli.documents import read_documents

    found: list[dict[str, Any]] = []
    for document in read_documents(name):
        where = f"{name}:{document.line}"
        if document.error is not None:
            document.error.message = f"{where}: {document.error.message}"
            raise document.error
        if not isinstance(document.data, dict):
            raise InvalidInput(f"{where} is not a source", hint='write {"url": "https://…", "text": "…"}')
        found.append(document.data)
    if not found:
        raise InvalidInput(f"there is no source in {name}", path="$.lines", hint="one JSON object a line: url and text")
    return found


# -- sources ------------------------------------------------------------------------------------------


class _Supplied(NamedTuple):
    given: list[dict[str, Any]]
    cids: list[str]


def _supply(
    study: Study,
    url: Annotated[str | None, Word(metavar="[URL]")] = None,
    file: Annotated[str | None, Word(metavar="FILE")] = None,
    *,
    snippet: Annotated[str | None, Word("A passage instead of a page; `-` is standard input.", metavar="TEXT")] = None,
    title: Annotated[str | None, Word("Its title (default: what the page says itself).", metavar="TEXT")] = None,
    lines: Annotated[
        str | None, Word("Many at once: JSON lines with url and text; `-` is standard input.", metavar="FILE")
    ] = None,
) -> _Supplied:
    given = _given(url, file, snippet, title, lines)
    return _Supplied(given, study.supply(given))


def _given(
    url: str | None, file: str | None, snippet: str | None, title: str | None, lines: str | None
) -> list[dict[str, Any]]:
    if lines is not None and url is None and snippet is None and title is None:
        return _pages_in(lines)
    if lines is None and url is not None and snippet is not None and file is None:
        return [_source(url, text_given(snippet), title, kind="snippet")]
    if lines is None and url is not None and snippet is None and file is not None:
        return [_page_from(url, file, title)]
    raise InvalidInput(
        "a source is an address and what was read there",
        path="$.source",
        hint="URL FILE, or URL --snippet TEXT, or --lines FILE",
    )


def _show_supplied(call: Call) -> Iterator[str]:
    given, cids = call.answer
    for cid, each in zip(cids, {each["url"]: each for each in given}, strict=False):
        yield f"{cid[:12]}  {one_line(each)}"
    yield f"kept: {counted(len(cids), 'source')}"
    yield f"next: {command(call, 'citations')}"


source = Command(
    "study.supply",
    _show_supplied,
    function=_supply,
    document=lambda call: answered(call, cids=call.answer.cids),
    about="What was read at URL: the page in FILE (text, Markdown, HTML), or a snippet. Nothing is fetched. A "
    "citation is valid once its page or a snippet of it is here, and claims are checked against that text.",
)


class _Settled(NamedTuple):
    citations: list[Citation]
    looked: list[SourceCheck]


def _settle(call: Call, ask: Callable[[], list[Citation]]) -> _Settled:
    looked: list[SourceCheck] = []
    if call.typed.get("check_urls"):
        from muniment.research.url_check import UrlChecker

        looked = call.handle.look(UrlChecker(allow_private=bool(call.typed.get("allow_private"))))
    return _Settled(ask(), looked)


def _gate(call: Call, name: str) -> GateResult:
    found: GateResult = next(gate for gate in call.handle.gates().gates if gate.gate == name)
    return found


def _show_settled(call: Call) -> Iterator[str]:
    from muniment.research.records import CITABLE

    settled = call.answer.citations
    for each in settled:
        status = style(f"{each.status:<9}", fg=None if each.status in CITABLE else "yellow")
        note = f"  ({one_line(each.notes, 120)})" if each.notes and each.status != "valid" else ""
        yield f"{status} {each.cid[:12]}  {one_line(each.url)}  by {', '.join(each.found_by)}{note}"
    by_status = Counter(each.status for each in settled)
    yield ", ".join(f"{count} {status}" for status, count in sorted(by_status.items())) or "nothing is cited"
    yield from gate_lines(_gate(call, "C"))
    yield from next_lines(call)


citations = Command(
    "study.citations",
    _show_settled,
    around=_settle,
    more={
        "check_urls": Word("Look at addresses that have no stored text, over the network.", flag=True),
        "allow_private": Word("With --check-urls: also addresses of this machine and network.", flag=True),
    },
    calls=("study.gates", "study.status"),
    document=lambda call: answered(
        call,
        citations=wire(call.answer.citations),
        gate=_gate(call, "C").to_wire(),
        looked=wire(call.answer.looked),
    ),
    about="Valid, paywalled, blocked, invalid or unchecked. Nothing is fetched unless you ask for it. It may be "
    "repeated, as sources come in.",
)


# -- the pack -----------------------------------------------------------------------------------------


def _flagged(call: Call) -> Counter[str]:
    return Counter(each.perspective_id for each in call.handle.claims() if _is_flagged(each))


def _is_flagged(claim: CheckedClaim) -> bool:
    """Whether a claim kept no citation, so that it is not packed."""
    return not claim.citation_cids


def _show_pack(call: Call) -> Iterator[str]:
    made: SummaryPack = call.answer
    flagged = _flagged(call)
    yield from summary_lines(call.handle.manifest(), made, flagged)
    if flagged:
        yield f"flagged: {counted(flagged.total(), 'claim')}; {command(call, 'claims')} says why"
    yield from gate_lines(_gate(call, "D"))
    yield from next_lines(call)


pack = Command(
    "study.pack",
    _show_pack,
    calls=("study.claims", "study.gates", "study.manifest", "study.status"),
    document=lambda call: answered(
        call, pack=call.answer.to_wire(), gate=_gate(call, "D").to_wire(), flagged=dict(_flagged(call))
    ),
    about="Every claim against its sources; the summaries and the pack within their bytes.",
)


class _Claims(NamedTuple):
    known: list[CheckedClaim]
    shown: list[CheckedClaim]


def _claims(call: Call, ask: Callable[[], list[CheckedClaim]]) -> _Claims:
    known = [each for each in ask() if call.typed.get("perspective") in (None, each.perspective_id)]
    return _Claims(known, [each for each in known if call.typed.get("include_all") or _is_flagged(each)])


def _show_claims(call: Call) -> Iterator[str]:
    known, shown = call.answer
    for each in shown:
        yield f"{each.perspective_id}  {coloured(each.support, _SUPPORT)}  {one_line(each.claim, 300)}"
        yield f"    {one_line(each.reason, 300)}"
        if each.quote:
            yield f"    the source says: “{one_line(each.quote, 200)}”"
    if known:
        yield f"{counted(len(known), 'claim')} checked, {sum(map(_is_flagged, known))} flagged"
    else:
        yield "no claims yet: they are checked by `pack`"


claims = Command(
    "study.claims",
    _show_claims,
    around=_claims,
    more={
        "include_all": Word("Also those that hold.", flag=True),
        "perspective": Word("Of one perspective.", metavar="ID"),
    },
    document=lambda call: answered(call, claims=wire(call.answer.shown), checked=len(call.answer.known)),
    about="They were left out of the pack, each with the reason.",
)


# -- the report ---------------------------------------------------------------------------------------


def _show_synthesis(call: Call) -> Iterator[str]:
    yield call.answer.text
    yield "# Sources\n"
    for each in (call.answer.pack.model_extra or {}).get("sources", ()):
        title = f" - {one_line(each['title'])}" if each.get("title") else ""
        yield f"- [{each['short']}] {each['url']}{title}"


synthesis = Command(
    "study.synthesis_input",
    _show_synthesis,
    document=lambda call: answered(call, **call.answer.to_wire()),
    about="The summaries, and the sources they cite.",
)


class _Checked(NamedTuple):
    text: str
    found: DraftCheck


def _check(call: Call, ask: Callable[..., DraftCheck]) -> _Checked:
    from muniment.surfaces.cli.documents import read_text

    text = read_text(call.typed["draft"])
    return _Checked(text, ask(draft=text))


def _show_check(call: Call) -> Iterator[str]:
    text, found = call.answer
    data, name = text.encode(), call.typed["draft"]
    for each in found.findings:
        number = None if each.span is None else data.count(b"\n", 0, each.span.start) + 1
        where = name if number is None else f"{name}:{number}"
        yield f"{where}: {style(each.problem, fg='red')}: {one_line(each.message, 300)}"
        if each.text:
            yield f"    {one_line(each.text, 200)}"
    rounds = f"review {found.review} of {call.handle.manifest().limits.max_review_rounds}"
    if found.passed:
        figures = found.metrics.get("figures_cited", 0)
        yield f"{style('the report holds', fg='green')}: {figures} figures, all cited; {rounds}"
    else:
        yield f"{counted(len(found.findings), 'finding')}; {rounds}"


check = Command(
    "study.check",
    _show_check,
    around=_check,
    arguments={"draft": "DRAFT"},
    words={"sections": Word("A section it must have (default: the policy's); repeatable.", "section", "NAME")},
    calls=("study.manifest",),
    document=lambda call: answered(call, check=call.answer.found.to_wire()),
    holds=lambda answer: answer.found.passed,
    about="DRAFT is Markdown; `-` is standard input. Exits 1 with findings. Looked for: figures without a citation, "
    "citations that are unknown, not valid or do not bear the sentence, sections that are missing. Each check is a "
    "review round, and a run has a limit of them.",
)
