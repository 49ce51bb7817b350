"""The second half of a research run: sources, citations, the bounded pack, a draft checked against it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from muniment.errors import InvalidInput
from muniment.surfaces.cli.asking import one_line, text_given
from muniment.surfaces.cli.output import EXIT_FAILED
from muniment.surfaces.cli.research_desk import Desk, harmless, on_run, revision_option, run_argument
from muniment.surfaces.cli.run import many

if TYPE_CHECKING:
    from muniment.research.run_records import CheckedClaim, Citation, DraftCheck, GateResult, SourceCheck

__all__ = ["check", "citations", "claims", "pack", "source", "synthesis"]


# -- sources ------------------------------------------------------------------------------------------


@click.command()
@run_argument
@click.argument("url", required=False)
@click.argument("file", required=False, metavar="FILE")
@click.option("--snippet", metavar="TEXT", help="A passage instead of a page; `-` is standard input.")
@click.option("--title", metavar="TEXT", help="Its title (default: what the page says itself).")
@click.option("--lines", metavar="FILE", help="Many at once: JSON lines with url and text; `-` is standard input.")
@on_run
def source(
    desk: Desk, url: str | None, file: str | None, snippet: str | None, title: str | None, lines: str | None
) -> None:
    """Keep what was read at URL: the page in FILE (text, Markdown, HTML), or a snippet. Nothing is fetched.

    A citation is valid once its page or a snippet of it is here, and claims are checked against that text.
    """
    given = _given(url, file, snippet, title, lines)
    cids = desk.study.supply(given)
    if desk.as_json:
        desk.answer(cids=cids)
        return
    for cid, each in zip(cids, {each["url"]: each for each in given}, strict=False):
        click.echo(f"{cid[:12]}  {one_line(each)}")
    click.echo(f"kept: {many(len(cids), 'source')}")
    click.echo(f"next: {desk.line('citations')}")


def _given(
    url: str | None, file: str | None, snippet: str | None, title: str | None, lines: str | None
) -> list[dict[str, Any]]:
    from muniment.surfaces.cli.research_sources import page_from, pages_in, snippet_from

    if lines is not None and url is None and snippet is None and title is None:
        return pages_in(lines)
    if lines is None and url is not None and snippet is not None and file is None:
        return [snippet_from(url, text_given(snippet), title)]
    if lines is None and url is not None and snippet is None and file is not None:
        return [page_from(url, file, title)]
    raise InvalidInput(
        "a source is an address and what was read there",
        path="$.source",
        hint="URL FILE, or URL --snippet TEXT, or --lines FILE",
    )


@click.command()
@run_argument
@click.option("--check-urls", is_flag=True, help="Look at addresses that have no stored text, over the network.")
@click.option("--allow-private", is_flag=True, help="With --check-urls: also addresses of this machine and network.")
@revision_option
@on_run
def citations(desk: Desk, check_urls: bool, allow_private: bool, revision: int | None) -> None:
    """Settle the status of every source of RUN: valid, paywalled, blocked, invalid or unchecked.

    Nothing is fetched unless you ask for it. It may be repeated, as sources come in.
    """
    looked = _look(desk, allow_private) if check_urls else []
    settled = desk.study.citations(expected_revision=revision)
    gate = gate_named(desk, "C")
    if desk.as_json:
        desk.answer(
            citations=[each.to_wire() for each in settled],
            gate=gate.to_wire(),
            looked=[each.to_wire() for each in looked],
        )
        return
    _show_citations(settled)
    _show_gate(desk, gate)


def _look(desk: Desk, allow_private: bool) -> list[SourceCheck]:
    from muniment.research.outside.url_check import UrlChecker

    return desk.study.look(UrlChecker(allow_private=allow_private))


def _show_citations(settled: Sequence[Citation]) -> None:
    from muniment.research.run_records import CITABLE

    for each in settled:
        status = click.style(f"{each.status:<9}", fg=None if each.status in CITABLE else "yellow")
        found = ", ".join(each.found_by)
        note = f"  ({one_line(each.notes, 120)})" if each.notes and each.status != "valid" else ""
        click.echo(f"{status} {each.cid[:12]}  {one_line(each.url)}  by {found}{note}")
    counted = Counter(each.status for each in settled)
    click.echo(", ".join(f"{count} {status}" for status, count in sorted(counted.items())) or "nothing is cited")


def gate_named(desk: Desk, name: str) -> GateResult:
    return next(gate for gate in desk.study.gates().gates if gate.gate == name)


def _show_gate(desk: Desk, gate: GateResult) -> None:
    from muniment.surfaces.cli.research_view import gate_lines, show_next

    for line in gate_lines(gate):
        click.echo(line)
    show_next(desk)


# -- the pack -----------------------------------------------------------------------------------------


@click.command()
@run_argument
@revision_option
@on_run
def pack(desk: Desk, revision: int | None) -> None:
    """Check every claim against its sources and write the summaries and the pack, within their bytes."""
    made = desk.study.pack(expected_revision=revision)
    gate = gate_named(desk, "D")
    flagged = Counter(each.perspective_id for each in desk.study.claims() if is_flagged(each))
    if desk.as_json:
        desk.answer(pack=made.to_wire(), gate=gate.to_wire(), flagged=dict(flagged))
        return
    from muniment.surfaces.cli.research_view import show_summaries

    show_summaries(desk.study.manifest(), made, flagged)
    if flagged:
        click.echo(f"flagged: {many(flagged.total(), 'claim')}; {desk.line('claims')} says why")
    _show_gate(desk, gate)


@click.command()
@run_argument
@click.option("--all", "include_all", is_flag=True, help="Also those that hold.")
@click.option("--perspective", metavar="ID", help="Of one perspective.")
@on_run
def claims(desk: Desk, include_all: bool, perspective: str | None) -> None:
    """List the claims that were left out of the pack because no source bears them, each with the reason."""
    known = [each for each in desk.study.claims() if perspective in (None, each.perspective_id)]
    shown = [each for each in known if include_all or is_flagged(each)]
    if desk.as_json:
        desk.answer(claims=[each.to_wire() for each in shown], checked=len(known))
        return
    for each in shown:
        support = click.style(each.support, fg=_COLOURS[each.support])
        click.echo(f"{each.perspective_id}  {support}  {one_line(each.claim, 300)}")
        click.echo(f"    {one_line(each.reason, 300)}")
        if each.quote:
            click.echo(f"    the source says: “{one_line(each.quote, 200)}”")
    made = many(len(known), "claim")
    click.echo(
        f"{made} checked, {sum(map(is_flagged, known))} flagged"
        if known
        else "no claims yet: they are checked by `pack`"
    )


def is_flagged(claim: CheckedClaim) -> bool:
    """It kept no citation, so it is not packed."""
    return not claim.citation_cids


_COLOURS = {"supported": "green", "unchecked": "yellow", "refuted": "red", "not_supported": "red", "uncited": "yellow"}


# -- the report ---------------------------------------------------------------------------------------


@click.command()
@run_argument
@on_run
def synthesis(desk: Desk) -> None:
    """Print all that a report may be written from: the summaries, and the sources they cite."""
    given = desk.study.synthesis_input()
    if desk.as_json:
        desk.answer(**given.to_wire())
        return
    click.echo(harmless(given.text))
    click.echo("# Sources\n")
    for each in (given.pack.model_extra or {}).get("sources", ()):
        click.echo(
            f"- [{each['short']}] {each['url']}" + (f" - {one_line(each['title'])}" if each.get("title") else "")
        )


@click.command()
@run_argument
@click.argument("draft", metavar="DRAFT")
@click.option(
    "--section",
    "sections",
    multiple=True,
    metavar="NAME",
    help="A section it must have (default: the policy's); repeatable.",
)
@revision_option
@on_run
def check(desk: Desk, draft: str, sections: tuple[str, ...], revision: int | None) -> None:
    """Check the report in DRAFT (Markdown; `-` is standard input) against the pack. Exits 1 with findings.

    Looked for: figures without a citation, citations that are unknown, not valid or do not bear the sentence, sections
    that are missing. Each check is a review round, and a run has a limit of them.
    """
    from muniment.surfaces.cli.documents import read_text

    text = read_text(draft)
    found = desk.study.check(text, sections=sections or None, expected_revision=revision)
    if desk.as_json:
        desk.answer(check=found.to_wire())
    else:
        _show_check(desk, found, text, draft)
    if not found.passed:
        sys.exit(EXIT_FAILED)


def _show_check(desk: Desk, found: DraftCheck, text: str, name: str) -> None:
    data = text.encode()
    for each in found.findings:
        number = None if each.span is None else data.count(b"\n", 0, each.span.start) + 1
        where = name if number is None else f"{name}:{number}"
        click.echo(f"{where}: {click.style(each.problem, fg='red')}: {one_line(each.message, 300)}")
        if each.text:
            click.echo(f"    {one_line(each.text, 200)}")
    manifest = desk.study.manifest()
    rounds = f"review {found.review} of {manifest.limits.max_review_rounds}"
    if found.passed:
        figures = found.metrics.get("figures_cited", 0)
        click.echo(f"{click.style('the report holds', fg='green')}: {figures} figures, all cited; {rounds}")
    else:
        click.echo(f"{many(len(found.findings), 'finding')}; {rounds}")
