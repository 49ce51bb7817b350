"""`research …`: a research run from its question to the checked report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

from muniment.errors import InvalidInput
from muniment.research.records import STAGES
from muniment.surfaces.cli import _reading as reading
from muniment.surfaces.cli._command import Call, Command, OptionSpec, wire
from muniment.surfaces.cli._views import COLOURS, show_plain
from muniment.surfaces.cli.terminal import block_bar, coloured, counted, one_line, strong, style, when

if TYPE_CHECKING:
    from muniment.contracts.research import Perspective, SummaryPack
    from muniment.handles.study import Study, StudyStatus
    from muniment.research.records import (
        CheckedClaim,
        Citation,
        DraftCheck,
        GateResult,
        PivotDecision,
        ResearchManifest,
        SourceCheck,
        WaveResult,
    )

__all__ = ["check", "ingest", "init", "pack", "pivot", "prompt", "route", "source", "status"]

_GATES = {"A": "plan", "B": "waves", "C": "citations", "D": "pack", "E": "report"}
_SIGNS = {"pass": ("✓", "green"), "fail": ("✗", "red"), "not_run": ("·", "bright_black"), "open": ("…", "yellow")}


# -- init and route -----------------------------------------------------------------------------------


def _limits_given(given: tuple[str, ...]) -> dict[str, Any]:
    """Read `name=value` as numbers; the library checks names and ranges."""
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


def _check_question(call: Call) -> None:
    """Check the question before a store is created for it."""
    from muniment.handles.study import check_question

    given, file = call.typed.get("question"), call.typed.get("file")
    if (given is None) == (file is None):
        raise InvalidInput(
            "one question is needed", path="$.question", hint="as an argument, as - for standard input, or with --file"
        )
    check_question(given if given is not None else str(file))


def _init(
    call: Call,
    question: Annotated[str | None, OptionSpec(metavar="[QUESTION]", read=reading.text_given)] = None,
    *,
    file: Annotated[
        str | None, OptionSpec("Read the question from a file instead.", metavar="FILE", read=reading.read_text)
    ] = None,
    mode: Annotated[str, OptionSpec("quick, standard or deep.", metavar="MODE")] = "standard",
    limits: Annotated[
        dict[str, Any] | None,
        OptionSpec("A limit, such as max_summary_kb=3; repeatable.", "limit", "NAME=N", many=True, read=_limits_given),
    ] = None,
    agents: Annotated[tuple[str, ...], OptionSpec("A type of agent that you have; repeatable.", "agent", "TYPE")] = (),
    run_id: Annotated[str | None, OptionSpec("Its id (default: a new one).", "run-id", "ID")] = None,
    folder: Annotated[
        str | None, OptionSpec("Where its files go (default: research-runs/ID, see the guide).", "dir", "PATH")
    ] = None,
) -> Study:
    call.handle = call.memory.research(
        str(question if question is not None else file),
        user_id=call.user,
        mode=cast("Any", mode),  # the library checks it
        limits=limits or {},
        agent_types=agents or None,
        run_id=run_id,
        directory=folder,
        tenant_id=call.tenant,
    )
    return cast("Study", call.handle)


def _show_started(call: Call) -> Iterator[str]:
    study: Study = call.answer
    manifest = study.manifest()
    yield f"{strong(study.run_id)}  {manifest.mode}, {counted(len(manifest.agent_types), 'agent type')}"
    yield f"question: {one_line(manifest.question, 300)}"
    yield f"files:    {study.directory}"
    yield from _next_lines(call)


init = Command(
    "memory.research",
    _show_started,
    function=_init,
    on="user call",
    check=_check_question,
    creates=True,
    document=lambda call: _answer(
        call, directory=str(call.answer.directory), manifest=call.answer.manifest().to_wire()
    ),
    about="QUESTION may be `-`: standard input. Question and limits are kept as they are.",
)


def _show_route(call: Call) -> Iterator[str]:
    yield from _perspective_lines(call.answer)
    yield from _next_lines(call)


def _perspective_lines(chosen: Sequence[Perspective]) -> Iterator[str]:
    return show_plain(
        wire(list(chosen)),
        "id track agent_type prompt_contract.max_words prompt_contract.max_sources prompt_contract.tool_budget title",
    )


route = Command(
    "study.route",
    _show_route,
    left_out=("propose",),
    document=lambda call: _answer(call, perspectives=wire(call.answer)),
    options={
        "perspectives": OptionSpec(
            "Perspectives as JSON (a list, or perspectives.json); `-` is stdin.",
            "plan",
            "FILE",
            read=reading.object_given("$.plan", "one list of perspectives"),
        )
    },
    about="Chooses the perspectives from the question, or takes a plan that you or a model made.",
)


# -- prompts and outputs ------------------------------------------------------------------------------


def _prompt(study: Study, perspective_id: Annotated[str | None, OptionSpec(metavar="[PERSPECTIVE]")] = None) -> str:
    if perspective_id is not None:
        return study.prompt(perspective_id).removesuffix("\n")
    found = study.synthesis_input()
    sources = [
        f"- [{each['short']}] {each['url']}{' - ' + one_line(each['title']) if each.get('title') else ''}"
        for each in cast("Sequence[Mapping[str, Any]]", (found.pack.model_extra or {}).get("sources", ()))
    ]
    return "\n".join([found.text, "# Sources\n", *sources])


prompt = Command(
    view=lambda call: [call.answer],
    function=_prompt,
    on="study",
    document=lambda call: _answer(call, perspective_id=call.typed.get("perspective_id"), prompt=call.answer),
    about="The task of a perspective; after a rejected output, with what has to change. Without PERSPECTIVE, all that "
    "the report may be written from: the summaries and the sources they cite.",
)


def _output_given(name: str) -> Any:
    if name.endswith(".json"):
        return reading.object_given("$.output", "one agent result")(name)
    return reading.read_text(name) if name == "-" else Path(name)


def _ingest(call: Call, ask: Callable[..., WaveResult]) -> WaveResult | None:
    reason = call.typed.get("give_up")
    if (reason is None) == ("output" not in call.typed):
        raise InvalidInput(
            "an output or a reason to give up is needed", path="$.output", hint="FILE, or --give-up TEXT"
        )
    if reason is None:
        return ask()
    call.handle.give_up(call.typed["perspective_id"], reason, expected_revision=call.typed.get("expected_revision"))
    return None


def _show_result(call: Call) -> Iterator[str]:
    result: WaveResult | None = call.answer
    if result is None:
        yield f"{call.typed['perspective_id']} given up"
        yield from _next_lines(call)
        return
    fate = coloured("accepted" if result.accepted else "rejected", dict(COLOURS))
    name = strong(result.perspective_id)
    yield f"{name} {fate}, attempt {result.attempt}: {result.words} words, {result.sources} sources"
    for breach in result.breaches:
        yield f"  {breach.kind}: {one_line(breach.message, 400)}"
    for gap in result.gaps:
        yield f"  gap {gap.priority}: {one_line(gap.text)}"
    if result.directive is None:
        yield from _next_lines(call)
        return
    yield "\nfor the agent:\n"
    for line in result.directive.text.splitlines():
        yield f"    {one_line(line, 600)}".rstrip()
    yield f"\nagain:   {_ingest_command(call.handle.status(), call, result.perspective_id)}"
    yield f"or not:  {_command(call, 'ingest', result.perspective_id, '--give-up', 'TEXT')}"


def _ingested_document(call: Call) -> dict[str, Any]:
    if call.answer is None:
        return _answer(call, perspective_id=call.typed["perspective_id"], standing="given_up")
    return _answer(call, result=call.answer.to_wire())


ingest = Command(
    "study.ingest",
    _show_result,
    around=_ingest,
    arguments={"perspective_id": "PERSPECTIVE", "output": "[FILE]"},
    document=_ingested_document,
    holds=lambda result: result is None or result.accepted,
    options={
        "output": OptionSpec(read=_output_given, needed=False),
        "tool_use": OptionSpec(
            "Calls it made, by the contract's names; repeatable.",
            "tool",
            "NAME=N",
            many=True,
            read=reading.counts_given("tool", "search_calls=3"),
        ),
        "sources": OptionSpec(
            "A page it read, as a file; repeatable.",
            "source",
            "URL=FILE",
            many=True,
            read=lambda given: [_page_named(each) for each in given],
        ),
        "change_note": OptionSpec("What was changed since the last attempt; a retry needs one.", metavar="TEXT"),
        "give_up": OptionSpec("Go on without this perspective, and why. It counts as a gap.", "give-up", "TEXT"),
    },
    about="FILE is Markdown, or an agent result in `.json`; `-` is Markdown from stdin. Exits 1 where it breaks its "
    "contract, and prints what to tell the agent.",
)


class _Pivoted(NamedTuple):
    decision: PivotDecision
    perspectives: list[Any]


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
        yield from _perspective_lines(added)
    yield from _next_lines(call)


pivot = Command(
    "study.pivot",
    _show_pivot,
    around=_pivot,
    options={"second_wave": OptionSpec("Overrule what the gaps ask for.", "second-wave/--no-second-wave")},
    document=lambda call: _answer(call, **wire(call.answer)),
    about="After the first wave, by its gaps.",
)


# -- sources ------------------------------------------------------------------------------------------


def _page_named(given: str) -> dict[str, Any]:
    """Read `URL=FILE`: an address may contain an equals sign, so the last one counts."""
    url, _, file = given.rpartition("=")
    if not url or not file:
        raise InvalidInput(
            f"{given!r:.120} is not an address and a file", path="$.source", hint="write --source https://…=page.html"
        )
    return _page_from(url, file, None)


def _page_from(url: str, file: str, title: str | None) -> dict[str, Any]:
    """Read a page from a file of text, Markdown or HTML, by its suffix."""
    from muniment.core.policy import CorpusPolicy
    from muniment.memory._chunking import media_type_of
    from muniment.memory.corpus import read_text_file

    text = read_text_file(Path(file), CorpusPolicy().document_bytes_max, "corpus.document_bytes_max")
    return _page(url, text, title, media_type=media_type_of(file))


def _page(url: str, text: str, title: str | None, **more: str) -> dict[str, Any]:
    return {"url": url, "text": text, **({} if title is None else {"title": title}), **more}


def _pages_in(name: str) -> list[dict[str, Any]]:
    """Read the sources of a JSON lines file, each with url and text."""
    found = reading.read_all(name)
    for number, each in enumerate(found, 1):
        if not isinstance(each, dict):
            raise InvalidInput(
                f"source {number} in {name} is not an object",
                path="$.lines",
                hint='write {"url": "https://…", "text": "…"}',
            )
    if not found:
        raise InvalidInput(f"there is no source in {name}", path="$.lines", hint="one JSON object a line: url and text")
    return found


class _Supplied(NamedTuple):
    given: list[dict[str, Any]]
    cids: list[str]


def _supply(
    study: Study,
    url: Annotated[str | None, OptionSpec(metavar="[URL]")] = None,
    file: Annotated[str | None, OptionSpec(metavar="[FILE]")] = None,
    *,
    snippet: Annotated[
        str | None, OptionSpec("A passage instead of a page; `-` is standard input.", metavar="TEXT")
    ] = None,
    title: Annotated[str | None, OptionSpec("Its title (default: the page's own).", metavar="TEXT")] = None,
    lines: Annotated[
        str | None, OptionSpec("Many at once: JSON lines with url and text; `-` is standard input.", metavar="FILE")
    ] = None,
) -> _Supplied:
    match (url, file, snippet, lines):
        case (None, None, None, str() as name) if title is None:
            given = _pages_in(name)
        case (str() as address, None, str() as text, None):
            given = [_page(address, reading.text_given(text), title, kind="snippet")]
        case (str() as address, str() as name, None, None):
            given = [_page_from(address, name, title)]
        case _:
            raise InvalidInput(
                "a source is an address and its text",
                path="$.source",
                hint="URL FILE, or URL --snippet TEXT, or --lines FILE",
            )
    return _Supplied(given, study.supply(given))


def _show_supplied(call: Call) -> Iterator[str]:
    given, cids = call.answer
    for cid, each in zip(cids, {each["url"]: each for each in given}, strict=False):
        yield f"{cid[:12]}  {one_line(each)}"
    yield f"kept: {counted(len(cids), 'source')}"
    yield from _next_lines(call)


source = Command(
    "study.supply",
    _show_supplied,
    function=_supply,
    document=lambda call: _answer(call, cids=call.answer.cids),
    about="The text read at URL: the page in FILE (text, Markdown, HTML), or a snippet. Nothing is fetched. A "
    "citation is valid once its page or a snippet of it is here, and claims are checked against that text.",
)


# -- the pack -----------------------------------------------------------------------------------------


class _Packed(NamedTuple):
    citations: list[Citation]
    looked: list[SourceCheck]
    claims: list[CheckedClaim]
    pack: SummaryPack


def _pack(call: Call, ask: Callable[[], SummaryPack]) -> _Packed:
    study: Study = call.handle
    looked: list[SourceCheck] = []
    if call.typed.get("check_urls"):
        from muniment.research.url_check import UrlChecker

        looked = study.look(UrlChecker(allow_private=bool(call.typed.get("allow_private"))))
    citations = study.citations()
    made = ask()
    return _Packed(list(citations), looked, list(study.claims()), made)


def _is_flagged(claim: CheckedClaim) -> bool:
    """True if the claim kept no citation, so that it is left out of the pack."""
    return not claim.citation_cids


def _gate(call: Call, name: str) -> GateResult:
    found: GateResult = next(gate for gate in call.handle.gates().gates if gate.gate == name)
    return found


def _show_pack(call: Call) -> Iterator[str]:
    done: _Packed = call.answer
    yield from show_plain(wire(done.citations), "status cid found_by url", "citations")
    manifest = call.handle.manifest()
    sizes = _summary_bytes(manifest)
    flagged = Counter(each.perspective_id for each in done.claims if _is_flagged(each))
    rows = [
        {
            "perspective": entry.perspective_id,
            "summary_bytes": sizes.get(entry.perspective_id, 0),
            "key_claims": len(entry.key_claims),
            "flagged": flagged[entry.perspective_id],
            "file": entry.summary_md,
        }
        for entry in done.pack.summaries
    ]
    yield ""
    yield from show_plain(rows)
    for claim in filter(_is_flagged, done.claims):
        yield f"left out: {claim.perspective_id}  {claim.support}  {one_line(claim.claim, 300)}"
        yield f"    {one_line(claim.reason, 300)}"
    total, most = sum(sizes.values()), manifest.limits.total_bytes_max
    tokens = done.pack.total_estimated_tokens
    yield f"in all: {total:,} of {most:,} bytes, about {tokens:,} tokens with the pack"
    yield from _gate_lines(_gate(call, "C"))
    yield from _gate_lines(_gate(call, "D"))
    yield from _next_lines(call)


def _packed_document(call: Call) -> dict[str, Any]:
    done: _Packed = call.answer
    flagged = Counter(each.perspective_id for each in done.claims if _is_flagged(each))
    return _answer(call, **wire(done), gate=_gate(call, "D").to_wire(), flagged=dict(flagged))


pack = Command(
    "study.pack",
    _show_pack,
    around=_pack,
    options={
        "check_urls": OptionSpec("Look at addresses that have no stored text, over the network.", flag=True),
        "allow_private": OptionSpec("With --check-urls: also addresses of this machine and network.", flag=True),
    },
    document=_packed_document,
    about="Settles the status of every source (valid, paywalled, blocked, invalid or unchecked), checks every claim "
    "against its sources, and writes the summaries and the pack within their bytes. Claims that no source supports are "
    "left out and listed. Nothing is fetched unless you ask for it. May be repeated as sources come in.",
)


# -- the report ---------------------------------------------------------------------------------------


class _Checked(NamedTuple):
    text: str
    check: DraftCheck


def _check(call: Call, ask: Callable[..., DraftCheck]) -> _Checked:
    text = reading.read_text(call.typed["draft"])
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
    options={"sections": OptionSpec("A section it must have (default: the policy's); repeatable.", "section", "NAME")},
    document=lambda call: _answer(call, check=call.answer.check.to_wire()),
    holds=lambda answer: answer.check.passed,
    about="DRAFT is Markdown; `-` is standard input. Exits 1 with findings: figures without a citation, citations "
    "that are unknown, not valid or do not support the sentence, sections that are missing. Each check is a review "
    "round, and a run has a limit of them.",
)


# -- status -------------------------------------------------------------------------------------------


class _Status(NamedTuple):
    found: StudyStatus
    written: list[str]


def _status(call: Call, ask: Callable[[], StudyStatus]) -> _Status:
    written = call.handle.resume() if call.typed.get("write") else []
    return _Status(ask(), written)


def _show_status(call: Call) -> Iterator[str]:
    found, written = call.answer
    manifest: ResearchManifest = found.manifest
    stages = " → ".join(strong(f"[{stage}]") if stage == manifest.stage else stage for stage in STAGES)
    yield f"{strong(manifest.run_id)}  {manifest.mode}, revision {manifest.revision}, since {when(manifest.created_at)}"
    yield one_line(manifest.question, 300)
    yield found.directory
    yield f"\n{stages}\n"
    results = {result.perspective_id: result for result in manifest.results}
    sizes = _summary_bytes(manifest)
    rows = [
        {
            "id": each.id,
            "track": each.track,
            "agent": each.agent_type,
            "standing": manifest.standings.get(each.id, "waiting"),
            "words": results[each.id].words if each.id in results else None,
            "sources": results[each.id].sources if each.id in results else None,
            "summary_bytes": sizes.get(each.id),
            "title": each.title,
        }
        for each in found.perspectives
    ]
    if rows:
        yield from show_plain(rows, "id track agent standing words sources summary_bytes title")
        yield ""
    for gate in found.gates.gates:
        yield from _gate_lines(gate, is_open=gate.gate == "B" and "waiting" in manifest.standings.values())
    if found.citations:
        yield f"\ncitations: {', '.join(f'{count} {status}' for status, count in found.citations.items())}"
    if sizes:
        total, most = sum(sizes.values()), manifest.limits.total_bytes_max
        yield f"summaries: {block_bar(total, most)} {total:,} of {most:,} bytes in all"
    if written:
        yield f"written: {', '.join(written)}"
    if found.edited:
        yield style(f"edited, not what the store holds: {', '.join(found.edited)}", fg="red")
    yield ""
    yield from _next_lines(call)


def _status_document(call: Call) -> dict[str, Any]:
    found: StudyStatus = call.answer.found
    return _answer(
        call,
        directory=found.directory,
        manifest=found.manifest.to_wire(),
        perspectives=wire(found.perspectives),
        gates=found.gates.to_wire(),
        citations=dict(found.citations),
        summary_bytes=_summary_bytes(found.manifest),
        edited=list(found.edited),
        written=call.answer.written,
        next=found.next,
        commands=_next_commands(found, call),
    )


status = Command(
    "study.status",
    _show_status,
    around=_status,
    document=_status_document,
    options={
        "write": OptionSpec("Write the run's files again from the store, over edits and losses.", flag=True),
    },
    about="Stages, perspectives, gates, citations, bytes, edited files.",
)


def _answer(call: Call, **fields: Any) -> dict[str, Any]:
    """The JSON document of a command on a run."""
    manifest = call.handle.manifest()
    return {"run_id": manifest.run_id, "revision": manifest.revision, "stage": manifest.stage, **fields}


def _summary_bytes(manifest: ResearchManifest) -> dict[str, int]:
    """The size of each perspective's summary."""
    ends = ("summaries/", ".summary.md")
    sizes = {artifact.path: artifact.bytes for artifact in manifest.artifacts if artifact.path.endswith(ends[1])}
    return {path.removeprefix(ends[0]).removesuffix(ends[1]): size for path, size in sizes.items()}


def _gate_lines(gate: GateResult, *, is_open: bool = False) -> Iterator[str]:
    """A gate with its measures, and each reason why it fails; an open gate has not been measured yet."""
    sign, colour = _SIGNS["open" if is_open else gate.status]
    measures = [f"{name.replace('_', ' ')} {value}" for name, value in gate.metrics.items()]
    yield f"{style(sign, fg=colour)} {gate.gate} {_GATES[gate.gate]:<9} {', '.join(measures) or 'not run yet'}"
    for reason in () if is_open else gate.reasons:
        yield f"              {style(one_line(reason, 600), fg='red')}"


# -- next commands ------------------------------------------------------------------------------------


def _next_lines(call: Call) -> Iterator[str]:
    found: StudyStatus = call.handle.status()
    following = "write the files again, over what was edited or lost" if found.edited else one_line(found.next, 600)
    yield f"next: {following}"
    for line in _next_commands(found, call):
        yield f"      {line}"


def _command(call: Call, name: str, *rest: str) -> str:
    """A command on this run, ready to be typed. Words in capitals are for the reader to fill in."""
    return call.spell_command("research", name, call.handle.run_id, *rest)


def _next_commands(found: StudyStatus, call: Call) -> list[str]:
    """The commands that can follow."""
    manifest = found.manifest
    if found.edited:
        return [_command(call, "status", "--write")]
    undone = next((name for name, each in manifest.standings.items() if each in ("waiting", "rejected")), None)
    add_source = _command(call, "source", "URL", "FILE")
    match manifest.stage:
        case "init":
            return [_command(call, "route")]
        case "wave1" | "wave2" if undone is not None:
            return [_command(call, "prompt", undone), _ingest_command(found, call, undone)]
        case "wave1" if manifest.pivot is None:
            return [_command(call, "pivot")]
        case "wave1" | "wave2" | "summaries":
            return [add_source, _command(call, "pack")]
        case "citations":
            return [add_source, _command(call, "pack"), _command(call, "pack", "--check-urls")]
        case "synthesis":
            return [_command(call, "prompt"), _command(call, "check", "DRAFT")]
        case _:
            return []


def _ingest_command(found: StudyStatus, call: Call, perspective_id: str) -> str:
    """The command that ingests an output, with the counts that the contract requires and the note of a retry."""
    budget = next(each.prompt_contract.tool_budget for each in found.perspectives if each.id == perspective_id)
    tools = [word for name in sorted(budget) for word in ("--tool", f"{name}=N")]
    is_retry = any(result.perspective_id == perspective_id for result in found.manifest.results)
    note = ["--change-note", "TEXT"] if is_retry else []
    return _command(call, "ingest", perspective_id, "FILE", *tools, *note)
