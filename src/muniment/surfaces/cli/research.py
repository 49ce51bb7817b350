"""`muniment research`: a research run from the question to the checked report, command by command."""

from __future__ import annotations

import click

from muniment.surfaces.cli.main import LazyGroup

__all__ = ["COMMANDS", "research"]

_RUNS = "muniment.surfaces.cli.research_runs"
_WAVES = "muniment.surfaces.cli.research_waves"
_PACK = "muniment.surfaces.cli.research_pack"

# In the order in which a run takes them.
COMMANDS: dict[str, tuple[str, str, str]] = {
    "init": (_RUNS, "init", "Start a run with a question."),
    "route": (_WAVES, "route", "Choose the perspectives."),
    "prompt": (_WAVES, "prompt", "Print what to hand to a perspective's agent."),
    "ingest": (_WAVES, "ingest", "Take an agent's output, or say why not."),
    "give-up": (_WAVES, "give_up", "Go on without a perspective."),
    "pivot": (_WAVES, "pivot", "Decide on a second wave."),
    "source": (_PACK, "source", "Keep a page or a snippet that was read."),
    "citations": (_PACK, "citations", "Settle the status of every source."),
    "pack": (_PACK, "pack", "Check the claims and write the bounded pack."),
    "claims": (_PACK, "claims", "List the claims that no source bears, and why."),
    "synthesis": (_PACK, "synthesis", "Print all that a report may be written from."),
    "check": (_PACK, "check", "Check a draft report against the pack."),
    "gates": (_RUNS, "gates", "Measure gates A to E as they stand."),
    "status": (_RUNS, "status", "Show how a run stands and what comes next."),
    "resume": (_RUNS, "resume", "Write the files anew from the store."),
    "list": (_RUNS, "list_", "List the research runs of a store."),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def research() -> None:
    """Research with agents of your own: routed, checked, bounded, and handed over with its sources.

    Commands stand in the order in which a run takes them; prompt and ingest are for each perspective. `status` says at
    any time how a run stands and what comes next.
    """
