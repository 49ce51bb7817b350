"""What a command is called on: the store, a run, a bank, a rulebook, a corpus, a study; and what names each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from muniment.errors import InvalidInput, NotFound, WrongStage
from muniment.surfaces.cli.parameters import Word

if TYPE_CHECKING:
    from muniment.handles.bank import Bank
    from muniment.handles.memory import Memory
    from muniment.handles.rulebook import Rulebook
    from muniment.handles.run import Run
    from muniment.handles.runner import Runner
    from muniment.handles.study import Study
    from muniment.memory.corpus import Corpus
    from muniment.surfaces.cli.calling import Call

__all__ = ["OPENINGS", "SESSION", "Opening", "check_there", "run_named", "user_run"]

SESSION = "cli"
"""The session a command asks from, unless it is told another: one that holds nothing, so all others are earlier."""


@dataclass(frozen=True)
class Opening:
    """How a handle is opened: what is asked for to name it, and what opens it."""

    open: Callable[[Call], Any]
    asks: Mapping[str, Word] = field(default_factory=dict)
    """How each parameter of the opening is asked for."""
    arguments: Mapping[str, str] = field(default_factory=dict)
    """The parameters that are typed without an option, known by their place."""
    own: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    needs_store: bool = True


# -- runs ---------------------------------------------------------------------------------------------


def run_named(mem: Memory, run_id: str, tenant: str) -> Run:
    """A handle of a run that exists, to read with: under the run's own scope, whether or not it has ended."""
    scope = mem.log.run_state(run_id, tenant_id=tenant).scope
    return mem.run(
        user_id=scope.user_id,
        agent_id=scope.agent_id,
        session_id=scope.session_id,
        run_id=scope.run_id,
        tenant_id=scope.tenant_id,
    )


def user_run(call: Call, **more: Any) -> Run:
    """A run of nobody's in particular to read a user's memory with; it writes nothing."""
    names = {"session_id": SESSION, "run_id": SESSION, **more}
    return call.memory.run(user_id=call.user, agent_id=call.settings.agent, tenant_id=call.tenant, **names)


def _composing_run(call: Call) -> Run:
    """The run of a session that goes on, whose working state counts."""
    run_id, session = call.typed.get("run_id"), call.typed.get("session_id")
    if run_id is not None and session is None:
        raise InvalidInput("a run is named within a session", path="$.session", hint="give --session as well")
    task_type = call.typed.get("task_type", "generic")
    return user_run(call, session_id=SESSION if session is None else session, run_id=run_id, task_type=task_type)


def _run_or_user(call: Call) -> Run:
    """The run that was named, which goes on; a user or an agent that was named as well has to be its own."""
    run_id = call.typed.get("run_id")
    if run_id is None:
        return user_run(call)
    run = call.memory.resume(run_id, tenant_id=call.tenant).run
    for name, own in (("user", run.scope.user_id), ("agent", run.scope.agent_id)):
        wanted = call.typed.get(f"{name}_id")
        if wanted is not None and wanted != own:
            raise NotFound(f"no run {run_id!r:.80} of {name} {wanted!r:.80}", path=f"$.{name}")
    return run


def _runner(call: Call) -> Runner:
    """An agent of the caller's under a verifier of theirs."""
    typed = call.typed
    return call.memory.runner(
        typed["agent"],
        typed["verifier"],
        {"recall": "no_recall" not in typed},
        router=True if "router" in typed else None,
        user_id=call.user,
        agent_id=call.settings.agent,
        tenant_id=call.tenant,
    )


def _run(call: Call) -> Run:
    return run_named(call.memory, call.typed["run_id"], call.tenant)


def _repaired_run(call: Call) -> Run:
    return call.memory.resume(call.typed["run_id"], repair=True, tenant_id=call.tenant).run


# -- banks and rulebooks ------------------------------------------------------------------------------


_HELD_IDS = ("memory_id", "plan_id", "lesson_id")


def _bank(call: Call) -> Bank:
    """The bank that was named; where none was, the one that holds the record, plan or lesson."""
    user, agent = _bank_names(call)
    record_id = next((call.typed[name] for name in _HELD_IDS if name in call.typed), None)
    if record_id is None or user is not None or agent is not None:
        return call.memory.bank(user_id=user, agent_id=agent, tenant_id=call.tenant)
    return call.memory.learning.bank_of(record_id, tenant_id=call.tenant)


def _rulebook(call: Call) -> Rulebook:
    """The rulebook that was named; where none was, the one that holds the rule or draft."""
    user, agent = _bank_names(call)
    record_id = next((call.typed[name] for name in ("rule_id", "rule", "draft") if name in call.typed), None)
    if not isinstance(record_id, str) or user is not None or agent is not None:
        return call.memory.rulebook(user_id=user, agent_id=agent, tenant_id=call.tenant)
    kind, _, name = call.memory.learning.bank_of(record_id, tenant_id=call.tenant).name.partition(":")
    held: dict[str, Any] = {f"{kind}_id": name} if name else {}
    return call.memory.rulebook(**held, tenant_id=call.tenant)


def _rule(call: Call) -> Rulebook:
    """The rulebook that holds a rule which is there, and still says something."""
    book = _rulebook(call)
    if "rule_id" in call.typed:
        check_there(book, call.typed["rule_id"])
    return book


def check_there(book: Rulebook, rule_id: str) -> None:
    if book.get(rule_id).status == "pruned":
        raise WrongStage(
            f"{rule_id} was pruned: what it said is gone", hint="`muniment rules list --all` has the others"
        )


def _bank_names(call: Call) -> tuple[str | None, str | None]:
    """The user or the agent whose bank is meant; an error where both are named."""
    user, agent = call.typed.get("user_id"), call.typed.get("agent_id")
    if user is not None and agent is not None:
        raise InvalidInput("a bank is a user's or an agent's", path="$.agent", hint="give --user or --agent")
    return user, agent


def _named_memory(call: Call) -> Memory:
    _bank_names(call)
    return call.memory


# -- corpora and studies ------------------------------------------------------------------------------


def _corpus(call: Call) -> Corpus:
    user = call.typed.get("user_id")
    return call.memory.corpus(call.typed["corpus_id"], tenant_id=call.tenant, user_id=user)


def _study(call: Call) -> Study:
    directory = call.typed.get("directory")
    return call.memory.open_research(call.typed["run_id"], directory=directory, tenant_id=call.tenant)


# -- what names them ----------------------------------------------------------------------------------

_DB = {"db": Word()}
_STORE = _DB | {"tenant_id": Word()}
_USER = {"user_id": Word("Whose memory (default: the setting `user`).")}
_AGENT = {"agent_id": Word("For which agent (default: the setting `agent`).")}
_BANK = {"user_id": Word("The bank of a user (default: the tenant's own)."), "agent_id": Word("The bank of an agent.")}
_CORPUS = {"corpus_id": Word(), "user_id": Word("The user whose own it is (default: shared by the tenant).")}
_RUN = {"run_id": "RUN"}

OPENINGS: Mapping[str, Opening] = {
    "nothing": Opening(lambda call: call, needs_store=False),
    "sandbox": Opening(lambda call: call, needs_store=False),
    "store or nothing": Opening(lambda call: call, _STORE, needs_store=False),
    "user settings": Opening(lambda call: call, _STORE | _USER | _AGENT, needs_store=False),
    "settings": Opening(lambda call: call, _DB, needs_store=False),
    "call": Opening(lambda call: call, _STORE),
    "user call": Opening(lambda call: call, _STORE | _USER, needs=("user_id",)),
    "memory": Opening(lambda call: call.memory, _DB),
    "user": Opening(user_run, _STORE | _USER, own=("user_id",), needs=("user_id",)),
    "user or run": Opening(_run_or_user, _STORE | _USER | _AGENT, own=("user_id", "agent_id")),
    "rollout": Opening(
        _runner,
        _STORE | _USER | {"agent_id": Word("As which agent it runs (default: the setting `agent`).", "agent-id")},
        own=("user_id", "agent_id"),
        needs=("user_id",),
    ),
    "composing": Opening(
        _composing_run,
        {
            **_STORE,
            **_USER,
            "agent_id": Word(),
            "session_id": Word("The session that goes on (default: a fresh one)."),
            "run_id": Word("The run of it whose working state counts (default: a new one).", metavar="ID"),
            "task_type": Word("Which procedures apply (default: generic).", metavar="NAME"),
        },
        own=("user_id", "agent_id", "session_id", "run_id", "task_type"),
        needs=("user_id",),
    ),
    "run": Opening(_run, {"run_id": Word(), **_STORE}, _RUN, own=("run_id",)),
    "repaired run": Opening(_repaired_run, {"run_id": Word(), **_STORE}, _RUN, own=("run_id",)),
    "bank": Opening(_bank, _STORE | _BANK, own=("user_id", "agent_id")),
    "bank memory": Opening(_named_memory, _STORE | _BANK),
    "rulebook": Opening(_rule, _STORE | _BANK, own=("user_id", "agent_id")),
    "rulebook call": Opening(lambda call: call, _STORE | _BANK, own=("user_id", "agent_id"), needs_store=False),
    "rulebook store": Opening(lambda call: call, _STORE | _BANK, own=("user_id", "agent_id")),
    "rulebook of it": Opening(_rule, _STORE),
    "rulebook advanced": Opening(
        _rulebook,
        _STORE
        | {
            "user_id": Word("The rulebook of a user (default: the tenant's own)."),
            "agent_id": Word("The rulebook of an agent.", "agent-id"),
        },
        own=("user_id", "agent_id"),
    ),
    "rulebook or file": Opening(_rulebook, _STORE | _BANK, own=("user_id", "agent_id")),
    "corpus": Opening(_corpus, _STORE | _CORPUS, own=("user_id", "corpus_id")),
    "study": Opening(_study, {"run_id": Word(), **_STORE, "directory": Word()}, _RUN, own=("run_id", "directory")),
}
"""The openings by name; a handle of the table of operations has its name there."""
