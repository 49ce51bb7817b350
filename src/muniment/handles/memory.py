"""The front door: `open` a store, get a `Memory`, start runs.

These are the methods most callers use. The ledger, long runs, learning and the store as a whole have handles of their
own: `mem.ledger`, `mem.log`, `mem.learning`, `mem.store`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from muniment.core.limits import cancellable
from muniment.core.outside.system import SystemIds, system_clock
from muniment.core.policy import policy_given, policy_named
from muniment.core.record import JsonObject
from muniment.core.scope import DEFAULT_TENANT, is_reserved, scope_given
from muniment.errors import InvalidInput
from muniment.handles.openings import (
    check_lessons,
    check_ports,
    counter_given,
    proof_key_given,
    require_room,
    zone_given,
)
from muniment.handles.run import Run
from muniment.handles.telling import spans_of, told
from muniment.store.context import Context
from muniment.store.engines.opening import open_engine

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from muniment.contracts.learning import MemoryActionRecord
    from muniment.contracts.packet import Purpose
    from muniment.core.listing import Listing, ListQuery, Placed
    from muniment.core.policy import Policy, ResearchLimits
    from muniment.core.ports.engine import EngineInfo
    from muniment.core.ports.models import Clock, Embedder, Ids, TokenCounter
    from muniment.handles.bank import Bank
    from muniment.handles.memory_learning import MemoryLearning
    from muniment.handles.memory_ledger import MemoryLedger
    from muniment.handles.memory_log import MemoryLog
    from muniment.handles.memory_store import MemoryStore
    from muniment.handles.openings import StoreKey
    from muniment.handles.rulebook import Rulebook
    from muniment.handles.runner import Runner
    from muniment.handles.study import Study
    from muniment.learning.records import Lesson, LessonStage
    from muniment.memory._extract_model import ExtractionBudget
    from muniment.memory.corpus import Corpus
    from muniment.memory.extraction import ExtractionReport
    from muniment.memory.patches import Writer
    from muniment.memory.profile import Profile
    from muniment.packets.builds import Build
    from muniment.packets.compare import BuildDiff
    from muniment.packets.why import Telling
    from muniment.rules.rollouts import Router
    from muniment.runs.snapshots import Resumed
    from muniment.store import transfer
    from muniment.store.context import Noticing
    from muniment.store.derivation import Derived
    from muniment.store.ledger import Receipt, RunState
    from muniment.store.reports import ImportReport, VerifyReport

# Whatever a process does not need to open a store and to search is imported where it is needed (decision 0001).

__all__ = ["Memory", "granted", "open"]


def open(
    target: str | PathLike[str] = ":memory:",
    *,
    clock: Clock | None = None,
    ids: Ids | None = None,
    embedder: Embedder | str | None = None,
    tokens: TokenCounter | str = "auto",
    grader: Any = None,
    extract: Any = None,
    lessons: Any = None,
    proof_key: StoreKey | None = None,
    policy: Policy | Mapping[str, Any] | None = None,
    durability: Literal["normal", "full", "replicated"] = "normal",
    read_only: bool = False,
    otel: bool = False,
    timezone: str | None = None,
) -> Memory:
    """Open a store: a SQLite file, `":memory:"`, or a `postgresql://` address (`?schema=name`, `?pool_size=16`,
    `?replica=host:port`).

    `durability` is "normal" (survives a crash of the process), "full" (survives power loss) or "replicated" (survives
    the loss of a PostgreSQL server: a replica has confirmed it). `embedder` adds search by meaning to search by words:
    "e5-small", "onnx:<folder>", "openai:<base_url>#<model>" or an object of your own. `tokens` names the token counter;
    "auto" is exact where a tokenizer is installed. `grader` is used by `run.verify`, and `extract` is a model that
    proposes facts: an address, a function of messages, or a client and the name of its model. It reads turns in the
    background, and is the default model of `extract_pending`. `lessons` is a model that writes lessons from judged
    runs: an address, or a function of messages. `proof_key` locates a key kept outside the store: "file:<path>",
    "env:<NAME>" or a function that returns one. Builds and receipts are proven with it, so that nobody with write
    access to the file can alter one unnoticed. `otel` traces memory operations with OpenTelemetry. `timezone`
    ("Europe/Berlin") sets the day of times that have no UTC offset.
    """
    if not isinstance(target, str | PathLike):
        raise InvalidInput(f"a store is named by a path or URL, not {type(target).__name__}", path="$.target")
    if clock is not None and not callable(clock):
        raise InvalidInput("clock should be a function that returns the present", path="$.clock")
    check_ports(ids, tokens)
    # before the store is opened, so that an error leaves nothing open
    chosen = None if policy is None else policy_given(policy)
    check_lessons(lessons)
    zone = None if timezone is None else zone_given(timezone)
    counter = counter_given(tokens) if isinstance(tokens, str) else tokens
    maker = None
    if embedder is not None:
        from muniment.memory.embedding import check_embedder

        maker = check_embedder(embedder)
    proof = None if proof_key in (None, "none") else proof_key_given(proof_key)
    spans = spans_of(on=otel)
    if extract is not None:
        from muniment.core.policy import Policy
        from muniment.memory._extract_model import load_turn_model

        load_turn_model(extract, (Policy.model_construct() if chosen is None else chosen).memory.extraction)
    engine = open_engine(target, durability=durability, read_only=read_only)
    context = Context(
        derived=_derived,
        engine=engine,
        policy=chosen,
        clock=clock or system_clock,
        ids=ids or SystemIds(),
        counter=counter,
        embedder=maker,
        grader=grader,
        extract_model=extract,
        lessons=lessons,
        proof_key=proof,
        spans=spans,
        address=str(target),
        timezone=zone,
    )
    memory = Memory(context)
    if maker is not None and not read_only and context.policy.ledger.embed_in_background:
        from muniment.handles.background import BackgroundEmbedding

        context.embedding = BackgroundEmbedding(context, maker)
    if extract is not None and not read_only and context.policy.memory.extraction.in_background:
        memory._start_background()
    return memory


def _derived() -> Derived:
    """The derivations of all rooms: loaded by the first write, since no search needs them."""
    from muniment.handles.derived import derived

    return derived()


def granted(grants: Iterable[str]) -> frozenset[str]:
    """The levels above the user's that a run may write at, checked."""
    if grants == ():
        return frozenset()
    from muniment.memory import patches

    return patches.granted(grants)


def _budgets(given: Mapping[str, float] | None) -> dict[str, Any] | None:
    """A run's budgets by name."""
    if given is None:
        return None
    sound = isinstance(given, Mapping) and all(
        isinstance(name, str) and isinstance(limit, int | float) and not isinstance(limit, bool) and limit >= 0
        for name, limit in given.items()
    )
    if not sound:
        raise InvalidInput(
            "budgets should be limits by name", path="$.budgets", hint='such as {"tokens": 200000, "steps": 100}'
        )
    return dict(given)


class Memory:
    """A store and its operations. Thread-safe; several processes may share one file or server."""

    _user_id: str | None = None
    """The only user it covers: set for a connection whose key is for one user."""
    _is_near = True
    """True if the store is opened in this process."""

    def __init__(self, context: Context) -> None:
        self._ctx = context

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Memory {self.info.name} {self.info.location}>"

    @property
    def info(self) -> EngineInfo:
        """The engine, its location and its durability."""
        return self._ctx.engine.info

    @property
    def policy(self) -> Policy:
        """The policy the store was opened with."""
        return self._ctx.policy

    # -- further handles ------------------------------------------------------------------------------

    @cached_property
    def ledger(self) -> MemoryLedger:
        """Events by their ids, a user's events and episodes in order, and what was committed last."""
        from muniment.handles.memory_ledger import MemoryLedger

        return MemoryLedger(self._ctx)

    @cached_property
    def log(self) -> MemoryLog:
        """Any run by its id: its state, its snapshots, its narrative; and drift across runs."""
        from muniment.handles.memory_log import MemoryLog

        return MemoryLog(self._ctx)

    @cached_property
    def learning(self) -> MemoryLearning:
        """Routes and their rates, the bank that holds a record, and learning from any run."""
        require_room("learning", "learning from runs")
        from muniment.handles.memory_learning import MemoryLearning

        return MemoryLearning(self._ctx)

    @cached_property
    def store(self) -> MemoryStore:
        """The tenants and users, bulk document loading, and upkeep: rebuild, reembed, scrub."""
        from muniment.handles.memory_store import MemoryStore

        return MemoryStore(self._ctx)

    # -- runs -----------------------------------------------------------------------------------------

    def run(
        self,
        *,
        user_id: str,
        agent_id: str = "agent",
        session_id: str | None = None,
        run_id: str | None = None,
        tenant_id: str = DEFAULT_TENANT,
        task_type: str = "generic",
        objective: str | None = None,
        done_definition: JsonObject | str | None = None,
        grants: Iterable[Literal["agent", "tenant"]] = (),
        budgets: Mapping[str, float] | None = None,
    ) -> Run:
        """Start or reopen a run in a scope. Session and run ids are minted unless given; an existing run id is
        continued.

        `grants` are the levels above the user's at which it may write. The run's purpose (`objective`,
        `done_definition`) and limits (`budgets`, such as tokens or steps) are recorded when it starts and pinned.
        """
        if isinstance(user_id, str) and is_reserved(user_id):
            raise InvalidInput(
                f"{user_id!r:.60} is the name of a corpus or a bank, not of a user",
                path="$.user_id",
                hint="documents are added through mem.corpus(…)",
            )
        ids = self._ctx.ids
        plain = {
            "tenant_id": tenant_id,
            "user_id": user_id,
            "agent_id": agent_id,
            "session_id": session_id if session_id is not None else ids.new("ses"),
            "run_id": run_id if run_id is not None else ids.new("run"),
        }
        scope = scope_given(plain)
        for name, value in (("task_type", task_type), ("objective", objective)):
            if value is not None and not isinstance(value, str):
                raise InvalidInput(f"{name} should be a string", path=f"$.{name}")
        if done_definition is not None and not isinstance(done_definition, str | dict):
            raise InvalidInput("done_definition should be an object or a string", path="$.done_definition")
        said = (task_type, objective, done_definition)
        return Run(self._ctx, scope, *said, granted(grants), _budgets(budgets), is_new=run_id is None)

    def runs(
        self,
        *,
        user_id: str | None = None,
        order: Literal["asc", "desc"] = "asc",
        since: Any = None,
        until: Any = None,
        q: str | None = None,
        around: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        tenant_id: str = DEFAULT_TENANT,
    ) -> Listing[RunState]:
        """The runs of a user, or of the tenant, in their current state, oldest first or newest (`desc`): all, or at
        most `limit`.

        `since`, `until`: started in that time; `q`: words of the objective, the task's type or the id; `around` a run.
        """
        from muniment.core.listing import list_query, read_listing
        from muniment.runs.snapshots import page_runs
        from muniment.store.lists.seeking import count_listed

        def read(asked: ListQuery) -> Iterator[Placed[RunState]]:
            return page_runs(self._ctx, tenant_id, user_id, asked)

        def count(asked: ListQuery) -> int | None:
            return count_listed(self._ctx, tenant_id, "run", user_id, asked)

        asked = list_query(order=order, since=since, until=until, q=q, around=around, limit=limit)
        return read_listing("runs", (str, str), read, asked, cursor, count)

    def resume(self, run_id: str, *, repair: bool = False, tenant_id: str = DEFAULT_TENANT) -> Resumed[Run]:
        """Reopen a run: its handle, and its log from the latest valid snapshot with everything after it.

        `repair` opens a locked run (else `RunLocked`), so that new entries can correct it before `unlock`. A run that
        has ended raises `RunFinished`.
        """
        from muniment.runs import snapshots as run_snapshots

        def handle(state: RunState) -> Run:
            return Run(self._ctx, state.scope, state.task_type, None, None, repairs=repair)

        return run_snapshots.resume(self._ctx, tenant_id, run_id, handle, repairs=repair)

    def extract_pending(
        self,
        *,
        model: Any = None,
        budget: ExtractionBudget | Mapping[str, float] | int | None = None,
        user_id: str | None = None,
        tenant_id: str = DEFAULT_TENANT,
        progress: Callable[[int], None] | None = None,
    ) -> ExtractionReport:
        """Read users' turns that no model has read yet, of one user or of all, and propose facts from them.

        `model` is an address (`openai:http://localhost:8080/v1#qwen`), a function of chat messages, or an extractor
        object. It defaults to the store's own model, or to the rules alone if there is none. `budget` is a number of
        calls, or limits by name (calls, turns, tokens, tokens_in, tokens_out, usd). Extraction stops at a limit; the
        next call, in any process, continues from there.
        """
        return self._extract(model=model, budget=budget, user_id=user_id, tenant_id=tenant_id, progress=progress)

    def _extract(
        self,
        *,
        user_id: str | None,
        tenant_id: str,
        model: Any = None,
        budget: ExtractionBudget | Mapping[str, float] | int | None = None,
        progress: Callable[[int], None] | None = None,
        sessions: Collection[str] | None = None,
        lease: str | None = None,
        left_by: str | None = None,
    ) -> ExtractionReport:
        from muniment.memory import extraction

        runs: dict[str, Run] = {}

        def writer_of(user: str) -> Writer:
            named: dict[str, Any] = {"agent_id": extraction.EXTRACT_SESSION, "session_id": extraction.EXTRACT_SESSION}
            runs[user] = self.run(user_id=user, tenant_id=tenant_id, task_type="extract", **named)
            return runs[user]._writer()

        def done(user: str, is_stopped: bool) -> None:
            if user in runs and runs[user].state() is not None:
                with cancellable(None):  # also if the work was stopped
                    runs[user].finish("BUDGET_EXCEEDED" if is_stopped else "OBJECTIVE_ACHIEVED")

        if user_id is not None and (not isinstance(user_id, str) or is_reserved(user_id)):
            raise InvalidInput("user_id should be the id of a user", path="$.user_id")
        return extraction.extract_pending(
            self._ctx,
            tenant_id,
            writer_of,
            user_id=user_id,
            model=self._ctx.extract_model if model is None else model,
            budget=budget,
            done=done,
            progress=progress,
            sessions=sessions,
            lease=lease,
            left_by=left_by,
        )

    def profile(
        self,
        *,
        user_id: str,
        max_tokens: int = 256,
        purpose: Purpose | None = None,
        tenant_id: str = DEFAULT_TENANT,
    ) -> Profile:
        """A user's self-description in their own words: dated sentences with their events, within `max_tokens`.

        Protective statements and lasting requests come first, then the user's newest other statements about themselves;
        the text is printed oldest first. With a `purpose`, limited to what the policy allows in a packet for it. Empty
        for a user who said nothing.
        """
        from muniment.memory.profile import read_profile

        return read_profile(self._ctx, tenant_id, user_id, max_tokens, purpose=purpose)

    def _start_background(self) -> Noticing:
        """Start the store's background reader of turns, once."""
        from muniment.handles.background import BackgroundExtraction

        if self._ctx.background is None:
            wait_s = self._ctx.policy.memory.extraction.wait_s
            self._ctx.background = BackgroundExtraction(self._extract, wait_s)
        return self._ctx.background

    # -- documents, research, learning ----------------------------------------------------------------

    def corpus(self, corpus_id: str, *, tenant_id: str = DEFAULT_TENANT, user_id: str | None = None) -> Corpus:
        """The documents of this name that the tenant shares or, with `user_id`, the user's own."""
        from muniment.memory.corpus import Corpus

        return Corpus(self._ctx, corpus_id, tenant_id, user_id)

    def research(
        self,
        question: str,
        *,
        user_id: str,
        mode: Literal["quick", "standard", "deep"] = "standard",
        limits: ResearchLimits | Mapping[str, Any] | None = None,
        agent_types: Iterable[str] | None = None,
        run_id: str | None = None,
        session_id: str | None = None,
        agent_id: str = "research",
        directory: str | PathLike[str] | None = None,
        tenant_id: str = DEFAULT_TENANT,
    ) -> Study:
        """Start a research run: a question and its limits. Its files lie in `directory`, by default
        `${XDG_CONFIG_HOME:-~/.config}/opencode/research-runs/<run_id>`. `agent_types` are the available agents.
        """
        require_room("research", "a research run")
        from muniment.handles.study import TASK_TYPE, start_study

        def make_run(id_: str, asked: str) -> Run:
            return self.run(
                user_id=user_id,
                agent_id=agent_id,
                session_id=session_id or id_,
                run_id=id_,
                tenant_id=tenant_id,
                task_type=TASK_TYPE,
                objective=asked,
            )

        return start_study(
            self._ctx,
            make_run,
            question,
            run_id=run_id,
            mode=mode,
            limits=limits,
            agent_types=agent_types,
            directory=directory,
            tenant_id=tenant_id,
            user_id=user_id,
        )

    def open_research(
        self, run_id: str, *, directory: str | PathLike[str] | None = None, tenant_id: str = DEFAULT_TENANT
    ) -> Study:
        """Reopen a research run, from any process; `directory` is needed if its files have moved."""
        require_room("research", "a research run")
        from muniment.handles.study import open_study
        from muniment.runs.snapshots import get_run

        state = get_run(self._ctx, tenant_id, run_id)
        return open_study(self._ctx, Run(self._ctx, state.scope, state.task_type, None, None), directory)

    def bank(self, *, user_id: str | None = None, agent_id: str | None = None, tenant_id: str = DEFAULT_TENANT) -> Bank:
        """The memory learned from verified runs: of a user, of an agent or, without either, of the whole tenant."""
        require_room("learning", "a bank")
        from muniment.handles.bank import Bank
        from muniment.handles.memory_learning import name_bank

        scope, owner = name_bank(user_id, agent_id, tenant_id)
        return Bank(self._ctx, scope, owner)

    def lessons(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        tenant_id: str = DEFAULT_TENANT,
        stage: LessonStage | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Listing[Lesson]:
        """The lessons of a user, of an agent or, without either, of the tenant, with their measured effects.

        A lesson was written by a person or a model, or is a rule learned from runs, or the draft of one. Limited to one
        `stage`, or all but the retired ones, oldest first.
        """
        bank = self.bank(user_id=user_id, agent_id=agent_id, tenant_id=tenant_id)
        return bank.lessons(stage=stage, limit=limit, cursor=cursor)

    def undo(self, plan_id: str, *, tenant_id: str = DEFAULT_TENANT) -> tuple[MemoryActionRecord, ...]:
        """Revert an applied plan, whichever bank it changed, unless a record it touched has changed since."""
        return self.learning.bank_of(plan_id, tenant_id=tenant_id).undo(plan_id)

    def rulebook(
        self, *, user_id: str | None = None, agent_id: str | None = None, tenant_id: str = DEFAULT_TENANT
    ) -> Rulebook:
        """The rules of a user, of an agent or, without either, of the whole tenant: their tests, trials and
        statistics.
        """
        require_room("rules", "a rulebook")
        from muniment.handles.memory_learning import name_bank
        from muniment.handles.rulebook import Rulebook

        _, owner = name_bank(user_id, agent_id, tenant_id)
        return Rulebook(self._ctx, tenant_id, owner)

    def runner(
        self,
        agent: Callable[..., Any],
        verifier: Callable[..., Any],
        policy: Mapping[str, Any] | None = None,
        *,
        executor: Executor | None = None,
        router: Router | Literal[True] | None = None,
        lessons: Any = None,
        **scope: Any,
    ) -> Runner:
        """A runner that runs an agent on tasks with recall, has its output verified, and learns.

        `executor` runs the attempts; the default is dedicated threads. `router` decides how much effort a task gets: a
        function of a `RouteRequest`, or True for `learning.route` over this runner's bank. `lessons` is a model that
        writes lessons from its runs, if it differs from the store's.
        """
        require_room("learning", "a runner")
        from muniment.handles.runner import Runner

        return Runner(self, agent, verifier, policy, scope, executor, router, lessons)

    # -- builds ---------------------------------------------------------------------------------------

    def replay(self, build_id: str, *, tenant_id: str = DEFAULT_TENANT) -> Build:
        """Recompose a build from its recorded inputs, whatever was written since: the same bytes, or an error.

        Raises `Forgotten`, with the receipt's id, if something it held was erased.
        """
        from muniment.packets import builds

        return builds.load_build(self._ctx, tenant_id, build_id)

    def diff(self, a: str, b: str, *, tenant_id: str = DEFAULT_TENANT) -> BuildDiff:
        """The differences between two builds, with reasons."""
        from muniment.packets.compare import diff_builds

        def why_no_rule(rule_id: str) -> str | None:
            from muniment.rules.rulebook import why_taken_out

            return self._ctx.engine.read(tenant_id, lambda reader: why_taken_out(reader, tenant_id, rule_id))

        return diff_builds(self.replay(a, tenant_id=tenant_id), self.replay(b, tenant_id=tenant_id), why_no_rule)

    def compare(
        self, build_id: str, policy: str | Policy | Mapping[str, Any], *, tenant_id: str = DEFAULT_TENANT
    ) -> BuildDiff:
        """Recompose a kept build under another policy, from the same request and candidates, and return the
        differences.
        """
        from muniment.packets.builds import recompose
        from muniment.packets.compare import diff_builds

        other = policy_named(self._ctx.policy, policy)
        build = self.replay(build_id, tenant_id=tenant_id)
        return diff_builds(build, recompose(self._ctx, build, other))

    def why(
        self, text: str, *, looked_max: int = 1000, user_id: str | None = None, tenant_id: str = DEFAULT_TENANT
    ) -> list[Telling]:
        """The builds that gave a model this text, newest first: from which event, under which policy.

        Searches the newest `looked_max` builds and as many answers.
        """
        from muniment.packets.why import trace_text

        return trace_text(self._ctx, tenant_id, text, user_id, looked_max)

    # -- the store ------------------------------------------------------------------------------------

    @told
    def verify(
        self,
        *,
        tenant_id: str | None = None,
        quick: bool = False,
        entries_max: int | None = None,
        resume: str | None = None,
    ) -> VerifyReport:
        """Walk the hash chains of one tenant, or of all, and rebuild what was derived from them. The report names the
        first broken link of each session, and every item, link and index that differs from what the ledger yields.

        `quick` walks a sample of the sessions, rebuilds nothing, and says so. With `entries_max` it stops after that
        many entries; pass the report's `resume` to continue, until it is None.
        """
        from muniment.store.verify import verify

        return verify(self._ctx, tenant_id, quick=quick, entries_max=entries_max, resume=resume)

    @told
    def forget(
        self,
        *,
        event: str | None = None,
        fact: str | None = None,
        session: str | None = None,
        user_id: str | None = None,
        tenant: str | None = None,
        tenant_id: str = DEFAULT_TENANT,
    ) -> Receipt:
        """Erase an event, a fact, a session, a user or a tenant, and everything derived from it; returns the
        receipt.
        """
        from muniment.handles.forget_request import selector_of
        from muniment.store import forget as forgetting

        tenant_named, selector = selector_of(
            event=event, fact=fact, session=session, user_id=user_id, tenant=tenant, tenant_id=tenant_id
        )
        return forgetting.forget(self._ctx, tenant_named, selector)

    def export(
        self, *, tenant_id: str = DEFAULT_TENANT, user_id: str | None = None, session_id: str | None = None
    ) -> Iterator[bytes]:
        """Everything in a scope as JSON lines, in constant memory."""
        from muniment.store import transfer

        return transfer.export_lines(self._ctx, tenant_id, user_id, session_id)

    def import_(
        self,
        source: str | PathLike[str] | list[bytes] | Callable[[], Iterable[bytes]] | transfer.Dump,
        *,
        progress: Callable[[int], None] | None = None,
    ) -> ImportReport:
        """Import a dump (a path, its lines, or a function that opens them), checked before anything is written."""
        from muniment.handles.derived import check_dump
        from muniment.store import transfer

        dump = source if isinstance(source, transfer.Dump) else check_dump(source)
        return transfer.import_dump(self._ctx, dump, progress)

    def close(self) -> None:
        """Close the store, once what was appended here is indexed. Everything acknowledged is already stored."""
        self._ctx.close()
