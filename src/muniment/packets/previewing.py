"""What a kept build would have been with other settings. Nothing of it is written: no build, no marks, no event.

While the store still gives what the build was made of, everything is gathered anew, as it would have been then. Once it
has moved on, the candidates that the build kept are composed with the other settings; what they cannot answer is
gathered from the store as it stands. The answer says which. However often it gathers, a preview composes once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from muniment.contracts.packet import MemoryPacket
from muniment.core.record import Count, Numeric, Record
from muniment.core.requests import Expect, Request, checked, one_of, whole
from muniment.packets.builds import Build, BuildInputs, BuildRequest, compose_inputs, gather_inputs
from muniment.packets.comparing import BuildDiff, diff_builds
from muniment.packets.marks import KeptMarks, read_marks
from muniment.packets.pool import ComposeRequest, KnownMarks

if TYPE_CHECKING:
    from muniment.core.policy import ComposePolicy, Policy
    from muniment.store.context import Context

__all__ = ["Basis", "Preview", "PreviewRequest", "Settings", "preview_build"]

PREVIEW = "preview"
"""In the place of an id: nothing was kept."""
WINDOW_TURNS_MAX = 10_000
WindowTurns = Annotated[
    int,
    Numeric(integral=True, minimum=0, maximum=WINDOW_TURNS_MAX),
    Expect(f"window_turns should be a whole number from 0 to {WINDOW_TURNS_MAX}"),
]
Basis = Literal["then", "candidates", "now"]
_GATHERING = (
    "window_turns", "tool_evidence_max", "claims_max", "questions_max", "conflicts_max", "failures_max", "quotes_max",
    "candidates_max",
)  # fmt: skip
"""How much is gathered: with more of it, what a build kept is too little."""


class Preview(Record):
    """A packet that was composed to be looked at, beside the build that it would have been."""

    basis: Basis
    """What it was made from. `then`: the store as the build saw it. `candidates`: the store has moved on, and these are
    the candidates that the build kept. `now`: the store as it stands."""
    packet: MemoryPacket
    text: str
    tokens: Count
    found: bool
    marks: dict[str, str]
    request: ComposeRequest
    diff: BuildDiff
    """What differs from the build."""


class PreviewRequest(Request):
    """What a preview takes besides what a packet is asked for with."""

    window_turns: WindowTurns
    basis: Annotated[str, one_of(("then", "now"), "{given!r} is nothing to compose from")]


class Settings(NamedTuple):
    """What a packet is composed with; None is as the build has it."""

    purpose: Any = None
    query: Any = None
    max_tokens: Any = None
    per_section: Mapping[str, int] | None = None
    window_turns: Any = None


def preview_build(
    ctx: Context,
    build: Build,
    settings: Settings,
    policy: Policy | None,
    wanted: str,
    why_no_rule: Callable[[str], str | None] = lambda _: None,
) -> Preview:
    """Compose with other settings what a build was composed for, and compare the two."""
    policy = policy or build.policy
    settings = _filled(build, settings, policy)
    asked = settings._asdict()
    checked(PreviewRequest, window_turns=asked.pop("window_turns"), basis=wanted)
    checked(BuildRequest, cues=None, **asked)
    policy = _with_window(policy, settings.window_turns)
    inputs, basis = _inputs(ctx, build, settings, policy, wanted)
    made = compose_inputs(ctx, inputs, policy, PREVIEW)
    return Preview(
        basis=basis,
        packet=made.packet,
        text=made.text,
        tokens=made.tokens,
        found=made.found,
        marks=dict(made.marks),
        request=made.request,
        diff=diff_builds(build, made, why_no_rule),
    )


def _inputs(ctx: Context, build: Build, settings: Settings, policy: Policy, wanted: str) -> tuple[BuildInputs, Basis]:
    """What the preview is composed of, and where it came from."""
    if wanted == "then":
        own, then = _filled(build, Settings(), build.policy), build.request.now
        again = _gathered(ctx, build, own, build.policy, then)
        if again.rules == build.rules:
            is_same = settings == own and policy == build.policy
            inputs = again if is_same else _gathered(ctx, build, settings, policy, then)
            if again.pool == build.pool:
                return inputs, "then"
            if inputs.rules == build.rules and _is_enough(build, inputs, policy):
                return _of_candidates(ctx, build, inputs), "candidates"
    return _gathered(ctx, build, settings, policy, None), "now"


def _filled(build: Build, settings: Settings, policy: Policy) -> Settings:
    """The settings with those of the build where none is given."""
    request = build.request
    known = Settings(request.purpose, request.query, _asked(build), {}, policy.compose.window_turns)
    return Settings(*(own if given is None else whole(given) for given, own in zip(settings, known, strict=True)))


def _gathered(ctx: Context, build: Build, settings: Settings, policy: Policy, now: str | None) -> BuildInputs:
    """What `compose` would use with these settings, as the store stands."""
    request = build.request
    return gather_inputs(
        ctx,
        request.scope,
        settings.purpose,
        query=settings.query,
        cues=request.cues.to_wire(),
        max_tokens=settings.max_tokens,
        per_section=_given_caps(build) | dict(settings.per_section or {}),
        policy=policy,
        now=now,
        task_type=request.task_type,
        exclude_session=bool(request.exclude_session),
        exclude=request.exclude or (),
    )


def _asked(build: Build) -> int:
    """The budget that was asked for: the packet's, and what its rules took of it."""
    rules = build.rules
    return build.request.budget.max_tokens + (0 if rules is None or rules.omitted is not None else rules.tokens)


def _given_caps(build: Build) -> dict[str, int]:
    """Caps that the caller named: those that are not the policy's share."""
    budget, shares = build.request.budget, build.policy.compose.shares
    caps: dict[str, int] = budget.per_section.to_wire()
    return {name: cap for name, cap in caps.items() if cap != int(budget.max_tokens * getattr(shares, name))}


def _with_window(policy: Policy, window_turns: int) -> Policy:
    if window_turns == policy.compose.window_turns:
        return policy
    plain = policy.to_wire()
    compose: Any = plain.get("compose", {})
    return type(policy).from_wire({**plain, "compose": {**compose, "window_turns": window_turns}})


def _is_enough(build: Build, inputs: BuildInputs, policy: Policy) -> bool:
    """Do the candidates of the build answer it? Another question finds others."""
    is_asked_alike = inputs.request.query == build.request.query
    return is_asked_alike and policy.recall == build.policy.recall and _is_within(policy.compose, build.policy.compose)


def _is_within(policy: ComposePolicy, known: ComposePolicy) -> bool:
    return all(getattr(policy, name) <= getattr(known, name) for name in _GATHERING)


def _of_candidates(ctx: Context, build: Build, inputs: BuildInputs) -> BuildInputs:
    """The candidates of the build for the other request, with the numbers that the session cites them by."""
    scope, ids = build.request.scope, build.pool.evidence_ids()
    held = ctx.engine.read(scope.tenant_id, lambda reader: read_marks(reader, scope, ids, ctx.cache(KeptMarks)))
    marks = KnownMarks(numbers=held.numbers, next_number=held.next_number)
    return inputs._replace(request=inputs.request.model_copy(update={"marks": marks}), pool=build.pool)
