"""Verify an output: constraints, facts against evidence, execution in a sandbox; store the result with the run."""

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
"""File name of an output in the sandbox, if it is not given as files."""
LINE_CHARS_MAX = 200
"""Maximum length of the last line of a run's output."""


class Verified(NamedTuple):
    """A result, and the record of an execution."""

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
    """Run every requested layer on an output and combine them into one result. Stores nothing.

    `stated` is the output's text without its citation marks, if known, as a mark is not a figure. `grader` is a grader,
    or a `Grading` with its policy.
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
    """Return a function that redacts secrets from a text, if the policy asks for it."""
    return (lambda text: redact_text(text, Counter())) if policy.ledger.redact_secrets else str


def _last_line(ran: HarnessResult, policy: Policy) -> str | None:
    """Last line of the last run's output, if it did not pass."""
    if ran.outcome == "OK" or not ran.seen:
        return None
    lines = [line.strip() for line in f"{ran.seen[-1].stdout}\n{ran.seen[-1].stderr}".splitlines() if line.strip()]
    if not lines:
        return None
    found: Counter[str] = Counter()
    said = redact_text(lines[-1], found) if policy.ledger.redact_secrets else lines[-1]
    return f"{ran.outcome}: {said[:LINE_CHARS_MAX]}"


def _as_kept(documents: Sequence[SourceText], policy: Policy) -> Sequence[SourceText]:
    """Redact documents as the ledger would: reasons and quotes repeat their text."""
    if not policy.ledger.redact_secrets:
        return documents
    found: Counter[str] = Counter()
    return [each._replace(text=redact_text(each.text, found)) for each in documents]


def _without_secrets(
    text: str, findings: list[Finding] | None, facts: FGFCReport | None
) -> tuple[list[Finding] | None, FGFCReport | None]:
    """Findings without the output's secrets, whole or in part: reasons quote single words."""
    found: Counter[str] = Counter()
    clean = redact_text(text, found)
    if findings is not None:
        findings = [each._replace(message=redact_text(each.message, found)) for each in findings]
    if facts is not None and clean != text:
        units = tuple(unit if (unit.text or "") in clean else _silenced(unit) for unit in facts.units or ())
        facts = facts.model_copy(update={"units": units})
    return findings, facts


def _silenced(unit: FGFCUnit) -> FGFCUnit:
    """A unit with a secret, reduced to its verdict without any text."""
    hidden = {"text": "[redacted:secret]", "justification": "it holds a secret, so no reason is told"}
    return unit.model_copy(update={**hidden, "correction": None})


def keep_result(
    writer: Writer, verified: Verified, output: Output, event: str | None, evidence: Sequence[Pointer]
) -> VerifierResult:
    """Write a result to the run's ledger, linked to the event it judges and the evidence it quotes.

    For an execution, the sandbox trace is stored as well: digests and figures, no text.
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
    """Check that the event a result names is the one that was judged."""
    for event in judged:
        if content_in(reader, writer.scope.tenant_id, event, writer.scope.user_id) != cleaned(writer.ctx, output.text):
            raise InvalidInput(
                f"the event {event} says something else than this output",
                path="$.event",
                hint="give the id under which this very text was observed, or leave event out",
            )


def page_results(ctx: Context, scope: Scope, asked: ListQuery) -> Iterator[Placed[VerifierResult]]:
    """The results stored with a run, a page at a time."""

    def made(item: Item) -> VerifierResult | None:
        return VerifierResult.from_wire(item.plain()["result"]) if item.user_id == scope.user_id else None

    run = ctx.engine.read(scope.tenant_id, lambda reader: latest(reader, scope.run_id))
    if run is None or run.user_id != scope.user_id:
        return iter(())  # results of another user's run are never read
    read = read_listed("verification", scope.run_id, each_made(made), asked)
    return seek(ctx, scope.tenant_id, read, asked)


def stated_in(ctx: Context, scope: Scope, output: Output, event: Any) -> str:
    """The output's text without the marks of its build's evidence, if it was observed with a build."""
    if event is None:
        return output.text
    named = text_of(event, "$.event")
    ctx.engine.read(scope.tenant_id, lambda reader: read_evidence(reader, scope, [named], "$.event"))
    cited = get_entry(ctx, scope.tenant_id, named, scope.user_id).cited
    return output.text if cited is None else unmarked(output.text, cited.unknown_marks)


# -- what callers give --------------------------------------------------------------------------------


def constraints_of(given: Any) -> ConstraintSet | None:
    """Constraints from records, plain data or a YAML text."""
    if given is None or isinstance(given, ConstraintSet):
        return given
    return read_constraints(given) if isinstance(given, str) else parse_constraints(given)


def documents_of(
    ctx: Context, scope: Scope, documents: Iterable[Any] | None, evidence: Sequence[Pointer]
) -> list[SourceText] | None:
    """Documents as text, and ledger evidence by its pointers; None if neither is given."""
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
