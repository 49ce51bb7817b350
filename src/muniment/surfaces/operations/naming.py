"""The names of operations in other languages, and their sections of the document.

The core comes first: about a dozen operations that an agent needs, under plain names. All others are listed by the room
that does their work, named after the handle and its method, and after the level if there are several.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from muniment.surfaces.operations.table import Operation

__all__ = ["CORE", "TAGS", "addresses", "operation_name", "schema_name", "tag_of"]

CORE: Mapping[tuple[str, str], str] = {
    ("memory.run", "user"): "start_run",
    ("run.observe", "user"): "observe",
    ("run.observe_tool", "user"): "observe_tool",
    ("run.record", "user"): "record",
    ("memory.entries", "user"): "events",
    ("memory.changes", "user"): "changes",
    ("run.remember", "user"): "remember",
    ("run.facts", "without_run"): "facts",
    ("run.search", "without_run"): "search",
    ("run.compose", "user"): "compose",
    ("run.resolve", "without_run"): "resolve",
    ("memory.resolve_answer", "user"): "resolve_answer",
    ("memory.why", "user"): "why",
    ("memory.forget", "user"): "forget",
    ("run.finish", "user"): "finish_run",
}
"""The operations an agent needs, in order of use: operation and address → its name."""

TAGS: Mapping[str, str] = {
    "core": "What an agent needs: record what happened, find it again, compose a prompt from it, say where a line "
    "of it comes from, and forget. Start here.",
    "store": "The ledger and the store itself: events, evidence, changes, users, export, import, checks, forgetting.",
    "memory": "What is remembered of a user: facts, procedures, insights, summaries, candidates, episodes, documents.",
    "runs": "Runs of an agent: their state, steps, claims, conflicts, failures, questions, snapshots.",
    "packets": "What was composed: builds read again, explained, compared, and the answers given with them.",
    "verify": "Outputs held against constraints and evidence.",
    "learning": "What verified runs left behind: recall, working sets, folds, and the banks of users, agents, tenants.",
    "rules": "Rulebooks: drafts, tests, trials, promotion, routing.",
    "research": "Research runs: perspectives, sources, packs, checks.",
    "operations": "Long work that was begun with `Prefer: respond-async`, and its progress.",
    "server": "The server itself.",
}
"""The sections of the document, in order."""

_ROOMS: Mapping[str, str] = {
    "memory": "store",
    "memory.ledger": "store",
    "memory.log": "runs",
    "memory.learning": "learning",
    "memory.store": "store",
    "run": "memory",
    "run.log": "runs",
    "run.memory": "memory",
    "run.learning": "learning",
    "run.ledger": "store",
    "corpus": "memory",
    "study": "research",
    "bank": "learning",
    "rulebook": "rules",
    "values": "memory",
    "threads": "memory",
    "works": "operations",
}
"""The room whose work each handle's methods do."""

_ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(("memory.run", "memory.runs", "memory.resume", "run.state", "run.finish"), "runs"),
    **dict.fromkeys(("memory.extract_pending", "memory.add_documents", "memory.episodes"), "memory"),
    **dict.fromkeys(("memory.research", "memory.open_research"), "research"),
    **dict.fromkeys(("run.select_rules",), "rules"),
    **dict.fromkeys(("run.observe", "run.observe_tool", "run.observe_many", "run.record"), "store"),
    **dict.fromkeys(("run.verify", "run.verifications"), "verify"),
    **dict.fromkeys(
        ("memory.builds", "memory.replay", "memory.build_packet", "memory.build_inputs",
         "memory.resolve_answer", "memory.answers", "memory.diff", "memory.compare", "memory.preview", "memory.why",
         "memory.bill", "memory.in_view", "run.compose"),
        "packets",
    ),
}  # fmt: skip
"""Operations that do another room's work than the rest of their handle."""


def addresses(operation: Operation) -> Iterator[tuple[str, str]]:
    """Every address of an operation, each with its level, or `without_run`."""
    for template in dict.fromkeys(operation.routes.values()):
        where = next(level for level, each in operation.routes.items() if each == template)
        yield "owner" if "{owner}" in template else where, template
    if operation.free_route is not None:
        yield "without_run", operation.free_route


def tag_of(operation: Operation, where: str) -> str:
    if (operation.id, where) in CORE:
        return "core"
    return _ELSEWHERE.get(operation.id) or _ROOMS[operation.place]


def operation_name(operation: Operation, where: str, levels: Mapping[str, int]) -> str:
    """A name that is valid for a function in any language. `levels` counts the addresses of each operation."""
    name = CORE.get((operation.id, where))
    if name is not None:
        return name
    plain = operation.id.replace(".", "_").rstrip("_")
    return plain if levels[operation.id] == 1 else f"{plain}_{where if where == 'without_run' else f'of_{where}'}"


def schema_name(operation_id: str) -> str:
    """The name of an operation's argument schema: `ComposeArguments`."""
    core = [name for (named, _), name in CORE.items() if named == operation_id]
    plain = core[0] if core else operation_id.replace(".", "_")
    return "".join(part.capitalize() for part in plain.split("_")) + "Arguments"
