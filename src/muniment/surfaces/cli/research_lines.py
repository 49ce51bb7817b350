"""What the commands of `research …` share: stages, perspectives, gates and bytes as lines, and what comes next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from muniment.research.records import CITABLE, STAGES
from muniment.surfaces.cli.terminal import Cell, block_bar, one_line, strong, style, table, when

if TYPE_CHECKING:
    from muniment.contracts.research import Perspective, SummaryPack
    from muniment.handles.study import StudyStatus
    from muniment.research.records import GateResult, ResearchManifest
    from muniment.surfaces.cli.calling import Call

__all__ = [
    "answered",
    "command",
    "gate_lines",
    "ingest_line",
    "next_lines",
    "next_steps",
    "perspective_lines",
    "status_lines",
    "summary_bytes",
    "summary_lines",
]

_NAMED_MAX = 5
_TITLES = {"A": "plan", "B": "waves", "C": "citations", "D": "pack", "E": "report"}
_SIGNS = {"pass": ("✓", "green"), "fail": ("✗", "red"), "not_run": ("·", "bright_black"), "open": ("…", "yellow")}
_STANDINGS = {"accepted": "green", "rejected": "red", "given_up": "yellow", "waiting": "bright_black"}


def command(call: Call, name: str, *rest: str) -> str:
    """A command on this run, to be typed as it stands. Words in capitals are for the reader to fill in."""
    return call.spelled("research", name, call.handle.run_id, *rest)


def answered(call: Call, **fields: Any) -> dict[str, Any]:
    """The one JSON document of a command."""
    manifest = call.handle.manifest()
    return {"run_id": manifest.run_id, "revision": manifest.revision, "stage": manifest.stage, **fields}


# -- the whole ----------------------------------------------------------------------------------------


def status_lines(call: Call) -> Iterator[str]:
    """All that is known of a run, on a page."""
    found: StudyStatus = call.answer
    manifest = found.manifest
    head = f"{manifest.mode}, revision {manifest.revision}, since {when(manifest.created_at)}"
    yield f"{strong(manifest.run_id)}  {head}"
    yield one_line(manifest.question, 300)
    yield found.directory
    yield f"\n{_stage_line(manifest)}\n"
    if found.perspectives:
        yield from _standing_lines(found.perspectives, manifest)
        yield ""
    for gate in found.gates.gates:
        is_open = gate.gate == "B" and "waiting" in manifest.standings.values()
        yield from gate_lines(gate, is_open=is_open)
    if found.citations:
        yield f"\ncitations   {_by_status(found.citations)}"
    sizes = summary_bytes(manifest)
    if sizes:
        total, most = sum(sizes.values()), manifest.limits.total_bytes_max
        yield f"summaries   {block_bar(total, most)} {total:,} of {most:,} bytes in all"
    if found.edited:
        yield style(f"edited      not what the store holds: {_listing(found.edited)}", fg="red")
    yield f"\nnext        {_next_words(found)}"
    for line in next_steps(found, call):
        yield f"            {line}"


def _listing(paths: Sequence[str]) -> str:
    """The first of some paths, and how many more there are."""
    more = len(paths) - _NAMED_MAX
    return ", ".join(paths[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def _stage_line(manifest: ResearchManifest) -> str:
    """The stages of a run: where it is, what it went through, what is ahead. A second wave that is not taken is left
    out.
    """
    here = STAGES.index(manifest.stage)
    been = {move.stage for move in manifest.history}
    parts: list[str] = []
    for at, stage in enumerate(STAGES):
        if at == here and stage != "done":
            parts.append(strong(f"[{stage}]"))
        elif at <= here and stage in been:
            parts.append(style(f"{stage} ✓", fg="green"))
        elif at > here and not (stage == "wave2" and manifest.pivot is not None):
            parts.append(style(stage, fg="bright_black"))
    return " → ".join(parts)


def _by_status(counts: Mapping[str, int]) -> str:
    parts = [
        style(f"{count} {status}", fg="green" if status in CITABLE else "yellow") for status, count in counts.items()
    ]
    return ", ".join(parts)


# -- perspectives -------------------------------------------------------------------------------------


def perspective_lines(chosen: Sequence[Perspective]) -> Iterator[str]:
    """Who looks at what, within which bounds."""
    rows: list[list[Cell]] = []
    for each in chosen:
        contract = each.prompt_contract
        tools = ", ".join(f"{name} ≤ {calls}" for name, calls in sorted(contract.tool_budget.items()))
        bounds = (f"≤ {contract.max_words}", f"≤ {contract.max_sources}", tools)
        rows.append([each.id, each.track, each.agent_type, *bounds, each.title])
    return table(("", "track", "agent", "words", "sources", "tools", "perspective"), rows)


def _standing_lines(perspectives: Sequence[Perspective], manifest: ResearchManifest) -> Iterator[str]:
    results = {result.perspective_id: result for result in manifest.results}
    sizes = summary_bytes(manifest)
    heads = ("", "track", "agent", "standing", "words", "sources", "summary", "perspective")
    rows: list[list[Cell]] = []
    for each in perspectives:
        contract, result = each.prompt_contract, results.get(each.id)
        standing = manifest.standings.get(each.id, "waiting")
        tried = f" ({result.attempt})" if result is not None and result.attempt > 1 else ""
        words = "" if result is None else f"{result.words} of {contract.max_words}"
        sources = "" if result is None else f"{result.sources} of {contract.max_sources}"
        stands = (f"{standing}{tried}", _STANDINGS[standing])
        cells: list[Cell] = [each.id, each.track, each.agent_type, stands, words, sources]
        size = sizes.get(each.id)
        size_text = "" if size is None else _against(size, manifest.limits.summary_bytes_max)
        rows.append([*cells, *([size_text] if sizes else []), each.title])
    return table([name for name in heads if sizes or name != "summary"], rows)


def summary_bytes(manifest: ResearchManifest) -> dict[str, int]:
    """Perspective → bytes of its summary."""
    ends = ("summaries/", ".summary.md")
    sizes = {artifact.path: artifact.bytes for artifact in manifest.artifacts if artifact.path.endswith(ends[1])}
    return {path.removeprefix(ends[0]).removesuffix(ends[1]): size for path, size in sizes.items()}


def summary_lines(manifest: ResearchManifest, pack: SummaryPack, flagged: Mapping[str, int]) -> Iterator[str]:
    """What became of each perspective: bytes against their limit, claims in, claims out."""
    sizes = summary_bytes(manifest)
    rows: list[list[Cell]] = []
    for entry in pack.summaries:
        size = _against(sizes.get(entry.perspective_id, 0), manifest.limits.summary_bytes_max)
        counts = (str(len(entry.key_claims)), str(flagged.get(entry.perspective_id, 0)))
        rows.append([entry.perspective_id, size, *counts, entry.summary_md])
    yield from table(("", "summary", "key claims", "flagged", "file"), rows)
    total, most = sum(sizes.values()), manifest.limits.total_bytes_max
    yield f"in all: {total:,} of {most:,} bytes, about {pack.total_estimated_tokens:,} tokens with the pack"


# -- gates --------------------------------------------------------------------------------------------


def gate_lines(gate: GateResult, *, is_open: bool = False) -> Iterator[str]:
    """A gate with what it measured, and each reason why it fails; one that is open has not had its turn."""
    sign, colour = _SIGNS["open" if is_open else gate.status]
    measures = _MEASURES[gate.gate](gate.metrics) if gate.status != "not_run" else "not run yet"
    yield f"{style(sign, fg=colour)} {gate.gate} {_TITLES[gate.gate]:<9} {measures}"
    for reason in () if is_open else gate.reasons:
        yield f"              {style(one_line(reason, 600), fg='red')}"


def _plan(metrics: Mapping[str, Any]) -> str:
    tracks = ", ".join(f"{metrics[name]} {name}" for name in ("standard", "independent", "contrarian"))
    return f"{metrics['perspectives']} perspectives: {tracks}; {metrics['agent_types']} agent types"


def _waves(metrics: Mapping[str, Any]) -> str:
    names = ("waiting", "rejected", "given_up")
    others = [f"{metrics[name]} {name.replace('_', ' ')}" for name in names if metrics[name]]
    accepted = f"{metrics['accepted']} of {metrics['perspectives']} accepted"
    return f"{block_bar(metrics['accepted'], metrics['perspectives'])} {', '.join([accepted, *others])}"


def _citations(metrics: Mapping[str, Any]) -> str:
    names = ("blocked", "invalid", "unchecked")
    others = [f"{metrics[name]} {name}" for name in names if metrics[name]]
    valid = f"{metrics['validated']} of {metrics['citations']} valid or paywalled"
    return f"{block_bar(metrics['validated'], metrics['citations'])} {', '.join([valid, *others])}"


def _pack(metrics: Mapping[str, Any]) -> str:
    summarised = f"{metrics['summarised']} of {metrics['perspectives']} summarised"
    largest = f"largest {metrics['bytes_largest']:,} of {metrics['bytes_largest_max']:,} bytes"
    total = f"in all {metrics['bytes_total']:,} of {metrics['bytes_total_max']:,}"
    return f"{block_bar(metrics['summarised'], metrics['perspectives'])} {summarised}; {largest}, {total}"


def _report(metrics: Mapping[str, Any]) -> str:
    cited = f"{metrics.get('figures_cited', 0)} of {metrics.get('figures', 0)} figures cited"
    shown = block_bar(metrics.get("figures_cited", 0), metrics.get("figures", 0))
    return f"{shown} {cited}; findings: {metrics['findings']}"


_MEASURES = {"A": _plan, "B": _waves, "C": _citations, "D": _pack, "E": _report}


# -- what comes next ----------------------------------------------------------------------------------


def next_steps(found: StudyStatus, call: Call) -> list[str]:
    """The commands that lead on, to be typed as they stand."""
    manifest = found.manifest
    if found.edited:
        return [command(call, "resume")]
    standings = manifest.standings
    undone = next((name for name, standing in standings.items() if standing in ("waiting", "rejected")), None)
    match manifest.stage:
        case "init":
            return [command(call, "route")]
        case "wave1" | "wave2" if undone is not None:
            return [command(call, "prompt", undone), ingest_line(found, call, undone)]
        case "wave1" if manifest.pivot is None:
            return [command(call, "pivot")]
        case "citations" if not any(gate.gate == "C" and gate.status == "fail" for gate in found.gates.gates):
            return [command(call, "pack")]
        case "citations":
            lines = ("source", "URL", "FILE"), ("citations",), ("citations", "--check-urls")
            return [command(call, *line) for line in lines]
        case "wave1" | "wave2":
            return [command(call, "source", "URL", "FILE"), command(call, "citations")]
        case "summaries":
            return [command(call, "gates"), command(call, "pack")]
        case "synthesis":
            return [command(call, "synthesis"), command(call, "check", "DRAFT")]
        case _:
            return []


def _next_words(found: StudyStatus) -> str:
    """What comes next, without the reasons of a gate, which stand beside it."""
    if found.edited:
        return "write the files anew, over what was edited or lost"
    said = found.next
    for gate in found.gates.gates:
        if gate.reasons:
            said = said.removesuffix("; ".join(gate.reasons)).rstrip(": ")
    return one_line(said, 600)


def ingest_line(found: StudyStatus, call: Call, perspective_id: str) -> str:
    """The command that ingests an output, with the counts that the contract asks for and the change note that a retry
    needs.
    """
    budget = next(each.prompt_contract.tool_budget for each in found.perspectives if each.id == perspective_id)
    tools = [word for name in sorted(budget) for word in ("--tool", f"{name}=N")]
    is_retry = any(result.perspective_id == perspective_id for result in found.manifest.results)
    note = ["--change-note", "TEXT"] if is_retry else []
    return command(call, "ingest", perspective_id, "FILE", *tools, *note)


def next_lines(call: Call) -> Iterator[str]:
    """What comes next, in words and as commands."""
    found: StudyStatus = call.handle.status()
    yield f"next: {_next_words(found)}"
    for line in next_steps(found, call):
        yield f"      {line}"


def _against(size: int, most: int) -> str:
    return f"{block_bar(size, most)} {size:,}"
