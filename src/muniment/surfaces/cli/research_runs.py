"""Research runs as a whole: started, listed, measured, shown, and their files written anew."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from muniment.errors import Forgotten, InvalidInput, NotFound
from muniment.surfaces.cli.asking import one_line, settings_of_user, text_given, when
from muniment.surfaces.cli.options import db_option, json_option, tenant_option, user_option
from muniment.surfaces.cli.output import EXIT_FAILED, emit_json, handles_errors
from muniment.surfaces.cli.research_desk import Desk, in_words_of_commands, on_run, run_argument, where_given
from muniment.surfaces.settings import load_settings, open_store

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.research.run_records import ResearchManifest

__all__ = ["gates", "init", "list_", "resume", "status"]


# -- init ---------------------------------------------------------------------------------------------


@click.command()
@click.argument("question", required=False)
@click.option("--file", "file", metavar="FILE", help="Read the question from a file instead.")
@click.option("--mode", default="standard", show_default=True, metavar="MODE", help="quick, standard or deep.")
@click.option(
    "--limit", "limits", multiple=True, metavar="NAME=N", help="A limit, such as max_summary_kb=3; repeatable."
)
@click.option("--agent", "agents", multiple=True, metavar="TYPE", help="A type of agent that you have; repeatable.")
@click.option("--run-id", metavar="ID", help="Its id (default: a new one).")
@click.option(
    "--dir", "directory", metavar="PATH", help="Where its files go (default: research-runs/ID, see the guide)."
)
@user_option
@db_option
@tenant_option
@json_option
@handles_errors
def init(
    question: str | None,
    file: str | None,
    mode: str,
    limits: tuple[str, ...],
    agents: tuple[str, ...],
    run_id: str | None,
    directory: str | None,
    user: str | None,
    db: str | None,
    tenant: str | None,
    as_json: bool,
) -> None:
    """Start a research run with QUESTION (`-` is standard input). Question and limits are kept as they are."""
    settings = settings_of_user(db, tenant, user)
    asked, bounds = _question(question, file), _limits(limits)
    with in_words_of_commands(run_id or "RUN"), open_store(settings) as mem:
        study = mem.research(
            asked,
            user_id=settings.user,
            mode=mode,  # type: ignore[arg-type]  # the library says what is wrong with it
            limits=bounds,
            agent_types=agents or None,
            run_id=run_id,
            directory=directory,
            tenant_id=settings.tenant,
        )
        desk = Desk(study, as_json, where_given(db=db, tenant=tenant))
        manifest = study.manifest()
        if as_json:
            desk.answer(directory=str(study.directory), manifest=manifest.to_wire())
            return
        click.echo(f"{click.style(study.run_id, bold=True)}  {manifest.mode}, {len(manifest.agent_types)} agent types")
        click.echo(f"question: {one_line(manifest.question, 300)}")
        click.echo(f"files:    {study.directory}")
        click.echo(f"next:     {desk.line('route')}")


def _question(given: str | None, file: str | None) -> str:
    """The question, checked before a store is made for it."""
    from muniment.handles.study import check_question

    if (given is None) == (file is None):
        said = "a question is asked" if given is None else "a question is asked once"
        raise InvalidInput(said, path="$.question", hint="as an argument, as - for standard input, or with --file")
    if file is not None:
        from muniment.surfaces.cli.documents import read_text

        return check_question(read_text(file))
    return check_question(text_given(given or ""))


def _limits(given: tuple[str, ...]) -> dict[str, Any]:
    """`name=value` as numbers; which names and numbers there are is the library's to say."""
    limits: dict[str, Any] = {}
    for each in given:
        name, _, value = each.partition("=")
        try:
            limits[name] = int(value) if value.isascii() and value.lstrip("-").isdigit() else float(value)
        except ValueError:
            raise InvalidInput(
                f"{each!r:.80} is not a limit and its number", path="$.limits", hint="write --limit max_summary_kb=3"
            ) from None
    return limits


# -- list ---------------------------------------------------------------------------------------------


@click.command("list")
@db_option
@tenant_option
@click.option("--user", metavar="ID", help="Runs of one user (default: of all).")
@json_option
@handles_errors
def list_(db: str | None, tenant: str | None, user: str | None, as_json: bool) -> None:
    """List research runs, oldest first: stage, revision, whose it is, what it asks."""
    settings = load_settings({"db": db, "tenant": tenant})
    with open_store(settings, must_exist=True) as mem:
        states = [state for state in mem.runs(user_id=user, tenant_id=settings.tenant) if state.task_type == "research"]
        found = [(state, _manifest(mem, state.run_id, settings.tenant)) for state in states]
    if as_json:
        runs = [{"user_id": state.scope.user_id, **_brief(each)} for state, each in found if each is not None]
        emit_json({"runs": runs})
        return
    for state, each in found:
        if each is not None:
            stands = f"{each.stage}, revision {each.revision}"
            asked = one_line(each.question, 80)
            click.echo(f"{each.run_id}  {when(each.created_at)}  {stands}  {state.scope.user_id}  {asked}")
    if not any(each is not None for _, each in found):
        click.echo(f"no research runs{f' of {user}' if user else ''} in {settings.db}")


def _manifest(mem: Memory, run_id: str, tenant: str) -> ResearchManifest | None:
    """None for one that was forgotten, or that never got further than its name."""
    try:
        return mem.open_research(run_id, tenant_id=tenant).manifest()
    except (Forgotten, NotFound):
        return None


def _brief(manifest: ResearchManifest) -> dict[str, Any]:
    names = ("run_id", "revision", "stage", "question", "mode", "created_at", "updated_at")
    return {name: getattr(manifest, name) for name in names}


# -- how it stands ------------------------------------------------------------------------------------


@click.command()
@run_argument
@on_run
def status(desk: Desk) -> None:
    """Show how RUN stands: stages, perspectives, gates, citations, bytes, edited files, what comes next."""
    from muniment.surfaces.cli.research_view import next_lines, show_status, summary_bytes

    found = desk.study.status()
    if not desk.as_json:
        show_status(found, desk)
        return
    desk.answer(
        directory=found.directory,
        manifest=found.manifest.to_wire(),
        perspectives=[each.to_wire() for each in found.perspectives],
        gates=found.gates.to_wire(),
        citations=dict(found.citations),
        summary_bytes=summary_bytes(found.manifest),
        edited=list(found.edited),
        next=found.next,
        commands=next_lines(found, desk),
    )


@click.command()
@run_argument
@on_run
def gates(desk: Desk) -> None:
    """Measure gates A to E as they stand, D on the bytes on disk. Exits 1 where one fails."""
    from muniment.surfaces.cli.research_view import show_gates

    found = desk.study.gates()
    if desk.as_json:
        desk.answer(gates=[gate.to_wire() for gate in found.gates])
    else:
        show_gates(found)
    if any(gate.status == "fail" for gate in found.gates):
        sys.exit(EXIT_FAILED)


@click.command()
@run_argument
@on_run
def resume(desk: Desk) -> None:
    """Write the files of RUN anew from the store, over whatever was edited, lost or left half-way by a crash."""
    from muniment.surfaces.cli.research_view import next_lines, show_next

    written = desk.study.resume()
    found = desk.study.status()
    if desk.as_json:
        desk.answer(written=written, directory=found.directory, next=found.next, commands=next_lines(found, desk))
        return
    click.echo(f"written: {', '.join(written) or 'nothing, every file was as it should be'}")
    click.echo(f"{found.directory} is at revision {found.manifest.revision}, stage {found.manifest.stage}")
    show_next(desk)
