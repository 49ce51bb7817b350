"""Verifying an output: constraints, facts against evidence, execution in a sandbox; the result is kept with the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.contracts.runs import VerifierResult
from muniment.core.listing import ListQuery, Placed
from muniment.errors import InvalidInput
from muniment.memory.patches import Decided, cleaned, draft_patch, read_evidence, text_of, write_patches
from muniment.packets.answers import unmarked
from muniment.runs.claims import owners_of
from muniment.store.items import Item, latest
from muniment.store.ledger import OUTPUT_VERIFIED
from muniment.store.lists.seeking import each_made, read_listed, seek
from muniment.store.reading import content_in, get_entry, resolve, source_row
from muniment.store.secrets import redact_text
from muniment.verify.constraint_files import ConstraintSet, parse_constraints, read_constraints
from muniment.verify.constraints import DEFAULT_REGISTRY, evaluate
from muniment.verify.outputs import Output, read_output
from muniment.verify.results import Execution, compose_result

if TYPE_CHECKING:
    from muniment.contracts.runs import FGFCReport, FGFCUnit
    from muniment.core.policy import Policy
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.core.scope import Pointer, Scope
    from muniment.memory.patches import Writer
    from muniment.store.context import Context
    from muniment.verify.facts import SourceText
    from muniment.verify.graders import GradingSession
    from muniment.verify.outputs import Finding
    from muniment.verify.sandbox.harness import Harness, HarnessResult
    from muniment.verify.sandbox.port import Sandbox

__all__ = [
    "constraints_of",
    "documents_of",
    "keep_result",
    "page_results",
    "read_output",
    "stated_in",
    "verify_output",
]

OUTPUT_FILE = "output.txt"
"""Where the sandbox finds an output that is not given as files."""
LINE_CHARS_MAX = 200
"""Of what a run said at its end."""


class Verified(NamedTuple):
    """A result, and what an execution did."""

    result: VerifierResult
    ran: HarnessResult | None


def verify_output(
    output: Output,
    *,
    constraints: ConstraintSet | None,
    documents: Sequence[SourceText] | None,
    harness: Harness | None,
    policy: Policy,
    files: Mapping[str, bytes] | None = None,
    trace_id: str = "verify",
    sandbox: Sandbox | None = None,
    stated: str | None = None,
    grader: Any = None,
) -> Verified:
    """What every layer that is asked says of an output, as one result. Keeps nothing.

    `stated` is what the output says without the marks by which it cites, where that is known: a mark is no figure.
    `grader` is a grader, or a `Grading` that says what it may do.
    """
    session = None if grader is None else _session(grader, policy)
    ran: HarnessResult | None = None
    findings: list[Finding] | None = None
    facts: FGFCReport | None = None
    execution: Execution | None = None
    said = output.text if stated is None else stated
    if constraints is not None:
        findings = evaluate(output, constraints.constraints, session)
    rubrics = [] if session is None else [each.to_dict() for each in session.judgements]
    if documents is not None:
        from muniment.verify.facts import check_facts  # the largest part of this room

        sources = _as_kept(documents, policy)
        facts = check_facts(said, sources, policy=policy.verify)
        if session is not None:
            facts = session.look_at(facts, sources)
    if policy.ledger.redact_secrets:
        findings, facts = _without_secrets(said, findings, facts)
    if harness is not None:
        from muniment.verify.sandbox.harness import Harness, check_files, run_harness

        if not isinstance(harness, Harness):
            raise InvalidInput("harness is a Harness", path="$.harness", hint="Harness(command='…')")
        given = {OUTPUT_FILE: output.text.encode()} if files is None else check_files(files)
        ran = run_harness(harness, given, trace_id=trace_id, sandbox=sandbox)
        execution = Execution(ran.outcome, ran.reason_codes, ran.message or _last_line(ran, policy), ran.judge)
    if findings is None and facts is None and execution is None:
        raise InvalidInput(
            "nothing to verify against", path="$", hint="give constraints, documents or evidence, or a harness"
        )
    registry = DEFAULT_REGISTRY if constraints is None else constraints.registry
    result = compose_result(findings, facts, execution, registry=registry)
    if rubrics:
        result = result.model_copy(update={"score_evidence": {**(result.score_evidence or {}), "judgements": rubrics}})
    return Verified(result, ran)


def _session(grader: Any, policy: Policy) -> GradingSession:
    from muniment.verify.graders import GradingSession, grading_of  # brings an HTTP client

    return GradingSession(grading_of(grader), _cleaner(policy))


def _cleaner(policy: Policy) -> Callable[[str], str]:
    """What takes secrets out of a text, where the policy wants it (LG-10)."""
    return (lambda text: redact_text(text, Counter())) if policy.ledger.redact_secrets else str


def _last_line(ran: HarnessResult, policy: Policy) -> str | None:
    """What the last run said at its end, where it did not pass."""
    if ran.outcome == "OK" or not ran.seen:
        return None
    lines = [line.strip() for line in f"{ran.seen[-1].stdout}\n{ran.seen[-1].stderr}".splitlines() if line.strip()]
    if not lines:
        return None
    found: Counter[str] = Counter()
    said = redact_text(lines[-1], found) if policy.ledger.redact_secrets else lines[-1]
    return f"{ran.outcome}: {said[:LINE_CHARS_MAX]}"


def _as_kept(documents: Sequence[SourceText], policy: Policy) -> Sequence[SourceText]:
    """Documents as the ledger would keep them (LG-10): reasons and quotes repeat what they say."""
    if not policy.ledger.redact_secrets:
        return documents
    found: Counter[str] = Counter()
    return [each._replace(text=redact_text(each.text, found)) for each in documents]


def _without_secrets(
    text: str, findings: list[Finding] | None, facts: FGFCReport | None
) -> tuple[list[Finding] | None, FGFCReport | None]:
    """What was found, without the secrets of the output (LG-10), whole or in parts: reasons quote single words."""
    found: Counter[str] = Counter()
    clean = redact_text(text, found)
    if findings is not None:
        findings = [each._replace(message=redact_text(each.message, found)) for each in findings]
    if facts is not None and clean != text:
        units = tuple(unit if (unit.text or "") in clean else _silenced(unit) for unit in facts.units or ())
        facts = facts.model_copy(update={"units": units})
    return findings, facts


def _silenced(unit: FGFCUnit) -> FGFCUnit:
    """A unit that holds a secret, or a part of one: its verdict, and no word of it."""
    hidden = {"text": "[redacted:secret]", "justification": "it holds a secret, so no reason is told"}
    return unit.model_copy(update={**hidden, "correction": None})


def keep_result(
    writer: Writer, verified: Verified, output: Output, event: str | None, evidence: Sequence[Pointer]
) -> VerifierResult:
    """Write a result into the run's ledger, joined to the event it judges and to the evidence that it quotes.

    Of an execution, what it did in the sandbox is kept as well (RC-25): digests and figures, no text.
    """
    id_ = writer.ctx.ids.new("vrf")

    def decide(tx: Transaction) -> Decided:
        judged = [] if event is None else [text_of(event, "$.event")]
        read_evidence(tx, writer.scope, judged, "$.event")
        _check_judged(tx, writer, output, judged)
        cited = [source_row(tx, pointer, writer.scope.user_id).id for pointer in evidence]
        said: dict[str, Any] = {
            "id": id_,
            "result": verified.result.to_wire(),
            "sources": list(dict.fromkeys([*judged, *cited])),
        }
        if verified.ran is not None:
            said["sandbox"] = verified.ran.sandbox.to_wire()
            said["traces"] = [trace.to_wire() for trace in verified.ran.traces]
        return Decided([draft_patch(OUTPUT_VERIFIED, "assistant", said)])

    return write_patches(writer, decide, lambda _reader: verified.result, owners_of(writer.scope, evidence))


def _check_judged(reader: Reader, writer: Writer, output: Output, judged: Sequence[str]) -> None:
    """A result is of the event it names: that must be what was judged."""
    for event in judged:
        if content_in(reader, writer.scope.tenant_id, event, writer.scope.user_id) != cleaned(writer.ctx, output.text):
            raise InvalidInput(
                f"the event {event} says something else than this output",
                path="$.event",
                hint="give the id under which this very text was observed, or leave event out",
            )


def page_results(ctx: Context, scope: Scope, asked: ListQuery) -> Iterator[Placed[VerifierResult]]:
    """The results kept with a run, a page at a time."""

    def made(item: Item) -> VerifierResult | None:
        return VerifierResult.from_wire(item.plain()["result"]) if item.user_id == scope.user_id else None

    run = ctx.engine.read(scope.tenant_id, lambda reader: latest(reader, scope.run_id))
    if run is None or run.user_id != scope.user_id:
        return iter(())  # the results of another's run are not even looked at (LG-02)
    read = read_listed("verification", scope.run_id, each_made(made), asked)
    return seek(ctx, scope.tenant_id, read, asked)


def stated_in(ctx: Context, scope: Scope, output: Output, event: Any) -> str:
    """What an output says, without the marks that name evidence of the build it was observed with, where it was."""
    if event is None:
        return output.text
    named = text_of(event, "$.event")
    ctx.engine.read(scope.tenant_id, lambda reader: read_evidence(reader, scope, [named], "$.event"))
    cited = get_entry(ctx, scope.tenant_id, named, scope.user_id).cited
    return output.text if cited is None else unmarked(output.text, cited.unknown_marks)


# -- what callers give --------------------------------------------------------------------------------


def constraints_of(given: Any) -> ConstraintSet | None:
    """Constraints as records, as plain data, or as a YAML text."""
    if given is None or isinstance(given, ConstraintSet):
        return given
    return read_constraints(given) if isinstance(given, str) else parse_constraints(given)


def documents_of(
    ctx: Context, scope: Scope, documents: Iterable[Any] | None, evidence: Sequence[Pointer]
) -> list[SourceText] | None:
    """Documents as text, and evidence of the ledger by its pointers; None where neither is given."""
    if documents is None and not evidence:
        return None
    if isinstance(documents, str | bytes | Mapping) or not isinstance(documents or (), Iterable):
        raise InvalidInput("documents is a list", path="$.documents", hint="wrap a single one in a list")
    from muniment.verify.facts import SourceText

    found = [_document(each, f"$.documents[{index}]", index) for index, each in enumerate(documents or ())]
    for pointer in evidence:
        resolved = resolve(ctx, scope.tenant_id, pointer, scope.user_id)
        found.append(SourceText(resolved.evidence_id, resolved.text, "artifact"))
    return found


def _document(given: Any, path: str, index: int) -> SourceText:
    from muniment.verify.facts import SourceText

    if isinstance(given, SourceText):
        return given
    if isinstance(given, str):
        return SourceText(f"document-{index + 1}", given)
    if isinstance(given, Mapping) and isinstance(given.get("id"), str) and isinstance(given.get("text"), str):
        return SourceText(given["id"], given["text"])
    raise InvalidInput("a document is text, or an object with id and text", path=path)
