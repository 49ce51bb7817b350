"""The first half of a research run: perspectives, prompts, outputs, the second wave."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from muniment.surfaces.cli.asking import one_line
from muniment.surfaces.cli.output import EXIT_FAILED
from muniment.surfaces.cli.research_desk import Desk, harmless, named_counts, on_run, revision_option, run_argument

if TYPE_CHECKING:
    from muniment.research.run_records import PivotDecision, WaveResult

__all__ = ["give_up", "ingest", "pivot", "prompt", "route"]


@click.command()
@run_argument
@click.option("--plan", metavar="FILE", help="Perspectives as JSON (a list, or perspectives.json); `-` is stdin.")
@revision_option
@on_run
def route(desk: Desk, plan: str | None, revision: int | None) -> None:
    """Choose the perspectives of RUN from its question, or take a plan that you or a model made."""
    from muniment.surfaces.cli.research_view import show_next, show_perspectives

    chosen = desk.study.route(None if plan is None else _plan(plan), expected_revision=revision)
    if desk.as_json:
        desk.answer(perspectives=[each.to_wire() for each in chosen])
        return
    show_perspectives(chosen)
    show_next(desk)


def _plan(name: str) -> Any:
    from muniment.core.canonical import parse_json
    from muniment.surfaces.cli.documents import read_text

    return parse_json(read_text(name))


@click.command()
@run_argument
@click.argument("perspective_id", metavar="PERSPECTIVE")
@on_run
def prompt(desk: Desk, perspective_id: str) -> None:
    """Print what to hand to the agent of PERSPECTIVE; after a rejected output, with what has to change."""
    text = desk.study.prompt(perspective_id)
    if desk.as_json:
        desk.answer(perspective_id=perspective_id, prompt=text)
    else:
        click.echo(harmless(text), nl=False)


# -- outputs ------------------------------------------------------------------------------------------


@click.command()
@run_argument
@click.argument("perspective_id", metavar="PERSPECTIVE")
@click.argument("file", metavar="FILE")
@click.option(
    "--tool", "tools", multiple=True, metavar="NAME=N", help="Calls it made, by the contract's names; repeatable."
)
@click.option("--source", "sources", multiple=True, metavar="URL=FILE", help="A page it read, as a file; repeatable.")
@click.option("--change-note", metavar="TEXT", help="What was changed since the last attempt; a retry needs one.")
@revision_option
@on_run
def ingest(
    desk: Desk,
    perspective_id: str,
    file: str,
    tools: tuple[str, ...],
    sources: tuple[str, ...],
    change_note: str | None,
    revision: int | None,
) -> None:
    """Take FILE as the output of PERSPECTIVE: Markdown, or an agent result in `.json`; `-` is Markdown from stdin.

    Exits 1 where it breaks its contract, and prints what to tell the agent.
    """
    result = desk.study.ingest(
        perspective_id,
        _output(file),
        tool_use=named_counts(tools, "tool") if tools else None,
        sources=_pages(sources) if sources else None,
        change_note=change_note,
        expected_revision=revision,
    )
    if desk.as_json:
        desk.answer(result=result.to_wire())
    else:
        _show_result(desk, result)
    if not result.accepted:
        sys.exit(EXIT_FAILED)


def _output(name: str) -> Any:
    from muniment.core.canonical import parse_json
    from muniment.surfaces.cli.documents import read_text

    if name.endswith(".json"):
        return parse_json(read_text(name))
    return read_text(name) if name == "-" else Path(name)


def _pages(given: tuple[str, ...]) -> list[dict[str, Any]]:
    from muniment.surfaces.cli.research_sources import page_named

    return [page_named(each) for each in given]


def _show_result(desk: Desk, result: WaveResult) -> None:
    from muniment.surfaces.cli.research_view import ingest_line, show_next

    name = click.style(result.perspective_id, bold=True)
    what = click.style("accepted", fg="green") if result.accepted else click.style("rejected", fg="red")
    click.echo(f"{name} {what}, attempt {result.attempt}: {result.words} words, {result.sources} sources")
    for breach in result.breaches:
        click.echo(f"  {breach.kind}: {one_line(breach.message, 400)}")
    for gap in result.gaps:
        click.echo(f"  gap {gap.priority}: {one_line(gap.text)}")
    if result.directive is None:
        show_next(desk)
        return
    click.echo("\ntell the agent:\n")
    for line in result.directive.text.splitlines():
        click.echo(f"    {one_line(line, 600)}".rstrip())
    click.echo(f"\nagain:   {ingest_line(desk.study.status(), desk, result.perspective_id)}")
    click.echo(f"or not:  {desk.line('give-up', result.perspective_id, '--reason', 'TEXT')}")


@click.command("give-up")
@run_argument
@click.argument("perspective_id", metavar="PERSPECTIVE")
@click.option("--reason", required=True, metavar="TEXT", help="Why; it counts as a gap.")
@revision_option
@on_run
def give_up(desk: Desk, perspective_id: str, reason: str, revision: int | None) -> None:
    """Go on without PERSPECTIVE. It stays a gap, and too many of them fail gate B."""
    desk.study.give_up(perspective_id, reason, expected_revision=revision)
    if desk.as_json:
        desk.answer(perspective_id=perspective_id, standing="given_up")
        return
    from muniment.surfaces.cli.research_view import show_next

    click.echo(f"{perspective_id} given up")
    show_next(desk)


# -- pivot --------------------------------------------------------------------------------------------


@click.command()
@run_argument
@click.option("--second-wave/--no-second-wave", default=None, help="Overrule what the gaps say.")
@revision_option
@on_run
def pivot(desk: Desk, second_wave: bool | None, revision: int | None) -> None:
    """After the first wave: decide by its gaps whether a second one follows."""
    from muniment.surfaces.cli.research_view import show_next, show_perspectives

    decision = desk.study.pivot(second_wave=second_wave, expected_revision=revision)
    standings = desk.study.manifest().standings
    added = [each for each in desk.study.perspectives() if standings.get(each.id) == "waiting"]
    if desk.as_json:
        desk.answer(decision=decision.to_wire(), perspectives=[each.to_wire() for each in added])
        return
    _show_decision(decision)
    if added:
        show_perspectives(added)
    show_next(desk)


def _show_decision(decision: PivotDecision) -> None:
    what = "a second wave" if decision.second_wave else "no second wave"
    click.echo(click.style(what, bold=True))
    click.echo(f"  {one_line(decision.reason, 300)}")
    for gap in decision.gaps:
        click.echo(f"  {gap.priority} {gap.perspective_id}: {one_line(gap.text)}")
