"""The store as a whole: its tenants and users, bulk loading, import and export, evals, and upkeep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from muniment.core.scope import DEFAULT_TENANT
from muniment.handles.openings import require_room

if TYPE_CHECKING:
    from muniment.core.listing import Listing, ListQuery, Placed
    from muniment.core.outside.spool import Spool
    from muniment.core.policy import Policy
    from muniment.handles.attention import Overview, Waiting, WaitingKind
    from muniment.handles.thread_space import ThreadSpace
    from muniment.handles.upkeep.records import UpkeepKind, UpkeepReport
    from muniment.handles.value_space import ValueSpace
    from muniment.memory.documents import CorpusDocument
    from muniment.memory.extraction import ExtractionReport
    from muniment.moving.portable import MoveReport, System
    from muniment.store.context import Context
    from muniment.store.load import LoadEvent, LoadReport, Progress
    from muniment.store.reports import (
        RebuildReport,
        ScrubbedFiles,
        UserState,
    )
    from muniment.verify.evals.questions import EvalQuestion
    from muniment.verify.evals.report import EvalReport
    from muniment.verify.evals.run import Answerer

__all__ = ["MemoryStore"]


class MemoryStore:
    """The tenants and users of a store, documents for several corpora, and the store's upkeep: `mem.store`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    @property
    def extracted(self) -> ExtractionReport | None:
        """The totals of this process's background extraction: turns read, cost and results; None before the first."""
        return None if self._ctx.background is None else self._ctx.background.report

    def tenants(self, *, limit: int | None = None, cursor: str | None = None) -> Listing[str]:
        """The tenants of this store."""
        from muniment.core.listing import Placed, list_query, read_listing

        def read(asked: ListQuery) -> Iterator[Placed[str]]:
            after = None if asked.after is None else asked.after[0]
            for name in self._ctx.engine.tenants(after, None if asked.limit is None else asked.limit + 1):
                yield Placed((name,), name)

        return read_listing("tenants", (str,), read, list_query(limit=limit), cursor)

    def users(
        self,
        *,
        q: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        tenant_id: str = DEFAULT_TENANT,
    ) -> Listing[UserState]:
        """The users of a tenant who have sessions, by id; forgotten users are not listed.

        `q` keeps only ids that contain it, case-insensitively.
        """
        from muniment.core.listing import list_query, read_listing
        from muniment.store.users import page_users

        def read(asked: ListQuery) -> Iterator[Placed[UserState]]:
            return page_users(self._ctx, tenant_id, asked)

        return read_listing("users", (str,), read, list_query(q=q, limit=limit), cursor)

    def overview(self, *, tenant_id: str = DEFAULT_TENANT) -> Overview:
        """Counts of a tenant's contents, and the time of its last activity. Each number is counted up to a bound."""
        from muniment.handles.attention import overview

        return overview(self._ctx, tenant_id)

    def attention(
        self,
        *,
        kind: WaitingKind | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        user_id: str | None = None,
        tenant_id: str = DEFAULT_TENANT,
    ) -> Listing[Waiting]:
        """The items of a tenant or of one user that wait for a person: all, or at most `limit`, of one `kind` or of
        each.

        Locked runs, rule trials with a decision, disputed facts, candidates not yet judged, and receipts that wait for
        a scrub of the store's files.
        """
        from muniment.core.listing import list_query, read_listing
        from muniment.handles.attention import WAITING_KINDS, page_waiting

        def read(asked: ListQuery) -> Iterator[Placed[Waiting]]:
            return page_waiting(self._ctx, tenant_id, user_id, asked)

        asked = list_query(kind=kind, kinds=WAITING_KINDS, limit=limit)
        return read_listing("attention", (int, str, str), read, asked, cursor)

    def add_documents(
        self, documents: Iterable[Mapping[str, Any]], *, user_id: str | None = None, tenant_id: str = DEFAULT_TENANT
    ) -> list[CorpusDocument]:
        """Add documents to one corpus or several, all of them or none, each once.

        Each is an object of `corpus.add`'s arguments with its `corpus_id` and, for a user's own, the `user_id`. If
        `user_id` is given here, all go to that user's own corpora, and a document that names another user is refused.
        """
        from muniment.memory.corpus import add_to_corpora

        return add_to_corpora(self._ctx, documents, tenant_id, user_id)

    def evaluate(
        self,
        questions: Iterable[EvalQuestion | Mapping[str, Any]],
        *,
        budgets: Iterable[int] = (512, 1024),
        purposes: Iterable[str] = ("responder",),
        policies: Mapping[str, Policy | Mapping[str, Any]] | None = None,
        k: int = 10,
        reference: bool = True,
        model: Answerer | None = None,
        model_name: str | None = None,
        cite: bool = False,
        user_id: str | None = None,
        agent_id: str = "agent",
        tenant_id: str = DEFAULT_TENANT,
        name: str = "questions",
        progress: Callable[[int], None] | None = None,
    ) -> EvalReport:
        """Measure answers to questions with known answers or evidence; nothing is written.

        Packets at each budget, for each purpose, under the store's policy and each other one; a search of `k`; and with
        `reference` plain BM25 at the same sizes. A model is called with chat messages and returns text; with `cite` it
        is reminded to cite. `user_id` and `agent_id` apply to questions that name none.
        """
        from muniment.core.policy import policy_named

        require_room("verify", "an eval")
        from muniment.verify.evals.questions import Placed, read_questions
        from muniment.verify.evals.report import make_arms
        from muniment.verify.evals.run import run_eval

        asked = read_questions(Placed(f"question {number}", each) for number, each in enumerate(questions, 1))
        named = {label: policy_named(self._ctx.policy, policy) for label, policy in (policies or {}).items()}
        arms = make_arms(budgets=budgets, purposes=purposes, policies=named, k=k, reference=reference)
        return run_eval(
            self._ctx,
            asked,
            arms,
            name=name,
            tenant_id=tenant_id,
            user_id=user_id,
            agent_id=agent_id,
            model=model,
            model_name=model_name,
            cite=cite,
            progress=progress,
        )

    # -- loading ----------------------------------------------------------------------------------------

    def load(
        self,
        events: Iterable[Mapping[str, Any] | LoadEvent] | Spool,
        *,
        agent_id: str = "agent",
        index: bool = True,
        progress: Progress | None = None,
        tenant_id: str = DEFAULT_TENANT,
    ) -> LoadReport:
        """Write many events of many sessions at once, in large transactions, and index them afterwards.

        Each is an object of `observe`'s arguments with its `user_id`, its `session_id` and, if different, its
        `agent_id` and `run_id`. All are checked before any is written. The result is what `observe` would write, in the
        order of each session. Events already written are skipped, also after an interrupted load. Without `index`,
        indexing is left to `index` and to upkeep: searches read the events from the ledger until then.
        """
        from muniment.memory.loading import load_events

        return load_events(self._ctx, events, tenant_id, agent_id, index=index, progress=progress)

    def index(self, *, tenant_id: str = DEFAULT_TENANT, progress: Callable[[int], None] | None = None) -> int:
        """Bring the stored index up to the end of the ledger; returns how many turns were indexed.

        Several processes may do it at once, and it can be stopped at any time without losing finished work.
        """
        from muniment.memory.index import index_tenant

        return index_tenant(self._ctx, tenant_id, progress=progress)

    # -- import and export ----------------------------------------------------------------------------

    def import_from(
        self,
        system: System,
        files: Iterable[str | PathLike[str]],
        *,
        user_id: str | None = None,
        source_user: str | None = None,
        agent_id: str = "agent",
        dry_run: bool = False,
        progress: Callable[[int], None] | None = None,
        tenant_id: str = DEFAULT_TENANT,
    ) -> MoveReport:
        """Import another system's memory from its files: mem0, zep, letta, chatgpt, claude or portable.

        The report says what was written, what was already here, and what could not be imported, item by item; with
        `dry_run` nothing is written and the report is the same. Every event names its source system, and none is
        presented as observed. `user_id` is the user it is imported for; by default, the users that the source names.
        `source_user` is that user's name in the source, if it differs.
        """
        require_room("moving", "portable memory")
        from muniment.moving.importing import import_source
        from muniment.moving.sources import open_source

        source = open_source(system, files, source_user or user_id)
        return import_source(
            self._ctx, source, tenant_id=tenant_id, user_id=user_id, agent_id=agent_id, dry_run=dry_run,
            progress=progress,
        )  # fmt: skip

    def import_memory(
        self,
        source: str | PathLike[str] | list[bytes] | Callable[[], Iterable[bytes]],
        *,
        user_id: str | None = None,
        agent_id: str = "agent",
        dry_run: bool = False,
        progress: Callable[[int], None] | None = None,
        tenant_id: str = DEFAULT_TENANT,
    ) -> MoveReport:
        """Import a portable file (a path, its lines, or a function that opens them), checked to its end first.

        It becomes the memory of `user_id`, or of the user that the file names. See `import_from`.
        """
        require_room("moving", "portable memory")
        from muniment.moving.importing import import_source
        from muniment.moving.sources import portable_source

        return import_source(
            self._ctx, portable_source(source), tenant_id=tenant_id, user_id=user_id, agent_id=agent_id,
            dry_run=dry_run, progress=progress,
        )  # fmt: skip

    def export_memory(self, *, user_id: str, tenant_id: str = DEFAULT_TENANT) -> Iterator[bytes]:
        """Export a user's memory as one neutral file: messages, facts with their history, and their evidence.

        As JSON lines, each of the schema `PortableLine`.
        """
        require_room("moving", "portable memory")
        from muniment.moving.exporting import export_memory

        return export_memory(self._ctx, tenant_id, user_id)

    # -- upkeep ---------------------------------------------------------------------------------------

    def rebuild(self, *, tenant_id: str = DEFAULT_TENANT) -> RebuildReport:
        """Recompute every projection from the ledger and repair what differs."""
        from muniment.store.verify import rebuild

        return rebuild(self._ctx, tenant_id)

    def reembed(self, *, tenant_id: str = DEFAULT_TENANT, progress: Callable[[int], None] | None = None) -> int:
        """Embed every turn with the current embedder; run it after an embedder was added or changed."""
        from muniment.memory.vectors import reembed

        return reembed(self._ctx, tenant_id, progress)

    def values(
        self, name: str, *, user_at: int | None = None, user_id: str | None = None, tenant_id: str = DEFAULT_TENANT
    ) -> ValueSpace:
        """Values under namespaces and keys, in a named space; the storage of LangGraph's long-term memory.

        `user_at` is the index of the namespace label that names the value's user. With `user_id` the space is limited
        to that user.
        """
        from muniment.handles.value_space import ValueSpace

        return ValueSpace(self._ctx, name, tenant_id, user_at, user_id)

    def threads(self, name: str, *, user_id: str | None = None, tenant_id: str = DEFAULT_TENANT) -> ThreadSpace:
        """Checkpoints of threads, in a named space; the storage of LangGraph's checkpointer. With `user_id` the space
        is limited to that user.
        """
        from muniment.handles.thread_space import ThreadSpace

        return ThreadSpace(self._ctx, name, tenant_id, user_id)

    def upkeep(
        self,
        *,
        kinds: Iterable[UpkeepKind] = ("index", "scrub"),
        lease_seconds: float = 10.0,
        tenant_id: str | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> UpkeepReport:
        """Do pending upkeep, as one of several processes that share it by leases in the store.

        `kinds` are some of `index`, `scrub` and `extract` (which proposes facts, and uses the store's model if it has
        one), for one tenant or all. A scrub covers the whole store, and is skipped if a tenant is named. Each piece
        belongs to one process at a time. A process that makes no progress for `lease_seconds` loses its pieces to
        others and can no longer write them. It ends when nothing is pending, or others hold the rest.
        """
        from muniment.handles.upkeep.records import kinds_given, lease_given
        from muniment.handles.upkeep.running import Upkeep

        chosen = kinds_given(kinds, tenant_id)
        lease_s = lease_given(lease_seconds)
        return Upkeep(self._ctx, chosen, tenant_id=tenant_id, lease_s=lease_s, progress=progress).run()

    def scrub(self) -> ScrubbedFiles:
        """Rebuild the store's files without the parts emptied by forgets, and settle the receipts that waited for it.

        Most forgets do this themselves. On PostgreSQL they leave large tables to this, which locks each for a while.
        """
        from muniment.store.scrub import scrub

        return scrub(self._ctx)
