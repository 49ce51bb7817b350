"""Builds: compose for a request, keep the inputs, compose again, compare two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

from muniment.contracts.packet import Cues, MemoryPacket, PacketBudget, WorkingState
from muniment.core.canonical import Written, canonical_bytes, check_text, digest, read_canonical, salted_digest
from muniment.core.instants import format_instant, in_zone, offset_minutes, parse_instant, parse_rfc3339
from muniment.core.limits import checkpoint
from muniment.core.listing import ListQuery, Placed, matches
from muniment.core.policy import Policy
from muniment.core.ports.engine import Condition, Lock, Reader, Transaction
from muniment.core.ports.rows import select, texts
from muniment.core.ports.schema import ENTRIES, ITEMS
from muniment.core.record import Numeric, ValidationError, issues_of
from muniment.core.requests import Expect, ObjectOrNone, Request, checked, one_of, whole
from muniment.core.scope import IdText, Scope
from muniment.errors import (
    ComposedBefore,
    Conflict,
    IdempotencyMismatch,
    IntegrityFailure,
    InvalidInput,
    InvalidRecord,
    Issue,
    MunimentError,
    NotFound,
)
from muniment.memory.index import turn_state
from muniment.memory.turn_reading import check_cited, turns_by_id
from muniment.memory.working_state import state_id
from muniment.packets._derived import answer_name
from muniment.packets.answers import Resolution, resolve
from muniment.packets.compose import Composed, compose, write_packet
from muniment.packets.gather import gather_pool
from muniment.packets.in_view import page_beside, read_views, still_true, union_marks
from muniment.packets.line_counts import line_counts_of
from muniment.packets.marks import KeptMarks, keep_marks, read_marks
from muniment.packets.page import CLAIMS, HINTS, summary_evidence
from muniment.packets.pool import (
    ComposeRequest,
    GivenRules,
    KnownMarks,
    Pool,
    VectorsRead,
    ids_in_kept,
    read_kept,
    versions_of,
    written_table,
)
from muniment.packets.render import Rendered, guard, to_anthropic, to_openai
from muniment.store.context import Context
from muniment.store.items import Change, Item, add_item, digest_name, latest, latest_of_run, lock_memory, select_items
from muniment.store.ledger import LedgerEntry
from muniment.store.lists.seeking import find_listed, read_listed, read_named, seek
from muniment.store.proofs import check_proof, check_proofs, prove
from muniment.store.reading import entry_in
from muniment.store.secrets import redact_value
from muniment.store.watermark import read_user

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader
    from muniment.core.ports.models import TokenCounter
    from muniment.store.context import Context

__all__ = [
    "Build",
    "BuildInputs",
    "BuildKey",
    "Readable",
    "build_of",
    "builds_of_run",
    "compose_build",
    "compose_inputs",
    "find_keyed",
    "gather_inputs",
    "key_of_build",
    "list_builds",
    "list_readables",
    "load_build",
    "lock_key",
    "page_answers",
    "page_builds",
    "plain_request",
    "recompose",
]


class BuildKey(NamedTuple):
    """An idempotency key with its request."""

    name: str
    """The lookup name of the build."""
    said: bytes
    """The request, to distinguish another one under the same key."""
    salt: bytes

    @property
    def kept(self) -> dict[str, str]:
        """The data kept in the build."""
        return {"name": self.name, "salt": self.salt.hex(), "said": salted_digest(self.salt, self.said).hex()}


def key_of_build(scope: Scope, key: str, asked: dict[str, Any], salt: bytes) -> BuildKey:
    """Build a caller's key; `asked` is the request as plain data."""
    # Never the bare digest of the key: a caller may well use the query, or its hash, as the key (LG-07).
    named = canonical_bytes(["muniment.build_key.v1", scope.tenant_id, scope.user_id, key]).decode()
    return BuildKey(digest_name(named), canonical_bytes([scope.run_id, asked]), salt)


def plain_request(
    given: dict[str, Any], max_tokens: int | None, policy: str, now: Any, task_type: str
) -> dict[str, Any]:
    """The request as given: fields left to the store and its clock stay open."""
    sections = given["per_section"]
    return given | {
        "cues": None if given["cues"] is None else dict(given["cues"]),
        "max_tokens": whole(max_tokens),
        "per_section": None if sections is None else {name: whole(cap) for name, cap in sections.items()},
        "policy": policy,
        "now": None if now is None else format_instant(parse_instant(now, path="$.now")),
        "task_type": task_type,
    }


def lock_key(tx: Transaction, scope: Scope, key: BuildKey) -> None:
    """Lock a key, so that one request under it runs at a time."""
    tx.do(Lock(("build_key", scope.user_id, key.name)))


def find_keyed(reader: Reader, scope: Scope, key: BuildKey) -> Item | None:
    """The build made under the key; a different request raises a mismatch."""
    where: tuple[Condition, ...] = (("kind", "=", "build"), ("user_id", "=", scope.user_id), ("name", "=", key.name))
    found = [item for item in select_items(reader, where, order=("created_at", "id"), limit=1) if item.body is not None]
    if not found:
        return None
    kept = found[0].plain().get("key", {})
    if kept.get("said") != salted_digest(bytes.fromhex(kept.get("salt", "")), key.said).hex():
        raise IdempotencyMismatch(
            "this idempotency key was used for another request",
            path="$.idempotency_key",
            details={"id": found[0].id},
        )
    return found[0]


PURPOSES = ("planner", "tool", "responder")
TRIES = 3
TOKENS_MIN, TOKENS_MAX = 256, 10_000_000
_AFTER_RULES = "\n\n"
_JOINT_TOKENS = 2
"""The most tokens that two texts may take jointly beyond their separate counts."""
_FEW = 16
"""Up to this many turns are checked directly, which is cheaper than reading the index state twice."""
_SECTIONS = ("working_state", "facts", "procedures", "short_term_summary", "episodes", "insights")


@dataclass(frozen=True)
class Build:
    """A packet, its text, and all of its inputs."""

    id: str
    packet_bytes: bytes = field(repr=False)
    """The packet as canonical JSON."""
    text: str
    tokens: int
    marks: Mapping[str, str]
    """The evidence that each mark in the text refers to."""
    request: ComposeRequest
    _pool: Pool | Callable[[], Pool] = field(repr=False)
    """The gathered pool, or a function that reads it from the store."""
    policy: Policy = field(repr=False)
    rules: GivenRules | None = None
    """The run's selected rules: placed before the packet in the text, and counted."""
    stable_chars: int = 0
    """The length of the text's stable prefix, which is worth caching."""

    @cached_property
    def pool(self) -> Pool:
        """All candidates of the packet. For a stored build, read on first use."""
        return self._pool if isinstance(self._pool, Pool) else self._pool()

    @cached_property
    def packet(self) -> MemoryPacket:
        """The packet, read and validated on first use."""
        return MemoryPacket.from_wire(read_canonical(self.packet_bytes.decode()))

    @cached_property
    def found(self) -> bool:
        """Return whether memory holds an answer to the query.

        True if a quote is evidence with a probability of `policy.compose.found_min` or more, or a fact of the packet or
        a line of the run's state has `match_min` of the query's words. The probability is
        `explain.filters.evidence.chance`. Without a query, true if the packet is not empty. The packet does not state
        the result in words: on real chats that suppressed more answers than it was right about. It is kept in the
        packet; for a build by an earlier version it is unknown, and true if there is a text.
        """
        told = self.packet.explain.filters.get("evidence")
        found = told.get("found") if isinstance(told, dict) else None
        return found if isinstance(found, bool) else bool(self.text)

    @cached_property
    def fact_versions(self) -> tuple[str, ...]:
        """The packet's facts with their versions, as names under which another packet can exclude them."""
        return versions_of(self.pool.facts, (fact.fact_id for fact in self.packet.long_term.facts))

    def _rendered(self) -> Rendered:
        return Rendered(self.text, dict(self.marks), self.request.query, self.stable_chars)

    def to_openai(self, *, include_query: bool = True, cite: bool = True) -> list[dict[str, Any]]:
        """Chat messages for OpenAI: context, question, and then a reminder to cite.

        Like the question, the reminder is not counted in `tokens`; `cite=False` omits it.
        """
        return to_openai(self._rendered(), include_query=include_query, cite=cite)

    def to_anthropic(
        self, *, include_query: bool = True, cite: bool = True, cache: bool = False
    ) -> list[dict[str, Any]]:
        """Chat messages for Anthropic; `cache` sets a breakpoint after the stable prefix."""
        return to_anthropic(self._rendered(), include_query=include_query, cite=cite, cache=cache)

    def resolve(self, answer: str) -> Resolution:
        """Resolve the citations of a model's answer by sentence, with its unknown marks."""
        if not isinstance(answer, str):
            raise InvalidInput("an answer is text", path="$.answer")
        return resolve(answer, self.marks)


def compose_build(
    ctx: Context,
    scope: Scope,
    purpose: str,
    *,
    query: str,
    cues: Mapping[str, Any] | None,
    max_tokens: int | None,
    per_section: Mapping[str, int] | None,
    policy: Policy,
    now: Any,
    task_type: str,
    exclude_session: bool = False,
    exclude: Iterable[str] = (),
    in_view: Iterable[str] | None = None,
    opening: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
    policy_asked: str | None = None,
) -> Build:
    """Gather, compose and keep a packet. `opening` is the start data of a run that has not written yet; `policy_asked`
    is the name by which the policy was requested, if any.

    Under an idempotency key the same request returns the build it made before.
    """
    viewed = None if in_view is None else _id_list(in_view, "in_view")
    key: BuildKey | None = None
    if idempotency_key is not None:
        asked = policy.compose.max_tokens if max_tokens is None else whole(max_tokens)
        given = {"purpose": purpose, "query": query, "cues": cues, "per_section": per_section}
        checked(KeyedRequest, **given, max_tokens=asked, idempotency_key=idempotency_key)
        said = plain_request(given, max_tokens, policy_asked or policy.digest, now, task_type)
        left_out = _left_out(exclude_session, exclude) | ({} if viewed is None else {"in_view": viewed})
        key = key_of_build(scope, idempotency_key, said | left_out, ctx.ids.salts(1)[0])
        found = ctx.engine.read(scope.tenant_id, partial(find_keyed, scope=scope, key=key))
        if found is not None:
            return load_build(ctx, scope.tenant_id, found.id)

    moment = _asked_at(ctx, now)  # fixed for the request, however often it is gathered
    id_ = ctx.ids.new("bld")
    for _ in range(TRIES):
        inputs = gather_inputs(
            ctx,
            scope,
            purpose,
            query=query,
            cues=cues,
            max_tokens=max_tokens,
            per_section=per_section,
            policy=policy,
            now=moment,
            task_type=task_type,
            exclude_session=exclude_session,
            exclude=exclude,
            opening=opening,
        )
        checkpoint()
        build = _composed(id_, inputs.request, inputs.pool, policy, line_counts_of(ctx), inputs.rules)
        if viewed is not None:
            build = ctx.engine.read(scope.tenant_id, partial(_beside, ctx, build, viewed))
        change = _change(build, ctx.counter.name, key)
        kept = ctx.engine.write(scope.tenant_id, partial(_keep, ctx, build, change, inputs.turns, key))
        if kept is not None:
            return kept
        ctx.clear_caches(scope.tenant_id)  # it may hold data forgotten elsewhere
    raise Conflict("what this build is made of is being forgotten", hint="compose again")


def _beside(ctx: Context, build: Build, build_ids: Sequence[str], reader: Reader) -> Build:
    """The build with a text that omits everything these builds show, as far as they may still be shown."""
    packet = read_canonical(build.packet_bytes.decode())
    views = still_true(reader, read_views(ctx, reader, build.request.scope, build_ids), packet)
    named = tuple(view.id for view in views)
    request = ComposeRequest.unchecked(
        build.request.__dict__ | {"in_view": named}, build.request.model_fields_set | {"in_view"}
    )
    if not views:
        return replace(build, request=request)
    texts = [view.text for view in views]
    page = page_beside(MemoryPacket.from_wire(packet), texts)
    rules = "" if build.rules is None or any(build.rules.text in text for text in texts) else build.rules.text
    text = rules + page.text
    tokens = line_counts_of(ctx).count(text) if text else 0
    marks = union_marks(views, page.marks)
    return replace(build, text=text, tokens=tokens, marks=marks, request=request, stable_chars=0)


class BuildInputs(NamedTuple):
    """The inputs of a build."""

    rules: GivenRules | None
    request: ComposeRequest
    pool: Pool
    turns: int | None
    """The user's forget counter when the pool was read, if needed."""


def gather_inputs(
    ctx: Context,
    scope: Scope,
    purpose: str,
    *,
    query: str,
    cues: Mapping[str, Any] | None,
    max_tokens: int | None,
    per_section: Mapping[str, int] | None,
    policy: Policy,
    now: Any,
    task_type: str,
    exclude_session: bool = False,
    exclude: Iterable[str] = (),
    opening: Mapping[str, Any] | None = None,
) -> BuildInputs:
    """The inputs that `compose_build` would use, read in one transaction. Nothing is written."""
    left_out = _left_out(exclude_session, exclude)
    asked = policy.compose.max_tokens if max_tokens is None else whole(max_tokens)
    moment = _asked_at(ctx, now)

    def gathered(reader: Reader) -> BuildInputs:
        rules = _rules(ctx, reader, scope, asked)
        room = asked if rules is None or rules.omitted is not None else asked - rules.tokens
        request = _request(scope, purpose, query, cues, room, per_section, policy, moment, task_type, left_out)
        request = _with_vectors(ctx, reader, request)
        pool = gather_pool(ctx, reader, request, policy, opening)
        request = _known_marks(reader, request, pool.evidence_ids(), ctx.cache(KeptMarks))
        is_asked_one_by_one = len(pool.hits) <= _FEW
        return BuildInputs(rules, request, pool, None if is_asked_one_by_one else turn_state(reader, scope.user_id))

    return ctx.engine.read(scope.tenant_id, gathered)


def _asked_at(ctx: Context, now: Any) -> Any:
    """The time of the request, by the caller's clock if known."""
    moment = ctx.clock() if now is None else now
    return moment if ctx.timezone is None else in_zone(moment, ctx.timezone)


def _with_vectors(ctx: Context, reader: Reader, request: ComposeRequest) -> ComposeRequest:
    """The request with the extent of the vectors that its search compares."""
    if ctx.embedder is None or not request.query:
        return request
    user = read_user(reader, request.scope.user_id)
    read = VectorsRead(embedder=ctx.embedder.identity, entries=user.embedded, of=user.tail)
    return ComposeRequest.unchecked(request.__dict__ | {"vectors": read}, request.model_fields_set | {"vectors"})


def compose_inputs(ctx: Context, inputs: BuildInputs, policy: Policy, id_: str) -> Build:
    """Build these inputs without storing anything: the session's marks do not include it."""
    build = _composed(id_, inputs.request, inputs.pool, policy, line_counts_of(ctx), inputs.rules)
    ctx.engine.read(inputs.request.scope.tenant_id, partial(_check_marks, ctx, build))
    return build


def _known_marks(
    reader: Reader, request: ComposeRequest, evidence_ids: Iterable[str], kept: KeptMarks | None = None
) -> ComposeRequest:
    """The request with the numbers that earlier packets of the session gave to this evidence."""
    held = read_marks(reader, request.scope, evidence_ids, kept)
    if held.next_number == 1:
        return request
    known = KnownMarks.unchecked({"numbers": held.numbers, "next_number": held.next_number})
    return ComposeRequest.unchecked(request.__dict__ | {"marks": known}, request.model_fields_set | {"marks"})


def _rules(ctx: Context, reader: Reader, scope: Scope, max_tokens: Any) -> GivenRules | None:
    """The rules given to the run, if all of them fit the budget; otherwise none."""
    item = latest_of_run(reader, "rule_selection", scope.user_id, scope.run_id)
    body = {} if item is None else item.plain()
    if not body.get("text"):
        return None
    chosen = tuple(rule["rule_id"] for rule in body["response"]["selected_rules"])
    text = f"{body['text']}{_AFTER_RULES}"
    tokens = ctx.counter.count(text) + _JOINT_TOKENS
    given = GivenRules(selection_id=body["request"]["request_id"], rule_ids=chosen, text=text, tokens=tokens)
    if type(max_tokens) is int and max_tokens - tokens >= TOKENS_MIN:
        return given
    return given.model_copy(update={"text": "", "tokens": 0, "omitted": f"{tokens} tokens of rules leave no room"})


def _versions(pool: Pool, run_id: str) -> dict[str, int]:
    """The versions of the pool's items that a forget may rewrite."""
    held = {each.fact.fact_id: each.version for each in pool.facts}
    return held if pool.working_state is None else held | {state_id(run_id): pool.working_state.state_version}


class _Version(NamedTuple):
    id: str
    version: int
    receipt_id: str | None


def _keep(
    ctx: Context, build: Build, change: Change, turns: int | None, key: BuildKey | None, tx: Transaction
) -> Build | None:
    """Keep a build and the numbers of its marks; None if one of its inputs was forgotten while it was composed. If the
    same request was composed under its key meanwhile, that build is returned.

    If another composer assigned the numbers first, the same pool is composed again with the remaining ones under the
    lock, so that the two agree and no composer retries forever.
    """
    if key is not None:
        lock_key(tx, build.request.scope, key)
        found = find_keyed(tx, build.request.scope, key)
        if found is not None:
            return _reload(ctx, found)
    if _is_forgotten(tx, change, build, turns):
        return None
    viewed = build.request.in_view or ()
    if len(read_views(ctx, tx, build.request.scope, viewed)) < len(viewed):
        return None  # a build in view was forgotten meanwhile
    _check_marks(ctx, build, tx)
    if not _keep_marks(tx, build):
        evidence_ids = {*build.pool.evidence_ids(), *build.marks.values()}
        request = _known_marks(tx, build.request, evidence_ids)
        build = _composed(build.id, request, build.pool, build.policy, line_counts_of(ctx), build.rules)
        if viewed:
            build = _beside(ctx, build, viewed, tx)
        change = _change(build, ctx.counter.name, key)
        if not _keep_marks(tx, build):
            raise IntegrityFailure("the marks of a session do not agree with each other", hint="verify the store")
    prove(ctx, tx, [add_item(tx, change)])
    return build


def _check_marks(ctx: Context, build: Build, reader: Reader) -> None:
    """Check that a packet's citations are in the ledger where they were written."""
    check_cited(ctx, reader, build.request.scope.tenant_id, build.marks.values())


def _keep_marks(tx: Transaction, build: Build) -> bool:
    numbers = {evidence_id: int(number) for number, evidence_id in build.marks.items()}
    known = build.request.marks
    return keep_marks(tx, build.request.scope, numbers, None if known is None else known.numbers)


def _is_forgotten(tx: Transaction, change: Change, build: Build, turns: int | None) -> bool:
    """True if something in the build was forgotten meanwhile. From here until the transaction ends, nothing can be.

    Turns found by a search need no check if none of the user's was forgotten since.
    """
    user_id = build.request.scope.user_id
    lock_memory(tx, user_id)
    held = _versions(build.pool, build.request.scope.run_id)
    named = change.turns
    if turns is not None and turn_state(tx, user_id) == turns:
        found = _found_turns(build.pool)
        named = tuple(id_ for id_ in named if id_ not in found)
    among: tuple[Condition, ...] = (("id", "in", change.sources + named), ("receipt_id", ">", ""))
    if texts(tx, ENTRIES, "id", among):
        return True
    versions = select(tx, ITEMS, (("id", "in", change.sources),), into=_Version, order=("id", "version"))
    receipts = {  # of the version read or, if unknown, the newest
        id_: receipt for id_, version, receipt in versions if held.get(id_, version) == version
    }
    return any(receipt is not None for receipt in receipts.values())


def _composed(
    id_: str,
    request: ComposeRequest,
    pool: Pool,
    policy: Policy,
    counter: TokenCounter,
    rules: GivenRules | None = None,
) -> Build:
    made: Composed = compose(request, pool, policy.compose, counter, policy.digest)
    guard(made.wire)  # the second guard at the wall (MP-12)
    packet_bytes = write_packet(made.wire)
    text = made.text if rules is None else rules.text + made.text
    tokens = made.tokens if rules is None or not rules.text else counter.count(text)
    stable_chars = len(text) - len(made.text) + made.stable_chars
    return Build(id_, packet_bytes, text, tokens, made.marks, request, pool, policy, rules, stable_chars)


class BuildRequest(Request):
    """A packet request, before the policy is applied."""

    purpose: Annotated[str, one_of(PURPOSES, "{given!r} is not a purpose")]
    query: Annotated[str, Expect("a query is text")]
    max_tokens: Annotated[
        int,
        Numeric(integral=True, minimum=TOKENS_MIN, maximum=TOKENS_MAX),
        Expect(f"max_tokens should be a whole number from {TOKENS_MIN} to {TOKENS_MAX}"),
    ]
    cues: ObjectOrNone
    per_section: ObjectOrNone


class KeyedRequest(BuildRequest):
    """A packet request under an idempotency key."""

    idempotency_key: Annotated[IdText, Expect("an idempotency key has 1 to 256 characters")]


def _request(
    scope: Scope,
    purpose: str,
    query: str,
    cues: Mapping[str, Any] | None,
    max_tokens: int | None,
    per_section: Mapping[str, int] | None,
    policy: Policy,
    now: Any,
    task_type: str,
    left_out: Mapping[str, Any],
) -> ComposeRequest:
    total = policy.compose.max_tokens if max_tokens is None else max_tokens
    checked(BuildRequest, purpose=purpose, query=query, max_tokens=total, cues=cues, per_section=per_section)
    check_text(query, "$.query")
    caps = {name: int(total * getattr(policy.compose.shares, name)) for name in _SECTIONS}
    for name, given_cap in (per_section or {}).items():
        cap = whole(given_cap)
        if name not in caps or type(cap) is not int or not 0 <= cap <= TOKENS_MAX:
            raise InvalidInput(
                f"{name!r} should name a section and have a budget of 0 or more",
                path=f"$.per_section.{name}",
                hint=f"sections are {', '.join(_SECTIONS)}",
            )
        caps[name] = cap
    if policy.ledger.redact_secrets:
        query, cues = redact_value([query, dict(cues or {})], Counter())
    if offset := offset_minutes(now):
        left_out = {**left_out, "utc_offset": offset}
    try:
        return ComposeRequest(
            scope=scope,
            purpose=cast("Any", purpose),
            query=query,
            task_type=task_type,
            cues=_cues(cues),
            budget=PacketBudget.from_wire({"max_tokens": total, "per_section": caps}),
            policy_id=policy.policy_id,
            now=format_instant(parse_instant(now, path="$.now")),
            **left_out,
        )
    except ValidationError as error:
        raise InvalidRecord("this cannot be composed for", issues_of(error)) from None


def _left_out(exclude_session: Any, exclude: Any) -> dict[str, Any]:
    """The caller's exclusions, in request form."""
    if not isinstance(exclude_session, bool):
        raise InvalidInput("exclude_session should be true or false", path="$.exclude_session")
    ids = _id_list(exclude, "exclude")
    given: dict[str, Any] = {"exclude_session": True} if exclude_session else {}
    return given | ({"exclude": tuple(sorted(set(ids)))} if ids else {})


def _id_list(given: Any, name: str) -> list[str]:
    """Validate a caller's list of ids."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidInput(f"{name} should be a list of ids", path=f"$.{name}", hint="wrap a single id in a list")
    ids = list(given)
    for index, id_ in enumerate(ids):
        if not isinstance(id_, str):
            raise InvalidInput("an id is text", path=f"$.{name}[{index}]")
    return ids


def _cues(given: Mapping[str, Any] | None) -> Cues:
    try:
        cues = Cues.from_wire(dict(given or {}))
    except InvalidRecord as error:
        issues = [Issue(f"$.cues{issue.path[1:]}", issue.message, issue.code) for issue in error.issues]
        raise InvalidRecord("the cues do not fit", issues) from None
    asked = cues.time_range
    start, end = (parse_rfc3339(text or "") for text in (asked and asked.start, asked and asked.end))
    if start is not None and end is not None and end < start:
        raise InvalidInput(
            "the time range ends before it starts", path="$.cues.time_range.end", hint="swap start and end"
        )
    return cues


def _change(build: Build, counter: str, key: BuildKey | None = None) -> Change:
    scope = build.request.scope
    turns = tuple(sorted(_turns(build.pool)))
    return Change(
        id=build.id,
        kind="build",
        status="composed",
        body={
            "request": _written_request(build.request),
            "pool": build.pool.to_kept(),
            "policy": build.policy.written,
            "counter": counter,
            "packet": Written(build.packet_bytes.decode()),
            "packet_hash": digest(build.packet_bytes).hex(),
            "marks": written_table(build.marks),
            "text": build.text,
            "stable_chars": build.stable_chars,
            "tokens": build.tokens,
            **({} if build.rules is None else {"rules": build.rules.to_wire()}),
            **({} if key is None else {"key": key.kept}),
        },
        name=None if key is None else key.name,
        created_at=build.request.now,
        trust="external",
        sources=tuple(sorted((_sources(build.pool, scope.run_id) | _rule_sources(build.rules)).difference(turns))),
        turns=turns,
        user_id=scope.user_id,
        agent_id=scope.agent_id,
        session_id=scope.session_id,
        run_id=scope.run_id,
    )


def _written_request(request: ComposeRequest) -> dict[str, Any]:
    """The request as plain data, with a long session's numbers in canonical form."""
    plain = request.model_dump(mode="json", exclude_unset=True, by_alias=True, exclude={"marks"})
    known = request.marks
    if known is not None:
        plain["marks"] = {"next_number": known.next_number, "numbers": written_table(known.numbers)}
    return plain


def _found_turns(pool: Pool) -> set[str]:
    """The events that came from the index: search hits, the profile, and the turns of episodes."""
    found = {turn.id for turn in pool.quotable}
    return found.union(*(episode.sources for episode in pool.episodes))


def _turns(pool: Pool) -> set[str]:
    """Every user event quoted in the pool; forgetting one forgets the build."""
    ids = _found_turns(pool) | {turn.id for turn in pool.window}
    ids |= {id_ for line in pool.summary for id_ in summary_evidence(line)} | {tool.ref for tool in pool.tools}
    return ids | {loop.evidence_id for loop in pool.loops if loop.evidence_id}


def _sources(pool: Pool, run_id: str) -> set[str]:
    """Every item in the pool with the evidence it names; forgetting one forgets the build."""
    ids = _state_sources(pool.working_state, run_id)
    if pool.run is not None:
        ids.update(pool.run.sources)
    for fact in pool.facts:
        ids.add(fact.fact.fact_id)
        ids.update(fact.fact.sources)
    for procedure in pool.procedures:
        ids.add(procedure.procedure.procedure_id)
    for insight in pool.insights:
        ids.add(insight.insight.id)
    ids.update(line.evidence_id for line in pool.summary if line.kind == "given")
    return ids


def _rule_sources(rules: GivenRules | None) -> set[str]:
    return set() if rules is None else {rules.selection_id, *rules.rule_ids}


def _state_sources(state: WorkingState | None, run_id: str) -> set[str]:
    """The run's own state, its claims with their evidence, and the hints."""
    if state is None:
        return set()
    extra = state.model_extra or {}
    parts = [each for part in (CLAIMS, HINTS) for each in extra.get(part) or () if isinstance(each, dict)]
    named = [each.get(key) for each in parts for key in ("claim_id", "evidence_id", "memory_id")]
    return {state_id(run_id), *(id_ for id_ in named if isinstance(id_, str))}


def load_build(ctx: Context, tenant_id: str, build_id: str) -> Build:
    """Compose a kept build again from its inputs, and check that it is the same, byte for byte."""

    def read(reader: Reader) -> Item | None:
        item = latest(reader, build_id)
        if item is not None and item.kind == "build" and item.body is not None:
            check_proof(ctx, reader, item)
        return item

    item = ctx.engine.read(tenant_id, read)
    if item is None or item.kind != "build":
        raise NotFound(f"no build {build_id!r} in this store", path="$.id")
    return _reload(ctx, item)


def build_of(ctx: Context, scope: Scope, build: Build | str, path: str) -> Build:
    """A build of this user, given directly or by id; another user's does not exist (LG-02)."""
    if not isinstance(build, Build | str):
        raise InvalidInput(f"wanted a build or its id, not {type(build).__name__}", path=path)
    made = build if isinstance(build, Build) else _own_build(ctx, scope, build, path)
    whose = made.request.scope
    if (whose.tenant_id, whose.user_id) != (scope.tenant_id, scope.user_id):
        raise NotFound(f"no build {made.id!r:.80} in this scope", path=path)
    return made


def _own_build(ctx: Context, scope: Scope, build_id: str, path: str) -> Build:
    """A build of this user by id. Another user's is not composed at all, so that timing does not reveal it."""
    item = ctx.engine.read(scope.tenant_id, lambda reader: latest(reader, build_id))
    if item is None or item.kind != "build" or item.user_id != scope.user_id:
        raise NotFound(f"no build {build_id!r:.80} in this scope", path=path)
    try:
        if item.body is not None:
            check_proofs(ctx, scope.tenant_id, [item])
        return _reload(ctx, item)
    except MunimentError as error:
        error.path = path
        raise


def _reload(ctx: Context, item: Item) -> Build:
    """A stored build: its packet, text and marks as kept. Nothing is composed again."""
    body = item.plain()
    if "packet" not in body:
        raise ComposedBefore(
            f"the build {item.id} was composed by version 0.1, which kept no packet and chose by other rules",
            path="$.id",
            hint="its text is kept and listed with the builds; replay it with the version that composed it",
            details={"id": item.id},
        )
    rules = GivenRules.from_wire(body["rules"]) if "rules" in body else None
    packet_bytes = canonical_bytes(body["packet"])
    if digest(packet_bytes).hex() != body["packet_hash"]:
        raise IntegrityFailure(
            f"the packet of the build {item.id} is not the one that was composed",
            hint="run `muniment verify`",
            details={"id": item.id},
        )
    return Build(
        item.id,
        packet_bytes,
        body["text"],
        body["tokens"],
        body["marks"],
        ComposeRequest.from_wire(body["request"]),
        partial(_read_pool, ctx, body),
        Policy.from_earlier(body["policy"]),
        rules,
        body.get("stable_chars", 0),
    )


def _read_pool(ctx: Context, body: dict[str, Any]) -> Pool:
    """The pool of a stored build, with its turns from the ledger; forgetting one would have forgotten the build."""
    kept, tenant_id = body["pool"], body["request"]["scope"]["tenant_id"]
    ids = ids_in_kept(kept)
    found = ctx.engine.read(tenant_id, lambda reader: turns_by_id(ctx, reader, tenant_id, ids))
    lost = next((id_ for id_ in ids if id_ not in found), None)
    if lost is not None:
        raise NotFound(f"the event {lost} of this build was forgotten", path="$.id")
    return read_kept(kept, {id_: turn.read.turn for id_, turn in found.items()})


def recompose(ctx: Context, build: Build, policy: Policy) -> Build:
    """Compose the request and the pool of a build under another policy. The new build is not stored."""
    request = build.request.model_copy(update={"policy_id": policy.policy_id})
    return _composed(build.id, request, build.pool, policy, line_counts_of(ctx), build.rules)


def builds_of_run(reader: Reader, run_id: str, limit: int) -> tuple[str, ...]:
    """The ids of a run's last remaining builds, oldest first."""
    where: tuple[Condition, ...] = (("kind", "=", "build"), ("run_id", "=", run_id), ("receipt_id", "=", None))
    made = select(reader, ITEMS, where, into=_Made, order=("created_at", "id"), descending=True, limit=limit)
    return tuple(build.id for build in reversed(made))


class _Made(NamedTuple):
    id: str
    created_at: str


def list_builds(ctx: Context, tenant_id: str, user_id: str | None, limit: int) -> Iterator[Item]:
    """Remaining builds, newest first. Callers check each against its proof (`check_proofs`)."""
    where: tuple[Condition, ...] = (("kind", "=", "build"),)
    if user_id is not None:
        where = (*where, ("user_id", "=", user_id))

    def newest(reader: Reader) -> list[Item]:
        return select_items(reader, where, order=("created_at", "id"), descending=True, limit=limit)

    for item in ctx.engine.read(tenant_id, newest):
        if item.body is not None:
            yield item


KINDS = ("build", "snapshot")
_ORDER = ("created_at", "id", "version")


class Readable(NamedTuple):
    """A build, or a numbered snapshot of a run."""

    kind: str
    id: str
    sequence: int
    run_id: str
    created_at: str
    request: dict[str, Any] | None
    """The request of a build."""

    @property
    def place(self) -> tuple[str, str, int]:
        """The position of an entry in the list."""
        return self.created_at, self.id, self.sequence


def list_readables(
    ctx: Context, tenant_id: str, user_id: str, after: tuple[str, str, int] | None, limit: int
) -> list[Readable]:
    """At most `limit` entries after a position in the list; forgotten ones are skipped."""
    where: tuple[Condition, ...] = (("kind", "in", KINDS), ("user_id", "=", user_id), ("receipt_id", "=", None))

    def newest(reader: Reader) -> list[Item]:
        return select_items(reader, where, order=_ORDER, after=after, descending=True, limit=limit)

    found = ctx.engine.read(tenant_id, newest)
    check_proofs(ctx, tenant_id, found)
    return [_readable(item) for item in found]


def _readable(item: Item) -> Readable:
    request = item.plain().get("request") if item.kind == "build" else None
    return Readable(item.kind, item.id, item.version, item.run_id or "", item.created_at, request)


def page_builds(ctx: Context, tenant_id: str, user_id: str | None, asked: ListQuery) -> Iterator[Placed[Item]]:
    """The remaining builds of a user or of the tenant."""

    def made(item: Item) -> Item | None:
        return item if asked.q is None or matches(asked.q, item.id, item.plain()["request"]["query"]) else None

    def make(reader: Reader, items: Sequence[Item]) -> list[Item | None]:
        for item in items:
            check_proof(ctx, reader, item)
        return [made(item) for item in items]

    reading = read_listed("build", user_id, make, asked)
    return seek(ctx, tenant_id, reading, asked, find_listed(("build",), user_id, make))


def page_answers(ctx: Context, tenant_id: str, build_id: str, asked: ListQuery) -> Iterator[Placed[LedgerEntry]]:
    """The answers observed with a build."""
    build = ctx.engine.read(tenant_id, lambda reader: latest(reader, build_id))
    if build is None or build.kind != "build":
        raise NotFound(f"no build {build_id!r:.80} in this store", path="$.build_id")

    def make(reader: Reader, items: Sequence[Item]) -> list[LedgerEntry | None]:
        return [entry_in(reader, tenant_id, item.plain()["event_id"]) for item in items]

    return seek(
        ctx, tenant_id, read_named("answer", (("user_id", "=", build.user_id),), answer_name(build_id), make), asked
    )
