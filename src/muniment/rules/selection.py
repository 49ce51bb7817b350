"""Selecting rules for a run from the banks it may see, and recording them in the run (RC-15)."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast, get_args

from muniment.contracts.rules import CandidateSelectRequest, CandidateSelectResponse
from muniment.core.limits import drop_tenant
from muniment.core.ports.engine import Condition
from muniment.core.ports.rows import select
from muniment.core.ports.schema import ITEMS
from muniment.core.record import RULECRAFT_VERSION, Numeric
from muniment.core.requests import Expect, Request, checked
from muniment.core.scope import RuleType, owners_seen
from muniment.errors import Conflict
from muniment.learning.banks import find_memory, list_memories
from muniment.learning.keys import rule_place_key
from muniment.learning.projection import core_name
from muniment.learning.recalling import bucket_named, features_given, features_of, intent_given, state_given
from muniment.learning.records import RuleArm
from muniment.memory.patches import Decided, draft_patch, write_patches
from muniment.rules._records import RefusedRule
from muniment.rules._select import Candidate, RuleRequest, Selected, compile_rule, select_rules
from muniment.rules.rulebook import list_revisions, revision_of
from muniment.store.admission import is_id
from muniment.store.items import lock_shared
from muniment.store.ledger import RULES_SELECTED
from muniment.verify.results import parse_bucket_key

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.core.scope import Level
    from muniment.learning.records import IntentParts, StateParts
    from muniment.memory.patches import Writer
    from muniment.rules._select import Candidate
    from muniment.store.context import Context


# == rule cache =======================================================================================================

RULE_NAMES_MAX = 1024


class RuleCache:
    """Rules prepared for selection, by bank and place; each with the revision it was read at."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[str, str, str], tuple[int, tuple[Candidate, ...]]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[str, str, str]) -> tuple[int, tuple[Candidate, ...]] | None:
        with self._lock:
            found = self._held.get(key)
            if found is not None:
                self._held.move_to_end(key)
            return found

    def put(self, key: tuple[str, str, str], revision: int, candidates: tuple[Candidate, ...]) -> None:
        with self._lock:
            self._held[key] = (revision, candidates)
            self._held.move_to_end(key)
            while len(self._held) > RULE_NAMES_MAX:
                self._held.popitem(last=False)

    def clear(self, tenant_id: str | None = None) -> None:
        with self._lock:
            drop_tenant(self._held, tenant_id)


# == rule selecting ===================================================================================================

_TRIES = 3
_RULES_MAX = 1_000
_TYPES: tuple[RuleType, ...] = get_args(RuleType)


@dataclass(frozen=True, slots=True)
class RulesAsked:
    """The criteria for selecting rules."""

    intent: IntentParts
    state: StateParts
    bucket_key: str | None
    features: Mapping[str, Any]
    max_rules: int
    allow_types: tuple[RuleType, ...]
    prompt_profile: str | None


@dataclass(frozen=True, slots=True)
class RuleSelection:
    """The rules of a run: request and response, refused rules with reasons, and the text for the prompt."""

    request: CandidateSelectRequest
    response: CandidateSelectResponse
    arms: tuple[RuleArm, ...]
    """Every rule that would have been chosen, and whether the run got it."""
    text: str
    """The text for the prompt, guards first; empty if no rule applies."""
    tokens: int
    revisions: Mapping[str, int]
    """For each bank, the revision in force."""
    chosen: Selected = field(repr=False)

    @property
    def refused(self) -> tuple[RefusedRule, ...]:
        """Every rule that was considered and not chosen, with the reason. Computed on demand."""
        return self.chosen.refused

    @property
    def id(self) -> str:
        return self.request.request_id


# -- arguments ----------------------------------------------------------------------------------------


class SelectionRequest(Request):
    """The number and types of rules requested, and the prompt profile."""

    max_rules: Annotated[
        Annotated[int, Numeric(integral=True, minimum=0, maximum=_RULES_MAX)],
        Expect(f"max_rules is a whole number from 0 to {_RULES_MAX}"),
    ]
    allow_types: Annotated[
        list[RuleType] | tuple[RuleType, ...], Expect("not types of rules", len, hint=", ".join(_TYPES))
    ]
    prompt_profile: Annotated[str | None, Expect("a prompt profile is a name", is_id)]


def read_asked(
    ctx: Context,
    *,
    intent: Any = None,
    state: Any = None,
    bucket_key: Any = None,
    features: Any = None,
    max_rules: Any = None,
    allow_types: Any = None,
    prompt_profile: Any = None,
) -> RulesAsked:
    """Validate a request for rules."""
    most = ctx.policy.rules.select.max_rules if max_rules is None else max_rules
    types = _TYPES if allow_types is None else allow_types
    asked = checked(SelectionRequest, max_rules=most, allow_types=types, prompt_profile=prompt_profile)
    bucket = bucket_named(bucket_key)
    return RulesAsked(
        intent_given(intent),
        state_given(state),
        bucket,
        features_given(features),
        asked.max_rules,
        tuple(asked.allow_types),
        prompt_profile,
    )


# -- choosing -----------------------------------------------------------------------------------------


def ask_rules(
    ctx: Context, tenant_id: str, owners: tuple[str, ...], asked: RulesAsked, *, run_id: str, x_ref: str
) -> tuple[RuleSelection, dict[str, tuple[str, int]]]:
    """Select rules; returns the selection, and for each rule in it the bank and version it was read at."""
    request = _request(ctx, asked, x_ref)
    names = names_for(asked.intent.domain_tag, asked.intent.task_family)

    wanted = RuleRequest(
        request=request,
        domain_tag=asked.intent.domain_tag,
        task_family=asked.intent.task_family,
        bucket_key=asked.bucket_key,
        impact=_impact(asked.bucket_key),
        features=features_of(asked.intent, asked.state, asked.bucket_key, asked.features),
        run_id=run_id,
        now=ctx.now(),
    )

    def read(reader: Reader) -> tuple[Selected, list[tuple[str, int]], dict[str, tuple[str, int]]]:
        chosen, revisions, read_at = choose(reader)
        if not _are_there(reader, {rule_id: version for rule_id, (_, version) in read_at.items()}):
            ctx.cache(RuleCache).clear()  # another process forgot one of them
            chosen, revisions, read_at = choose(reader)
        return chosen, revisions, read_at

    def choose(reader: Reader) -> tuple[Selected, list[tuple[str, int]], dict[str, tuple[str, int]]]:
        found = [(owner, *candidates_for(ctx, reader, tenant_id, owner, names)) for owner in owners]
        candidates = [candidate for _, _, each in found for candidate in each]
        chosen: Selected = select_rules(candidates, wanted, ctx.policy.rules)
        known = {one.memory.id: (owner, one.memory.version) for owner, _, each in found for one in each}
        revisions = [(owner, revision) for owner, revision, _ in found]
        return chosen, revisions, {arm.rule_id: known[arm.rule_id] for arm in chosen.arms}

    chosen, revisions, read_at = ctx.engine.read(tenant_id, read)
    selection = RuleSelection(
        request,
        chosen.response,
        chosen.arms,
        chosen.text,
        ctx.counter.count(chosen.text),
        dict(revisions),
        chosen,
    )
    return selection, read_at


class _Version(NamedTuple):
    id: str
    version: int


def _are_there(reader: Reader, versions: Mapping[str, int]) -> bool:
    """Return whether none of these rules was forgotten. Forgetting makes no revision, so the cache may be out
    of date.
    """
    if not versions:
        return True
    where: tuple[Condition, ...] = (
        ("id", "in", tuple(versions)),
        ("version", "in", tuple(set(versions.values()))),
        ("receipt_id", "=", None),
    )
    return versions.items() <= set(select(reader, ITEMS, where, into=_Version))


def _impact(bucket_key: str | None) -> Level | None:
    return None if bucket_key is None else parse_bucket_key(bucket_key).impact


def _request(ctx: Context, asked: RulesAsked, x_ref: str) -> CandidateSelectRequest:
    plain: dict[str, Any] = {
        "schema_version": RULECRAFT_VERSION,
        "request_id": ctx.ids.new("sel"),
        "x_ref": x_ref,
        "constraints": {"max_rules": asked.max_rules, "allow_types": list(asked.allow_types)},
    }
    context: dict[str, Any] = {}
    if asked.prompt_profile is not None:
        plain["constraints"]["prompt_profile"] = asked.prompt_profile
    if asked.bucket_key is not None:
        bucket = parse_bucket_key(asked.bucket_key)
        plain["bucket_key"] = asked.bucket_key
        context = {"impact_level": bucket.impact, "domain_tag": bucket.domain, "user_clarity": bucket.clarity}
    if asked.intent.domain_tag is not None:
        context["domain_tag"] = asked.intent.domain_tag
    return CandidateSelectRequest.from_wire(plain | ({"context": context} if context else {}))


# -- recording ----------------------------------------------------------------------------------------


def select_for_run(writer: Writer, asked: RulesAsked, *, keep: bool) -> RuleSelection:
    """Select rules for a run; with `keep`, write the selection into the run."""
    ctx, scope = writer.ctx, writer.scope
    for _ in range(_TRIES):
        selection, read_at = ask_rules(
            ctx, scope.tenant_id, owners_seen(scope), asked, run_id=scope.run_id, x_ref=scope.run_id
        )
        if not keep or not any(selection.revisions.values()) or _tell(writer, selection, read_at):
            return selection  # without any rule there is nothing to record
        ctx.cache(RuleCache).clear()
    raise Conflict("the rulebook keeps changing while rules are chosen", hint="try again")


def _tell(writer: Writer, selection: RuleSelection, read_at: Mapping[str, tuple[str, int]]) -> bool:
    """Write a selection into the run; returns False if one of its rules was changed or forgotten since it was read."""
    said = {
        "id": selection.id,
        "request": selection.request.to_wire(),
        "response": selection.response.to_wire(),
        "arms": [{"arm": arm.to_wire(), "owner": read_at[arm.rule_id][0]} for arm in selection.arms],
        "revisions": dict(selection.revisions),
        "text": selection.text,
        "tokens": selection.tokens,
        "sources": [arm.rule_id for arm in selection.arms],
    }
    still_stands: list[bool] = []

    def decide(tx: Transaction) -> Decided:
        if any(owner != owners_seen(writer.scope)[0] for owner, _ in read_at.values()):
            lock_shared(tx)
        still_stands.append(all(_stands(tx, rule_id, *at) for rule_id, at in read_at.items()))
        return Decided([draft_patch(RULES_SELECTED, "assistant", said)] if still_stands[-1] else [])

    write_patches(writer, decide, lambda _reader: None)
    return still_stands[-1]


def _stands(reader: Reader, rule_id: str, owner: str, version: int) -> bool:
    held = find_memory(reader, (owner,), rule_id)
    return held is not None and held.memory.version == version


def names_for(domain_tag: str | None, task_family: str | None) -> tuple[str, ...]:
    """The names under which rules for such a run are looked up: its family, its domain, and rules for anything."""
    said: list[dict[str, Any]] = [{"task_family": task_family}] if task_family else []
    said += [{"domain_tag": domain_tag}] if domain_tag else []
    named = [core_name(rule_place_key({"applicability": where})) for where in (*said, {})]
    return tuple(cast("str", name) for name in named)


def candidates_for(
    ctx: Context, reader: Reader, tenant_id: str, owner: str, names: Sequence[str]
) -> tuple[int, list[Candidate]]:
    """The revision in force, and its rules under these names."""
    revision = revision_of(reader, tenant_id, owner)
    if revision == 0:
        return 0, []
    found: list[Candidate] = []
    for name in names:
        found += _candidates_named(ctx, reader, (tenant_id, owner, name), revision)
    return revision, found


def _candidates_named(ctx: Context, reader: Reader, key: tuple[str, str, str], revision: int) -> tuple[Candidate, ...]:
    """The rules under one name of a rulebook, from the cache unless it is out of date."""
    tenant_id, owner, name = key
    held = ctx.cache(RuleCache).get(key)
    if held is not None:
        if held[0] == revision:
            return held[1]
        changed = list_revisions(reader, tenant_id, owner, after=held[0])
        if len(changed) == revision - held[0] > 0 and all(name not in each.names for each in changed):
            ctx.cache(RuleCache).put(key, revision, held[1])
            return held[1]
    compiled = tuple(
        compile_rule(each.memory, ctx.counter.count)
        for each in list_memories(reader, owner, "rule", name=name)
        if each.memory.stage in ("canary", "active") or each.memory.layer == "user"
    )
    ctx.cache(RuleCache).put(key, revision, compiled)
    return compiled
