"""A run's use of learned memory: recall before it acts, a working set while it does, a fold when it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from muniment.errors import InvalidInput

if TYPE_CHECKING:
    from muniment.contracts.learning import FoldResult, ReuseSelectMeta, WorkingSet, WorkingSetRecord
    from muniment.contracts.runs import RunConfig, RunCost, VerifierResult
    from muniment.core.scope import RuleType, Scope, ScopeLevel
    from muniment.learning.folding import Learned
    from muniment.learning.recalling import Recall
    from muniment.learning.records import IntentParts, RunBlocks, RunLessons, StateParts
    from muniment.memory.patches import Writer
    from muniment.rules.selection import RuleSelection
    from muniment.store.context import Context
    from muniment.store.ledger import EntryDraft

__all__ = ["RunLearning", "learn_and_end", "learn_from"]

MIDWAY = ("ws_overflow", "phase_shift", "budget_hit", "fail_cluster", "manual")
"""Reasons to fold a run that continues (RC-10)."""


class RunLearning:
    """Lessons from earlier runs, and from this run for later ones: `run.learning`."""

    def __init__(self, ctx: Context, scope: Scope, writer: Callable[[], Writer], task_type: str) -> None:
        """`writer` makes a writer for each write."""
        self._ctx = ctx
        self._scope = scope
        self._writer = writer
        self._task_type = task_type

    def recall(
        self,
        query: str,
        *,
        intent: IntentParts | Mapping[str, Any] | None = None,
        state: StateParts | Mapping[str, Any] | None = None,
        bucket_key: str | None = None,
        features: Mapping[str, Any] | None = None,
        sources: Iterable[str] | None = None,
        top_k: int | None = None,
        now: Any = None,
        keep: bool = True,
    ) -> Recall:
        """Recall lessons of earlier runs that fit this one, as short hints within the injection budget.

        `text` goes into the prompt, and into the packets of planner and tool. Without intent and state, matches by
        words alone, and says so.

        With `keep=False` it is a preview: nothing is recorded for the run or counted as used.
        """
        from muniment.learning import recalling

        return recalling.recall(
            self._writer(),
            query,
            intent=intent,
            state=state,
            bucket_key=bucket_key,
            features=features,
            sources=sources,
            top_k=top_k,
            now=now,
            keep=keep,
        )

    def select_rules(
        self,
        *,
        intent: IntentParts | Mapping[str, Any] | None = None,
        state: StateParts | Mapping[str, Any] | None = None,
        bucket_key: str | None = None,
        features: Mapping[str, Any] | None = None,
        max_rules: int | None = None,
        allow_types: Sequence[RuleType] | None = None,
        prompt_profile: str | None = None,
        keep: bool = True,
    ) -> RuleSelection:
        """Select the rules for this run, from the rulebooks it may see; `text` goes into the prompt, and into its
        builds.

        The run's id draws the trial rules it gets and the active rules it goes without. With `keep=False` it is a
        preview: nothing is recorded for the run or counted.
        """
        from muniment.rules.selection import read_asked, select_for_run

        asked = read_asked(
            self._ctx,
            intent=intent,
            state=state,
            bucket_key=bucket_key,
            features=features,
            max_rules=max_rules,
            allow_types=allow_types,
            prompt_profile=prompt_profile,
        )
        return select_for_run(self._writer(), asked, keep=keep)

    def used(self, recalled: Recall | str, memory_ids: Iterable[str]) -> None:
        """Record which hints of a recall were really used, if known; otherwise all injected hints count.

        Lessons are counted by what was drawn for the run, regardless of this call.
        """
        from muniment.learning.recalling import Recall, note_used
        from muniment.memory.patches import texts_of

        request_id = recalled.request.request_id if isinstance(recalled, Recall) else recalled
        if not isinstance(request_id, str):
            raise InvalidInput("wanted a recall, or its request_id", path="$.recalled")
        note_used(self._writer(), request_id, texts_of(memory_ids, "$.memory_ids"))

    def note(self, **parts: Iterable[str]) -> WorkingSetRecord:
        """Add facts, assumptions, constraints, decisions or open_questions to the working set on top of the stack.

        A working set over the policy's limit is folded: it is retired, and a small one replaces it.
        """
        from muniment.learning import working_sets

        record = working_sets.note(self._writer(), parts)
        if working_sets.set_bytes(record) <= self._ctx.policy.learn.fold.working_set_bytes_max:
            return record
        self.fold("ws_overflow")
        return working_sets.shrink(self._writer())

    def push_working_set(self, *, ttl: str | None = None, **parts: Iterable[str]) -> WorkingSetRecord:
        """Open a working set on top of the stack, for a part of the task."""
        from muniment.learning import working_sets

        return working_sets.push_set(self._writer(), parts, ttl)

    def pop_working_set(self) -> WorkingSetRecord:
        """Retire the working set on top of the stack and return it."""
        from muniment.learning import working_sets

        return working_sets.pop_set(self._writer())

    def working_set(self) -> tuple[WorkingSet, tuple[WorkingSetRecord, ...]]:
        """The stack by ids, and its records, bottom first."""
        from muniment.learning import working_sets

        scope, now = self._scope, self._ctx.now()
        records = self._ctx.engine.read(scope.tenant_id, lambda reader: working_sets.live_sets(reader, scope, now))
        return working_sets.stack_of(records), tuple(records)

    def fold(
        self,
        trigger: Literal["ws_overflow", "phase_shift", "budget_hit", "fail_cluster", "manual"] = "manual",
        *,
        verifier_result: VerifierResult | Mapping[str, Any] | None = None,
        **learning: Any,
    ) -> FoldResult:
        """Fold a run that continues: its work so far becomes an episode, and its working set is named."""
        if trigger not in MIDWAY:
            raise InvalidInput(f"{trigger!r:.40} is no reason to fold midway", path="$.trigger", hint=", ".join(MIDWAY))
        records = self.working_set()[1]
        ws_id = records[-1].ws_id if records else None
        return learn_from(
            self._writer(), verifier_result, trigger, learning, task_type=self._task_type, is_final=False, ws_id=ws_id
        ).fold

    def learn(
        self,
        verifier_result: VerifierResult | Mapping[str, Any],
        *,
        intent: IntentParts | Mapping[str, Any] | None = None,
        state: StateParts | Mapping[str, Any] | None = None,
        bucket_key: str | None = None,
        features: Mapping[str, Any] | None = None,
        cost: RunCost | Mapping[str, Any] | None = None,
        cfg: RunConfig | Mapping[str, Any] | None = None,
        reuse: ReuseSelectMeta | None = None,
        blocks: RunBlocks | Mapping[str, Any] | None = None,
        level: ScopeLevel = "user",
        lessons: Any = None,
    ) -> Learned:
        """Fold the run into memory by a verifier's result: log, episode, tactics, seed, drafts, in one plan.

        Learning twice has no further effect. `finish(verifier_result=…)` does this and ends the run. Intent and state
        default to those the run recalled with. `blocks` are parts of its EventLog that its entries lack: its mode, and
        what it was an attempt of. `lessons` is a model that writes lessons from it, if it differs from the store's: an
        address, or a function of messages.
        """
        said = {
            "intent": intent,
            "state": state,
            "bucket_key": bucket_key,
            "features": features,
            "cost": cost,
            "cfg": cfg,
            "reuse": reuse,
            "blocks": blocks,
            "level": level,
            "lessons": lessons,
        }
        return learn_from(self._writer(), verifier_result, None, said, task_type=self._task_type, is_final=True)

    def learned(self) -> Learned | None:
        """The result of learning from the run at its end, as reported then; None if it was not learned from."""
        from muniment.learning.folding import find_learned

        return find_learned(self._ctx, self._scope)

    def lessons(self) -> RunLessons:
        """The lessons the run had, those held out of it to measure them, and those that came from it."""
        from muniment.learning.recalling import run_lessons

        scope = self._scope
        return self._ctx.engine.read(scope.tenant_id, lambda reader: run_lessons(reader, scope))


def learn_from(
    writer: Writer,
    verifier_result: Any,
    trigger: str | None,
    said: Mapping[str, Any],
    *,
    task_type: str,
    is_final: bool,
    ws_id: str | None = None,
) -> Learned:
    """Fold a run by a verifier's result; `said` are further arguments of `RunLearning.learn`, by name.

    The bank is tidied now and then as it grows.
    """
    return _learn(writer, verifier_result, trigger, said, None, task_type, is_final, ws_id)[0]


def learn_and_end(
    writer: Writer, verifier_result: Any, said: Mapping[str, Any], ending: EntryDraft, task_type: str
) -> tuple[Learned, bool]:
    """Fold a run that ends, and write its final entry with it; also returns whether that was written."""
    return _learn(writer, verifier_result, None, said, ending, task_type, is_final=True, ws_id=None)


def _learn(
    writer: Writer,
    verifier_result: Any,
    trigger: str | None,
    said: Mapping[str, Any],
    ending: EntryDraft | None,
    task_type: str,
    is_final: bool,
    ws_id: str | None,
) -> tuple[Learned, bool]:
    from muniment.core.outside.calling import caught
    from muniment.core.scope import bank_owner
    from muniment.learning.folding import Ending, learn_run
    from muniment.learning.learn_requests import LEARNING, is_defect, learn_request, learning_failed
    from muniment.learning.tidying import bank_length, tidy_sometimes

    unknown = sorted(set(said) - set(LEARNING))
    if unknown:
        raise InvalidInput(f"there is no {unknown[0]!r:.40}", path=f"$.{unknown[0]}", hint=", ".join(LEARNING))
    asked = learn_request(
        writer,
        verifier_result,
        is_final=is_final,
        is_ending=ending is not None,
        ws_id=ws_id,
        trigger=trigger,
        task_type=task_type,
        **(dict(LEARNING) | dict(said)),
    )
    tenant_id, owner = writer.scope.tenant_id, bank_owner(writer.scope, asked.level)
    since = bank_length(writer.ctx, tenant_id, owner)
    learnt = learn_run(writer.ctx, writer.scope, asked, None if ending is None else Ending(writer, ending))
    tidied = caught(lambda: tidy_sometimes(writer.ctx, tenant_id, owner, since=since)).exception()
    if tidied is None:
        return learnt
    if is_defect(tidied):
        raise learning_failed(tidied, writer.scope.run_id, "was learnt from, and its bank not tidied") from tidied
    raise tidied
