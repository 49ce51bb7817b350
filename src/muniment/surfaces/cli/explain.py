"""`muniment explain`: a build for a person to read: the budget, what was taken and why, what was left out and why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from muniment.surfaces.cli.asking import one_line, when
from muniment.surfaces.cli.options import db_option, json_option, tenant_option
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.settings import load_settings, open_store

if TYPE_CHECKING:
    from muniment.contracts.memory_packet import ConflictNote
    from muniment.packets.builds import Build
    from muniment.surfaces.cli.explained import Candidate, Left, Taken

__all__ = ["explain"]

BAR = 24
SHOWN_MAX = 8
"""Of what was left out for one reason, so many are shown."""


@click.command()
@click.argument("build_id", metavar="ID")
@db_option
@tenant_option
@json_option
@handles_errors
def explain(build_id: str, db: str | None, tenant: str | None, as_json: bool) -> None:
    """Say what the build ID took and left out, and why; what it cost; what makes it replay the same."""
    settings = load_settings({"db": db, "tenant": tenant})
    with open_store(settings, must_exist=True) as mem:
        build = mem.replay(build_id, tenant_id=settings.tenant)
    if as_json:
        from muniment.surfaces.cli.explained import explained

        emit_json(explained(build))
    else:
        _show(build)


def _show(build: Build) -> None:
    from muniment.surfaces.cli.explained import left_out, taken

    meta, report = build.packet.meta, build.packet.budget_report
    click.echo(f"{_strong(build.id)}  {meta.purpose} for {meta.scope.user_id}, {when(meta.generated_at)}")
    if build.request.query:
        click.echo(f"asked: {one_line(build.request.query)}")
    click.echo(f"{report.used_tokens_est} of {report.max_tokens} tokens")
    click.echo()
    _show_sections(build, taken(build))
    _show_left(left_out(build))
    _show_rest(build)


def _strong(text: str) -> str:
    return click.style(text, bold=True)


def _show_sections(build: Build, chosen: list[Taken]) -> None:
    from muniment.surfaces.cli.explained import SECTION_OF

    caps = build.packet.meta.budget.per_section.to_wire()
    for section, used in build.packet.budget_report.section_usage.items():
        if section not in caps:
            click.echo(f"{_strong(section)}: {used} tokens for headings and marks")
            continue
        click.echo(f"{_strong(f'{section:<18}')}  {_bar(used, caps[section])}  {used:>5} of {caps[section]:>5}")
        for each in chosen:
            if SECTION_OF[each.candidate.kind] == section:
                _show_taken(each)


def _bar(used: int, cap: int) -> str:
    full = min(BAR, -(-used * BAR // cap)) if cap else 0
    return "█" * full + "░" * (BAR - full)


def _show_taken(each: Taken) -> None:
    marks = " ".join(each.marks[:4])
    click.echo(f"  + {_said(each.candidate)}{f'  {marks}' if marks else ''}")
    parts = sorted((each.candidate.parts or {}).items(), key=lambda part: -part[1])
    made_of = f" = {' + '.join(f'{name} {value:.2f}' for name, value in parts)}" if parts else ""
    click.echo(f"      {each.rules} · score {each.score:g}{made_of}")


def _said(candidate: Candidate) -> str:
    day = f"{when(candidate.ts)[:10]} " if candidate.ts and candidate.kind not in ("fact", "procedure") else ""
    who = f"{candidate.who}: " if candidate.who else ""
    return f"{candidate.kind}  {day}{who}{one_line(candidate.text, 110)}"


def _show_left(left: list[Left]) -> None:
    from muniment.surfaces.cli.explained import REASONS

    by_reason: dict[str, list[Left]] = {}
    for each in left:
        by_reason.setdefault(each.reason, []).append(each)
    click.echo()
    click.echo(_strong(f"left out: {len(left)}") if left else "nothing was left out")
    for reason, group in sorted(by_reason.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        click.echo(f"  {reason} ({len(group)}): {REASONS.get(reason, 'see the packet')}")
        for each in group[:SHOWN_MAX]:
            detail = ", ".join(f"{name} {value}" for name, value in each.detail.items())
            click.echo(f"    - {_said(each.candidate)}{f'  ({one_line(detail, 80)})' if detail else ''}")
        if len(group) > SHOWN_MAX:
            click.echo(f"    and {len(group) - SHOWN_MAX} more; --json lists all")


def _show_rest(build: Build) -> None:
    packet = build.packet
    _show_list("stepped down to fit", (f"{each.action}: {each.reason}" for each in packet.budget_report.degradations))
    _show_list("conflicts", map(_conflict, packet.explain.conflicts))
    how: dict[str, Any] = packet.explain.determinism or {}
    counter = how.get("token_counter", {})
    exactly = "exactly" if counter.get("is_exact") else "by an estimate that errs upwards"
    click.echo()
    click.echo(
        f"replays to the same bytes: policy {how.get('policy_id')} ({str(how.get('policy_digest'))[:12]}…), "
        f"tokens counted {exactly} ({counter.get('name')}), {len(packet.citations)} pieces of evidence cited"
    )


def _conflict(note: ConflictNote) -> str:
    """What contradicts what, by its ids where the note has them."""
    named = note.model_extra or {}
    older, newer = named.get("evidence_id"), named.get("superseded_by")
    which = f" ({older} → {newer})" if older and newer else ""
    return f"{note.type}: {note.detail}{which}"


def _show_list(title: str, lines: Iterable[str]) -> None:
    for number, line in enumerate(lines):
        if number == 0:
            click.echo()
            click.echo(_strong(title))
        click.echo(f"  {one_line(line)}")
