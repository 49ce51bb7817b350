"""`compose`, `replay`, `diff`, `explain`, `why` and `packet …`: packets composed, compared and explained."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from muniment.errors import InvalidInput
from muniment.surfaces.cli import _reading as reading
from muniment.surfaces.cli._command import Call, Command, OptionSpec
from muniment.surfaces.cli._views import source_line
from muniment.surfaces.cli.terminal import echo, one_line, parts_line, strong, when

if TYPE_CHECKING:
    from muniment.contracts.packet import ConflictNote
    from muniment.packets.builds import Build
    from muniment.packets.compare import BuildDiff, LinePair, PlacedLine, Preview
    from muniment.packets.why import Telling
    from muniment.store.ledger import LedgerEntry
    from muniment.surfaces.cli.explained import Candidate, Left, Taken

__all__ = ["compose", "diff", "explain", "list_", "preview", "replay", "why"]

_BAR = 24
_SHOWN_MAX = 8
"""The number of omissions for one reason that are shown."""
_SIGNS = {"added": "+", "removed": "-", "moved": ">", "reworded": "~", "changed": "~"}
_LACKING: Mapping[str, str] = {
    "no_match": "it has nothing of what was asked",
    "no_query": "nothing was asked that could bring it up",
    "unread": "there is too much for its labels to be read",
    "not_indexed": "it was loaded in bulk and is not in the index yet",
    "not_gathered": "it was not among what was looked at",
    "later": "it came later",
}
"""Reasons for a line appearing on only one page, besides those for leaving out a candidate."""
_CHARS = 110
_RULE_ENDS = re.compile(r",(?=[^_])")
"""Rules are joined by commas; a blank within one was written as `_`."""


# -- a build in one of three forms --------------------------------------------------------------------

_FORMS = {
    "as_text": OptionSpec("Print the prompt text (the default).", "text", flag=True),
    "as_packet": OptionSpec("Print the packet: its canonical bytes.", "packet", flag=True),
}


def _check_forms(call: Call) -> None:
    if bool(call.typed.get("as_text")) + bool(call.typed.get("as_packet")) + call.as_json > 1:
        raise InvalidInput("--text, --packet and --json exclude each other", path="$.json", hint="give one of them")


def _show_build(call: Call) -> Iterator[str]:
    """The text or packet alone on stdout, so that it can be piped; the build's id on stderr."""
    build: Build = call.answer
    if call.typed.get("as_packet"):
        echo(build.packet_bytes.decode(), nl=False)
    elif build.text:
        yield build.text.removesuffix("\n")
    note = "; memory is empty" if not build.text else "" if build.found else "; memory holds no answer"
    echo(f"build {build.id}: {build.tokens} of {build.request.budget.max_tokens} tokens{note}", err=True)


def _build_document(call: Call) -> dict[str, Any]:
    build: Build = call.answer
    return {
        "build_id": build.id,
        "tokens": build.tokens,
        "found": build.found,
        "text": build.text,
        "packet": build.packet.to_wire(),
    }


compose = Command(
    "run.compose",
    _show_build,
    on="composing",
    check=_check_forms,
    arguments={"purpose": "PURPOSE"},
    document=_build_document,
    options={
        **_FORMS,
        "query": OptionSpec("What it is about; `-` is standard input.", metavar="TEXT"),
        "cues": OptionSpec(
            'Explicit cues, such as {"tags": ["trip"], "keywords": ["visa"]}.',
            metavar="JSON",
            read=reading.json_given("cues", 'write an object, such as {"tags": ["trip"], "keywords": ["visa"]}'),
        ),
        "max_tokens": OptionSpec("The whole budget (default: the policy's).", metavar="N", type=click.INT),
        "per_section": OptionSpec(
            "A section's share of it; may be repeated.",
            metavar="NAME=N",
            many=True,
            read=reading.counts_given("per_section", "facts=200", what="a section and its tokens"),
        ),
        "policy": OptionSpec("Another policy for this one: TOML, or JSON.", metavar="FILE", read=reading.policy_given),
        "idempotency_key": OptionSpec(
            "The same request under the same key is answered with the same build.", metavar="KEY"
        ),
    },
    about="PURPOSE is planner, tool or responder. Prints the text for the prompt. The build is kept: `replay`, "
    "`explain` and `diff` take its id.",
)


replay = Command(
    "memory.replay",
    _show_build,
    arguments={"build_id": "ID"},
    check=_check_forms,
    options=_FORMS,
    document=_build_document,
    about="Whatever was written since: the same bytes, or exit 1 and the reason. A build that held what was since "
    "forgotten is refused, and the refusal names the receipt.",
)


# -- differences --------------------------------------------------------------------------------------


def _show_diff(call: Call) -> Iterator[str]:
    return _diff_lines(call.answer, _candidates(call))


def _candidates(call: Call) -> dict[str, Candidate]:
    """The candidates of the named builds."""
    from muniment.surfaces.cli.explained import candidates

    known: dict[str, Candidate] = {}
    for name in ("a", "b", "build_id"):
        if name in call.typed:
            known |= candidates(call.memory.replay(call.typed[name], tenant_id=call.tenant))
    return known


def _diff_lines(found: BuildDiff, known: Mapping[str, Candidate]) -> Iterator[str]:
    """The changes of the rendered text, each with its reason, then the packet's changes that the text does not show."""
    from muniment.surfaces.cli.explained import REASONS

    budgets = f" of {found.tokens_max_a} → {found.tokens_max_b}" if found.tokens_max_a != found.tokens_max_b else ""
    yield f"{found.a} → {found.b}: {found.tokens_a} → {found.tokens_b} tokens{budgets}"
    if found.request:
        yield f"asked differently: {', '.join(found.request)}"
    for each in found.sections:
        if (each.used_a, each.cap_a) != (each.used_b, each.cap_b):
            yield f"  {each.section:<18}  {each.used_a} of {each.cap_a} → {each.used_b} of {each.cap_b} tokens"
    shown = set()
    for pair in found.lines:
        if pair.item is not None:
            shown.add(pair.item)
            yield from _pair_lines(pair, {**REASONS, **_LACKING})
    for change in found.changes:
        if change.item not in shown and not change.item.startswith(("rule:", "state:", "summary")):
            candidate = known.get(change.item)
            text = f"  {one_line(candidate.text, _CHARS)}" if candidate is not None else ""
            yield f"{_SIGNS[change.what]} {change.item}{text}"
            _, mark, score = change.why.rpartition(" score=")
            yield f"      {f'{mark.strip()}{score}' if mark else REASONS.get(change.why, change.why)}"
    if found.is_same:
        yield "the same bytes"
    elif not found.changes and all(pair.what == "same" for pair in found.lines):
        yield "the same items"


def _pair_lines(pair: LinePair, reasons: Mapping[str, str]) -> Iterator[str]:
    """A line that is on only one page, or both versions of a reworded line."""
    if pair.what == "same":
        return
    sign = _SIGNS[pair.what]
    if pair.what == "reworded" and pair.a is not None:
        yield f"{sign} {_line(pair.a)}"
        sign = " "
    shown = pair.b or pair.a
    if shown is not None:
        yield f"{sign} {_line(shown)}"
    if pair.is_moved and pair.a is not None and pair.b is not None:
        there = f" of {pair.a.block}" if pair.a.block != pair.b.block else ""
        yield f"      moved from line {pair.a.number}{there}"
    if pair.reason is not None:
        before = "before: " if pair.what == "added" else ""
        why = reasons.get(pair.reason, pair.reason)
        yield f"      {before}{why}{f' ({pair.by})' if pair.by else ''}"
    if pair.why is not None:
        yield f"      {_RULE_ENDS.sub(', ', pair.why).replace('_', ' ')}"


def _line(line: PlacedLine) -> str:
    return f"{line.number:>3} {line.block:<12} {one_line(line.text, _CHARS)}"


_BASES = {
    "then": "composed from the store as the build saw it",
    "candidates": "composed from the candidates that the build kept: the store has moved on",
    "now": "composed from the store as it is now",
}


def _show_preview(call: Call) -> Iterator[str]:
    found: Preview = call.answer
    if call.typed.get("as_text"):
        yield found.text.removesuffix("\n")
        echo(_BASES[found.basis], err=True)
        return
    yield _BASES[found.basis]
    yield from _diff_lines(found.diff, _candidates(call))


diff = Command("memory.diff", _show_diff, arguments={"a": "A", "b": "B"})
preview = Command(
    "memory.preview",
    _show_preview,
    arguments={"build_id": "BUILD"},
    options={
        "as_text": OptionSpec("Print the text that it would be.", "text", flag=True),
        "purpose": OptionSpec("Another purpose."),
        "query": OptionSpec("Another question.", metavar="TEXT"),
        "max_tokens": OptionSpec("Another budget.", metavar="N", type=click.INT),
        "per_section": OptionSpec(
            "A section's limit, 0 to leave it out; may be repeated.",
            metavar="NAME=N",
            many=True,
            read=reading.counts_given("per_section", "facts=200", what="a section and its tokens"),
        ),
        "window_turns": OptionSpec("How many of the last turns are kept word for word.", metavar="N", type=click.INT),
        "policy": OptionSpec("Another policy: TOML, or JSON.", metavar="FILE", read=reading.policy_given),
        "basis": OptionSpec("Compose from the store as the build saw it, or as it is now."),
    },
    about="Nothing is written. Shows what differs from the build, and what it was composed from.",
)


# -- why ----------------------------------------------------------------------------------------------


def _show_uses(call: Call) -> Iterator[str]:
    for telling in call.answer:
        yield from _use_lines(call, telling)
    if not call.answer:
        yield "no kept build contains this"


def _use_lines(call: Call, telling: Telling) -> Iterator[str]:
    asked = f" asked {one_line(telling.query, 80)!r}" if telling.query else ""
    yield f"{when(telling.at)}  {telling.build_id}  {telling.purpose}{asked}, policy {telling.policy_id}"
    if telling.sentence is not None:
        yield f"    answered: {one_line(telling.sentence)}  ({telling.answer_id})"
    for line in telling.line.splitlines():
        yield f"    given: {one_line(line)}"
    if telling.unknown_marks:
        yield f"    marks that name nothing it was given: {' '.join(telling.unknown_marks)}"
    for event_id in telling.evidence_ids:
        trust = call.memory.ledger.get(event_id, tenant_id=call.tenant).trust
        yield f"    from: {source_line(call, event_id)}  (trust {trust})"
    if not telling.evidence_ids and telling.sentence is not None:
        yield "    from: nothing; the sentence cites no evidence"
    elif not telling.evidence_ids:
        yield f"    from: no event; `muniment explain {telling.build_id}` says what the build was made of"


why = Command(
    "memory.why",
    _show_uses,
    arguments={"text": "TEXT"},
    noun="tellings",
    around=lambda call, ask: ask(user_id=call.settings.user or None),
    options={
        "user_id": OptionSpec("Only builds for this user (default: the setting `user`, else all)."),
        "looked_max": OptionSpec("How many of the newest builds and answers are looked through.", metavar="N"),
    },
    about="Newest first. TEXT may be the id of an answer, or `-`: standard input.",
)


# -- lists --------------------------------------------------------------------------------------------

list_ = Command(
    "memory.builds",
    columns="build_id created_at purpose user_id query",
    noun="builds",
    options={"user_id": OptionSpec("Builds for one user (default: for all).")},
)


# -- explain ------------------------------------------------------------------------------------------


def _explain(call: Call) -> Iterator[str]:
    from muniment.surfaces.cli.explained import left_out, taken

    build: Build = call.answer
    meta, report = build.packet.meta, build.packet.budget_report
    yield f"{strong(build.id)}  {meta.purpose} for {meta.scope.user_id}, {when(meta.generated_at)}"
    if build.request.query:
        yield f"asked: {one_line(build.request.query)}"
    yield f"{report.used_tokens_est} of {report.max_tokens} tokens\n"
    yield from _rule_lines(build)
    yield from _section_lines(build, taken(build))
    yield from _left_lines(left_out(build))
    yield from _rest_lines(build)
    yield from _titled("answers", map(_answered, call.memory.ledger.answers(build.id, tenant_id=call.tenant)))


def _rule_lines(build: Build) -> Iterator[str]:
    """The rules of the run: they precede the packet and use its budget."""
    rules = build.rules
    if rules is None:
        return
    yield f"{strong('rules')}: {f'left out, {rules.omitted}' if rules.omitted else f'{rules.tokens} tokens'}"
    yield from (f"  {id_}" for id_ in rules.rule_ids)
    yield from (f"  + {one_line(line.removeprefix('- '), 110)}" for line in rules.text.splitlines()[1:] if line)
    yield ""


def _answered(entry: LedgerEntry) -> str:
    """The citations of one answer to the build, in a line."""
    cited = entry.cited
    named = len(cited.evidence_ids) if cited else 0
    unknown = f", names nothing by {' '.join(cited.unknown_marks)}" if cited and cited.unknown_marks else ""
    return f"{entry.id}  cites {named} of the evidence{unknown}: {entry.content or ''}"


def _section_lines(build: Build, chosen: list[Taken]) -> Iterator[str]:
    from muniment.surfaces.cli.explained import SECTION_OF

    caps = build.packet.meta.budget.per_section.to_wire()
    for section, used in build.packet.budget_report.section_usage.items():
        if section not in caps:
            yield f"{strong(section)}: {used} tokens for headings and marks"
            continue
        yield f"{strong(f'{section:<18}')}  {_bar(used, caps[section])}  {used:>5} of {caps[section]:>5}"
        for each in chosen:
            if SECTION_OF[each.candidate.kind] == section:
                yield from _taken_lines(each)


def _bar(used: int, cap: int) -> str:
    """A budget bar, rounded up so that any use shows."""
    full = min(_BAR, -(-used * _BAR // cap)) if cap else 0
    return "█" * full + "░" * (_BAR - full)


def _taken_lines(each: Taken) -> Iterator[str]:
    marks = " ".join(each.marks[:4])
    yield f"  + {_said(each.candidate)}{f'  {marks}' if marks else ''}"
    rank = parts_line(each.candidate.parts or {})
    yield f"      {each.rules} · score {each.score:g}{f' · {rank}' if rank else ''}"


def _said(candidate: Candidate) -> str:
    day = f"{when(candidate.ts)[:10]} " if candidate.ts and candidate.kind not in ("fact", "procedure") else ""
    who = f"{candidate.who}: " if candidate.who else ""
    return f"{candidate.kind}  {day}{who}{one_line(candidate.text, 110)}"


def _left_lines(left: list[Left]) -> Iterator[str]:
    from muniment.surfaces.cli.explained import REASONS

    by_reason: dict[str, list[Left]] = {}
    for each in left:
        by_reason.setdefault(each.reason, []).append(each)
    yield ""
    yield strong(f"left out: {len(left)}") if left else "nothing was left out"
    for reason, group in sorted(by_reason.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        yield f"  {reason} ({len(group)}): {REASONS.get(reason, 'see the packet')}"
        for each in group[:_SHOWN_MAX]:
            detail = ", ".join(f"{name} {value}" for name, value in each.detail.items())
            yield f"    - {_said(each.candidate)}{f'  ({one_line(detail, 80)})' if detail else ''}"
        if len(group) > _SHOWN_MAX:
            yield f"    and {len(group) - _SHOWN_MAX} more; --json lists all"


def _rest_lines(build: Build) -> Iterator[str]:
    packet = build.packet
    yield from _titled(
        "stepped down to fit", (f"{each.action}: {each.reason}" for each in packet.budget_report.degradations)
    )
    yield from _titled("conflicts", map(_conflict, packet.explain.conflicts))
    how: dict[str, Any] = packet.explain.determinism or {}
    counter = how.get("token_counter", {})
    exactly = "exactly" if counter.get("is_exact") else "by an estimate that errs upwards"
    yield ""
    yield (
        f"replays to the same bytes: policy {how.get('policy_id')} ({str(how.get('policy_digest'))[:12]}…), "
        f"tokens counted {exactly} ({counter.get('name')}), {len(packet.citations)} pieces of evidence cited"
    )


def _conflict(note: ConflictNote) -> str:
    """The two sides of a conflict, by id if the note has them."""
    named = note.model_extra or {}
    older, newer = named.get("evidence_id") or next(iter(note.fact_ids or ()), None), named.get("superseded_by")
    which = f" ({older} → {newer})" if older and newer else ""
    return f"{note.type}: {note.detail}{which}"


def _titled(title: str, lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if number == 0:
            yield f"\n{strong(title)}"
        yield f"  {one_line(line)}"


def _explained_document(call: Call) -> dict[str, Any]:
    from muniment.surfaces.cli.explained import explained

    answers = call.memory.ledger.answers(call.answer.id, tenant_id=call.tenant)
    cited = [{"event_id": entry.id} | entry.cited.to_wire() for entry in answers if entry.cited is not None]
    return explained(call.answer) | {"answers": cited}


explain = Command(
    "memory.replay",
    _explain,
    arguments={"build_id": "ID"},
    document=_explained_document,
    about="What it cost; what makes it replay the same.",
)
