"""`research init … pivot, gates, status, resume, list`: a research run from its question to the end of its waves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from muniment.errors import Forgotten, InvalidInput, NotFound
from muniment.surfaces.cli.calling import Call, Command, wire
from muniment.surfaces.cli.parameters import Word
from muniment.surfaces.cli.reading import counts_given, text_given
from muniment.surfaces.cli.research_lines import (
    answered,
    command,
    gate_lines,
    ingest_line,
    next_lines,
    next_steps,
    perspective_lines,
    status_lines,
    summary_bytes,
)
from muniment.surfaces.cli.terminal import coloured, one_line, strong, when

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.handles.study import Study, StudyStatus
    from muniment.research.records import PivotDecision, ResearchManifest, WaveResult
    from muniment.store.ledger import RunState

__all__ = ["gates", "give_up", "ingest", "init", "list_", "pivot", "prompt", "resume", "route", "status"]

_PERSPECTIVE = {"perspective_id": "PERSPECTIVE"}
_FATES = {"accepted": "green", "rejected": "red"}


# -- init ---------------------------------------------------------------------------------------------


def _limits_given(given: tuple[str, ...]) -> dict[str, Any]:
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


def _file_given(name: str) -> str:
    from muniment.surfaces.cli.documents import read_text

    return read_text(name)


def _check_question(call: Call) -> None:
    """A question is asked once, and checked before a store is made for it."""
    from muniment.handles.study import check_question

    given, file = call.typed.get("question"), call.typed.get("file")
    if (given is None) == (file is None):
        said = "a question is asked" if given is None else "a question is asked once"
        raise InvalidInput(said, path="$.question", hint="as an argument, as - for standard input, or with --file")
    check_question(given if given is not None else str(file))


def _init(
    call: Call,
    question: Annotated[str | None, Word(metavar="[QUESTION]", read=text_given)] = None,
    *,
    file: Annotated[
        str | None, Word("Read the question from a file instead.", metavar="FILE", read=_file_given)
    ] = None,
    mode: Annotated[str, Word("quick, standard or deep.", metavar="MODE")] = "standard",
    limits: Annotated[
        dict[str, Any] | None,
        Word("A limit, such as max_summary_kb=3; repeatable.", "limit", "NAME=N", many=True, read=_limits_given),
    ] = None,
    agents: Annotated[tuple[str, ...], Word("A type of agent that you have; repeatable.", "agent", "TYPE")] = (),
    run_id: Annotated[str | None, Word("Its id (default: a new one).", "run-id", "ID")] = None,
    folder: Annotated[
        str | None, Word("Where its files go (default: research-runs/ID, see the guide).", "dir", "PATH")
    ] = None,
) -> Study:
    study = call.memory.research(
        str(question if question is not None else file),
        user_id=call.user,
        mode=_as_mode(mode),
        limits=limits or {},
        agent_types=agents or None,
        run_id=run_id,
        directory=folder,
        tenant_id=call.tenant,
    )
    call.handle = study
    return study


def _as_mode(mode: str) -> Literal["quick", "standard", "deep"]:
    return mode  # type: ignore[return-value]  # the library says what is wrong with it


def _show_started(call: Call) -> Iterator[str]:
    study: Study = call.answer
    manifest = study.manifest()
    yield f"{strong(study.run_id)}  {manifest.mode}, {len(manifest.agent_types)} agent types"
    yield f"question: {one_line(manifest.question, 300)}"
    yield f"files:    {study.directory}"
    yield f"next:     {command(call, 'route')}"


init = Command(
    "memory.research",
    _show_started,
    function=_init,
    on="user call",
    check=_check_question,
    creates=True,
    calls=("study.manifest",),
    document=lambda call: answered(
        call, directory=str(call.answer.directory), manifest=call.answer.manifest().to_wire()
    ),
    about="QUESTION may be `-`: standard input. Question and limits are kept as they are.",
)


# -- list ---------------------------------------------------------------------------------------------

_Listed = list[tuple["RunState", "ResearchManifest"]]


def _list(
    memory: Memory,
    *,
    user_id: Annotated[str | None, Word("Runs of one user (default: of all).")] = None,
    tenant_id: str = "default",
) -> _Listed:
    found: _Listed = []
    for state in memory.runs(user_id=user_id, tenant_id=tenant_id):
        if state.task_type == "research":
            try:
                found.append((state, memory.open_research(state.run_id, tenant_id=tenant_id).manifest()))
            except (Forgotten, NotFound):  # it was forgotten, or never got further than its name
                continue
    return found


def _show_runs(call: Call) -> Iterator[str]:
    for state, each in call.answer:
        stands = f"{each.stage}, revision {each.revision}"
        asked = one_line(each.question, 80)
        yield f"{each.run_id}  {when(each.created_at)}  {stands}  {state.scope.user_id}  {asked}"
    if not call.answer:
        user = call.typed.get("user_id")
        yield f"no research runs{f' of {user}' if user else ''} in {call.settings.shown_db}"


def _runs_document(call: Call) -> dict[str, Any]:
    names = ("run_id", "revision", "stage", "question", "mode", "created_at", "updated_at")
    return {
        "runs": [
            {"user_id": state.scope.user_id, **{name: getattr(each, name) for name in names}}
            for state, each in call.answer
        ]
    }


list_ = Command(
    "memory.open_research",
    _show_runs,
    function=_list,
    on="memory",
    calls=("memory.runs", "study.manifest"),
    document=_runs_document,
    about="Oldest first: stage, revision, whose it is, what it asks.",
)


# -- how it stands ------------------------------------------------------------------------------------


def _status_document(call: Call) -> dict[str, Any]:
    found: StudyStatus = call.answer
    return answered(
        call,
        directory=found.directory,
        manifest=found.manifest.to_wire(),
        perspectives=wire(found.perspectives),
        gates=found.gates.to_wire(),
        citations=dict(found.citations),
        summary_bytes=summary_bytes(found.manifest),
        edited=list(found.edited),
        next=found.next,
        commands=next_steps(found, call),
    )


status = Command(
    "study.status",
    status_lines,
    document=_status_document,
    about="Stages, perspectives, gates, citations, bytes, edited files.",
)


def _show_gates(call: Call) -> Iterator[str]:
    for gate in call.answer.gates:
        yield from gate_lines(gate)


gates = Command(
    "study.gates",
    _show_gates,
    document=lambda call: answered(call, gates=wire(call.answer.gates)),
    holds=lambda found: all(gate.status != "fail" for gate in found.gates),
    about="D on the bytes on disk. Exits 1 where one fails.",
)


def _show_resumed(call: Call) -> Iterator[str]:
    found: StudyStatus = call.handle.status()
    yield f"written: {', '.join(call.answer) or 'nothing, every file was as it should be'}"
    yield f"{found.directory} is at revision {found.manifest.revision}, stage {found.manifest.stage}"
    yield from next_lines(call)


def _resumed_document(call: Call) -> dict[str, Any]:
    found: StudyStatus = call.handle.status()
    return answered(
        call, written=call.answer, directory=found.directory, next=found.next, commands=next_steps(found, call)
    )


resume = Command(
    "study.resume",
    _show_resumed,
    calls=("study.status",),
    document=_resumed_document,
    about="Over whatever was edited, lost or left half-way by a crash.",
)


# -- perspectives -------------------------------------------------------------------------------------


def _json_file(name: str) -> Any:
    from muniment.core.canonical import parse_json

    return parse_json(_file_given(name))


def _show_route(call: Call) -> Iterator[str]:
    yield from perspective_lines(call.answer)
    yield from next_lines(call)


route = Command(
    "study.route",
    _show_route,
    left_out=("propose",),
    calls=("study.status",),
    document=lambda call: answered(call, perspectives=wire(call.answer)),
    words={
        "perspectives": Word(
            "Perspectives as JSON (a list, or perspectives.json); `-` is stdin.", "plan", "FILE", read=_json_file
        )
    },
    about="From its question, or by a plan that you or a model made.",
)
prompt = Command(
    "study.prompt",
    lambda call: [call.answer.removesuffix("\n")],
    arguments=_PERSPECTIVE,
    document=lambda call: answered(call, perspective_id=call.typed["perspective_id"], prompt=call.answer),
    about="After a rejected output, with what has to change.",
)


# -- outputs ------------------------------------------------------------------------------------------


def _output_given(name: str) -> Any:
    if name.endswith(".json"):
        return _json_file(name)
    return _file_given(name) if name == "-" else Path(name)


def _pages_given(given: tuple[str, ...]) -> list[dict[str, Any]]:
    from muniment.surfaces.cli.commands.research_pack import page_named

    return [page_named(each) for each in given]


def _show_result(call: Call) -> Iterator[str]:
    result: WaveResult = call.answer
    what = coloured("accepted" if result.accepted else "rejected", _FATES)
    name = strong(result.perspective_id)
    yield f"{name} {what}, attempt {result.attempt}: {result.words} words, {result.sources} sources"
    for breach in result.breaches:
        yield f"  {breach.kind}: {one_line(breach.message, 400)}"
    for gap in result.gaps:
        yield f"  gap {gap.priority}: {one_line(gap.text)}"
    if result.directive is None:
        yield from next_lines(call)
        return
    yield "\ntell the agent:\n"
    for line in result.directive.text.splitlines():
        yield f"    {one_line(line, 600)}".rstrip()
    yield f"\nagain:   {ingest_line(call.handle.status(), call, result.perspective_id)}"
    yield f"or not:  {command(call, 'give-up', result.perspective_id, '--reason', 'TEXT')}"


ingest = Command(
    "study.ingest",
    _show_result,
    arguments={**_PERSPECTIVE, "output": "FILE"},
    calls=("study.status",),
    document=lambda call: answered(call, result=call.answer.to_wire()),
    holds=lambda result: result.accepted,
    words={
        "output": Word(read=_output_given),
        "tool_use": Word(
            "Calls it made, by the contract's names; repeatable.",
            "tool",
            "NAME=N",
            many=True,
            read=counts_given("tool", "search_calls=3"),
        ),
        "sources": Word("A page it read, as a file; repeatable.", "source", "URL=FILE", many=True, read=_pages_given),
        "change_note": Word("What was changed since the last attempt; a retry needs one.", metavar="TEXT"),
    },
    about="FILE is Markdown, or an agent result in `.json`; `-` is Markdown from stdin. Exits 1 where it breaks its "
    "contract, and prints what to tell the agent.",
)


def _show_given_up(call: Call) -> Iterator[str]:
    yield f"{call.typed['perspective_id']} given up"
    yield from next_lines(call)


give_up = Command(
    "study.give_up",
    _show_given_up,
    arguments=_PERSPECTIVE,
    calls=("study.status",),
    document=lambda call: answered(call, perspective_id=call.typed["perspective_id"], standing="given_up"),
    words={"reason": Word("Why; it counts as a gap.")},
    about="It stays a gap, and too many of them fail gate B.",
)


# -- pivot --------------------------------------------------------------------------------------------


class _Pivoted(NamedTuple):
    decision: PivotDecision
    added: list[Any]


def _pivot(call: Call, ask: Callable[[], PivotDecision]) -> _Pivoted:
    decision, standings = ask(), call.handle.manifest().standings
    return _Pivoted(decision, [each for each in call.handle.perspectives() if standings.get(each.id) == "waiting"])


def _show_pivot(call: Call) -> Iterator[str]:
    decision, added = call.answer
    yield strong("a second wave" if decision.second_wave else "no second wave")
    yield f"  {one_line(decision.reason, 300)}"
    for gap in decision.gaps:
        yield f"  {gap.priority} {gap.perspective_id}: {one_line(gap.text)}"
    if added:
        yield from perspective_lines(added)
    yield from next_lines(call)


pivot = Command(
    "study.pivot",
    _show_pivot,
    around=_pivot,
    words={"second_wave": Word("Overrule what the gaps say.", "second-wave/--no-second-wave")},
    calls=("study.manifest", "study.perspectives", "study.status"),
    document=lambda call: answered(call, decision=call.answer.decision.to_wire(), perspectives=wire(call.answer.added)),
    about="After the first wave, by its gaps.",
)
