"""`check …`: check outputs against constraints, documents and a sandboxed run, and run commands in a sandbox; for
CI.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from muniment.errors import Conflict, InvalidInput, MunimentError, SandboxFailure
from muniment.surfaces.cli._command import (
    EXIT_FAILED,
    EXIT_USAGE,
    Call,
    Command,
    OptionSpec,
    UnreadableInput,
    emit_json,
    report_error,
)
from muniment.surfaces.cli._reading import (
    LINE_SUFFIXES,
    constraints_given,
    function_given,
    model_address,
    read_documents,
    read_one,
    read_text,
    write_bytes,
)
from muniment.surfaces.cli.terminal import echo

if TYPE_CHECKING:
    from muniment.contracts.runs import SandboxPolicy, VerifierResult
    from muniment.verify.constraint_files import ConstraintSet
    from muniment.verify.junit import JUnitCase
    from muniment.verify.outputs import Finding, Output
    from muniment.verify.sandbox.harness import Harness, SuiteJudge
    from muniment.verify.sandbox.port import Observation

__all__ = [
    "EXIT_KILLED",
    "EXIT_NO_SANDBOX",
    "EXIT_TIMEOUT",
    "EXIT_UNDECIDED",
    "FIRST_FILE",
    "init",
    "outputs",
    "sandbox",
    "verify_output",
]

EXIT_UNDECIDED = 3
"""The exit code if a required execution did not decide: no sandbox, a timeout, or runs that differ."""


# -- constraints --------------------------------------------------------------------------------------

FIRST_FILE = """\
# What every answer must hold to: muniment check FILE OUTPUT...
# The kinds, each with an example, are in docs/reference/constraints.md.
- not_empty
- words: {max: 200}
- personal_data                     # no e-mail address, phone, card or account number
- regex_absent: "(?i)as an ai"
- forbidden_words: [guarantee, lawsuit]
  severity: minor                   # PARTIAL, not FAIL
# With cases instead, each prompt has constraints of its own: put this list under `constraints:` and add
# cases:
#   - id: refund
#     prompt: "Where is my order {{order}}?"
#     vars: {order: 1234}
#     constraints:
#       - contains: "{{order}}"
"""


def _grader_given(address: str) -> Any:
    """Read `URL#NAME` as a grader that answers rubrics."""
    from muniment.verify.graders import Grading, HttpGrader

    base_url, name, key = model_address(address)
    return Grading(HttpGrader(base_url, name, api_key=key))


_GRADER = OptionSpec(
    "A model that answers rubrics: a server of OpenAI's kind.",
    metavar="URL#NAME",
    type=click.STRING,
    read=_grader_given,
)


def _check(
    call: Call,
    constraints: str,
    outputs: Annotated[tuple[str, ...], OptionSpec(metavar="[OUTPUT]...", needed=False)] = (),
    *,
    agent: Annotated[
        Any,
        OptionSpec(
            "Ask this for each case of a pack.",
            metavar="MODULE:FUNCTION",
            type=click.STRING,
            read=function_given("agent"),
        ),
    ] = None,
    repeats: Annotated[int | None, OptionSpec("Ask the agent so often.", metavar="N")] = None,
    timeout: Annotated[float | None, OptionSpec("Give an answer so long.", metavar="SECONDS")] = None,
    grader: Annotated[Any, _GRADER] = None,
    baseline: Annotated[str | None, OptionSpec("Fail where it is worse than this report.", metavar="FILE")] = None,
    save: Annotated[str | None, OptionSpec("Write a pack's report as JSON.", metavar="FILE")] = None,
    junit: Annotated[str | None, OptionSpec("Also write JUnit XML.", metavar="FILE")] = None,
) -> None:
    from muniment.verify.regression import is_pack

    if (constraints, *outputs).count("-") > 1:
        raise InvalidInput("stdin can be read once", path="$.outputs", hint="give all but one of them as files")
    data = _file_given(constraints)
    if is_pack(data):
        _check_pack(call, constraints, data, outputs, agent, repeats, timeout, grader, baseline, save, junit)
        return
    for name, given in (("agent", agent), ("repeats", repeats), ("baseline", baseline), ("save", save)):
        if given is not None:
            raise InvalidInput(f"--{name} is for a file with cases", path=f"$.{name}", hint="add cases to the file")
    _check_outputs(call, constraints, data, outputs, grader, junit)


def _check_outputs(call: Call, name: str, data: Any, outputs: tuple[str, ...], grader: Any, junit: str | None) -> None:
    """Check every output against the same constraints."""
    from muniment.verify.constraint_files import parse_constraints
    from muniment.verify.constraints import check_answerable, evaluate
    from muniment.verify.graders import GradingSession
    from muniment.verify.junit import to_junit
    from muniment.verify.results import compose_result

    session = None if grader is None else GradingSession(grader)
    try:
        asked = parse_constraints(data)
        if session is None:
            check_answerable(asked.constraints)
    except MunimentError as error:
        raise UnreadableInput(error) from None
    held, readable = True, True
    cases: list[JUnitCase] = []
    for where, item in _outputs(outputs):
        if isinstance(item, MunimentError):
            if not call.as_json:
                echo(f"{where}: cannot be read", err=True)
            report_error(item, call.as_json)
            cases += _unreadable(where, item)
            readable = False
            continue
        findings = evaluate(item, asked.constraints, session)
        result = compose_result(findings, registry=asked.registry)
        held = held and all(finding.ok for finding in findings)
        cases += _junit_cases(where, findings)
        _show(where, item, result, findings, call.as_json)
    if junit is not None:
        write_bytes(junit, to_junit(f"check {name}", cases), "$.junit")
    if not cases:
        raise InvalidInput("there is no output to check", path="$.outputs", hint="a file of JSON lines is empty")
    sys.exit(EXIT_USAGE if not readable else 0 if held else EXIT_FAILED)


def _check_pack(
    call: Call,
    name: str,
    data: Any,
    outputs: tuple[str, ...],
    agent: Any,
    repeats: int | None,
    timeout: float | None,
    grader: Any,
    baseline: str | None,
    save: str | None,
    junit: str | None,
) -> None:
    """Run a file's cases on an agent, or on outputs that carry the ids of cases."""
    from muniment.verify.regression import compare_packs, parse_pack, read_pack_report, run_pack

    if (agent is None) == (not outputs):
        raise InvalidInput(
            "a pack wants an agent, or outputs",
            path="$.outputs",
            hint="--agent module:function, or OUTPUT.jsonl with ids",
        )
    try:
        pack = parse_pack(data, lambda file: _rows(name, file))
        before = None if baseline is None else read_pack_report(read_one(baseline, "$.baseline", "a report"), baseline)
        given = agent if agent is not None else _by_case(outputs, {case.id for case in pack.cases})
        report = run_pack(pack, given, repeats=repeats, grader=grader, timeout_s=timeout)
    except InvalidInput as error:
        raise UnreadableInput(error) from None
    since = None if before is None else compare_packs(report, before)
    if save is not None:
        write_bytes(save, report.to_json(), "$.save")
    if junit is not None:
        write_bytes(junit, report.to_junit(since), "$.junit")
    if call.as_json:
        emit_json(report.to_dict() | ({} if since is None else {"since": since._asdict()}))
    else:
        for each in report.results:
            lower, upper = each.bounds
            rate = f"{each.passed} of {len(each.answers)} ({lower:.2f} to {upper:.2f})"
            echo(f"{each.id}: {'holds' if each.ok else 'FAIL'}, {rate}{'' if not each.words else ': ' + each.words}")
        if since is not None:
            worse, better = (", ".join(ids) or "none" for ids in (since.worse, since.better))
            echo(f"since {baseline}: worse {worse}; better {better}")
    is_good = report.ok if since is None else not since.worse
    sys.exit(0 if is_good else EXIT_FAILED)


outputs = Command(
    function=_check,
    prints=True,
    on="nothing",
    about="CONSTRAINTS is a list of constraints in YAML, or a pack: constraints and `cases`. An OUTPUT is a text file, "
    "or JSON lines of outputs (`.jsonl`, `.ndjson`): each line a string, a model's answer as it came (a message or a "
    "response of Chat Completions, Responses or Anthropic), or an object with `text` and what is known of the run "
    "(`id`, `tool_calls`, `usage`, `policy_events`, `marks`, `memory_hints`, `prompt`). `-` is stdin, read as one "
    "text. Exit code 0 if everything holds, 1 if a constraint is violated (with --baseline: where a case is worse), 2 "
    "if something cannot be read.",
)


def _file_given(name: str) -> Any:
    """A constraint file or a pack as plain data."""
    from muniment.verify.constraint_files import parse_yaml

    try:
        return parse_yaml(read_text(name))
    except MunimentError as error:
        raise UnreadableInput(error) from None


def _rows(pack: str, file: str) -> list[Any]:
    """Read the rows of a data file, named relative to the pack."""
    path = str(Path(pack).parent / file)
    rows = []
    for document in read_documents(path):
        if document.error is not None:
            raise document.error
        rows.append(document.data)
    return rows


def _by_case(names: tuple[str, ...], known: set[str]) -> dict[str, list[Output]]:
    """Group outputs by the case that their id names."""
    found: dict[str, list[Output]] = {}
    for where, item in _outputs(names):
        if isinstance(item, MunimentError):
            raise item
        if item.id not in known:
            raise InvalidInput(
                f"{where} has the id {item.id!r:.80}, which is no case",
                path="$.outputs",
                hint="an output's id is its case's",
            )
        found.setdefault(item.id or "", []).append(item)
    return found


def _init(_call: Call, file: Annotated[str, OptionSpec(metavar="FILE")]) -> str:
    """Write a starter file with common constraints; never overwrites."""
    if Path(file).exists():
        raise Conflict(f"{file} is there already", path="$.file", hint="name another file")
    return write_bytes(file, FIRST_FILE.encode(), "$.file")


init = Command(
    view=lambda call: [
        f"written: {call.answer}",
        f"try it: muniment check {call.answer} OUTPUT.txt",
        "every kind with an example: docs/reference/constraints.md",
    ],
    function=_init,
    on="nothing",
    noun="written",
    about="A list of constraints in YAML, to be changed: the reference has every kind with an example.",
)


def _outputs(names: tuple[str, ...]) -> Iterator[tuple[str, Output | MunimentError]]:
    """Yield each output with its position, or the reason there is none."""
    for name in names:
        try:
            if not name.endswith(LINE_SUFFIXES):
                yield name, _output(read_text(name))
                continue
            for document in read_documents(name):
                yield f"{name}:{document.line}", document.error or _output(document.data)
        except MunimentError as error:
            yield name, error


def _output(data: Any) -> Output | MunimentError:
    from muniment.verify.outputs import read_output

    try:
        return read_output(data, "$")
    except MunimentError as error:
        return error


def _show(where: str, output: Output, result: VerifierResult, findings: list[Finding], as_json: bool) -> None:
    violated = [finding for finding in findings if not finding.ok]
    if as_json:
        shown = {
            "output": where,
            **({"id": output.id} if output.id is not None else {}),
            "ok": not violated,
            "result": result.to_wire(),
            "findings": [_finding(finding) for finding in findings],
        }
        emit_json(shown)
        return
    echo(f"{where}: {'holds' if not violated else result.verdict}")
    for finding in violated:
        mild = " (minor)" if finding.severity == "minor" else ""
        echo(f"  {finding.key}{mild}: {finding.message}")


def _finding(finding: Finding) -> dict[str, Any]:
    shape: dict[str, Any] = {"constraint": finding.constraint, "key": finding.key, "ok": finding.ok}
    if not finding.ok:
        shape |= {"message": finding.message, "severity": finding.severity, "reason": finding.reason}
    if finding.where is not None:
        shape["where"] = list(finding.where)
    return shape


def _junit_cases(where: str, findings: list[Finding]) -> list[JUnitCase]:
    from muniment.verify.junit import JUnitCase

    return [
        JUnitCase(where, f"{number}. {each.key}", "passed" if each.ok else "failed", each.message)
        for number, each in enumerate(findings, 1)
    ]


def _unreadable(where: str, error: MunimentError) -> list[JUnitCase]:
    from muniment.verify.junit import JUnitCase

    return [JUnitCase(where, "read", "error", str(error))]


# -- all checks of one output -------------------------------------------------------------------------


def _verify_output(
    call: Call,
    output: str,
    *,
    constraints: Annotated[
        ConstraintSet | None, OptionSpec("Checks of form, in YAML.", metavar="FILE", read=constraints_given)
    ] = None,
    documents: Annotated[
        tuple[str, ...], OptionSpec("What its facts are checked against.", "document", metavar="FILE")
    ] = (),
    command: Annotated[
        str | None, OptionSpec("Run this in a sandbox, with OUTPUT there as output.txt.", metavar="LINE")
    ] = None,
    suite: Annotated[
        tuple[str, ...], OptionSpec("Run these tests on OUTPUT in a sandbox.", "pytest", metavar="FILE")
    ] = (),
    name: Annotated[str, OptionSpec("What OUTPUT is called in the sandbox.", "as", metavar="NAME")] = "output.txt",
    runs: Annotated[int, OptionSpec("Run it so often; runs that differ decide nothing.", metavar="N")] = 1,
    judge: Annotated[
        Literal["external_process", "in_process"],
        OptionSpec(
            "Keep the code out of the process that judges it, or not: then it can forge the result.", metavar="KIND"
        ),
    ] = "external_process",
    grader: Annotated[Any, _GRADER] = None,
    decides: Annotated[
        Literal["never", "unknown", "always"], OptionSpec("When the grader's word on a fact counts.", metavar="WHEN")
    ] = "never",
    run_id: Annotated[str | None, OptionSpec("Keep the result with this run (needs --db).")] = None,
) -> VerifierResult:
    from muniment.core.policy import Policy
    from muniment.surfaces.settings import open_store
    from muniment.verify import verify as verifying
    from muniment.verify.facts import SourceText
    from muniment.verify.outputs import read_output

    given = read_output(read_text(output))
    asked: dict[str, Any] = {
        "constraints": constraints,
        "documents": [SourceText(path, read_text(path)) for path in documents] or None,
        "harness": _harness(command, suite, runs, judge),
        "files": {name: given.text.encode()},
        "grader": None if grader is None else replace(grader, decides=decides),
    }
    if run_id is None:
        return verifying.verify_output(given, policy=Policy(), **asked).result
    with open_store(call.settings, must_exist=True) as mem:
        return mem.resume(run_id, tenant_id=call.tenant).run.verify(given, **asked)


def _harness(command: str | None, suite: tuple[str, ...], runs: int, judge: SuiteJudge) -> Harness | None:
    if command is None and not suite:
        return None
    from muniment.verify.sandbox.harness import Harness

    tests = {Path(path).name: read_text(path).encode() for path in suite}
    return Harness(command=command, pytest=tuple(tests) if suite else None, files=tests, runs=runs, judge=judge)


def _show_result(call: Call) -> Iterator[str]:
    from muniment.verify.results import judge_of

    result: VerifierResult = call.answer
    yield f"{result.verdict}, outcome {result.outcome}, score {result.score:g}"
    if judge_of(result) is not None:
        yield f"  judge:    {judge_of(result)}"
    for key in result.violated_constraints or ():
        yield f"  violated: {key}"
    for code in result.reason_codes or ():
        yield f"  reason:   {code}"
    for line in (result.notes or "").split("; ") if result.notes else ():
        yield f"  {line}"


def _code(call: Call) -> int:
    from muniment.verify.results import is_pass

    result: VerifierResult = call.answer
    was_run = "command" in call.typed or "suite" in call.typed
    if was_run and result.outcome == "UNKNOWN" and result.verdict != "FAIL":
        return EXIT_UNDECIDED
    return 0 if is_pass(result.verdict, result.outcome) else EXIT_FAILED


verify_output = Command(
    "run.verify",
    _show_result,
    function=_verify_output,
    on="store or nothing",
    document=lambda call: call.answer.to_wire(),
    code=_code,
    about="OUTPUT is a text file; `-` is stdin. Exit code 0 if it passes, 1 if not, 2 if something cannot be read, 3 "
    "if it was to be run and that decided nothing.",
)


# -- a command in a sandbox ---------------------------------------------------------------------------

EXIT_TIMEOUT, EXIT_NO_SANDBOX, EXIT_KILLED = 124, 125, 137
"""Exit codes of timeout(1), container runners and shells."""

_CAPS = {
    "turns": "no turns were left",
    "wall": "it was stopped at its wall time",
    "cpu": "it was stopped at its CPU time",
    "memory": "it was stopped at its memory cap",
    "processes": "it could not start more processes",
    "disk": "the scratch was full",
    "files": "it was stopped at its cap on files",
    "output": "it was stopped at its cap on output",
}


def _run_walled_off(
    call: Call,
    command: Annotated[tuple[str, ...], OptionSpec(metavar="-- COMMAND…")],
    *,
    policy: Annotated[
        str | None, OptionSpec("A SandboxPolicy as JSON; the options below go first.", metavar="FILE")
    ] = None,
    network: Annotated[Literal["off", "allowlist", "on"] | None, OptionSpec("The network (default: off).")] = None,
    allow: Annotated[
        tuple[str, ...], OptionSpec("May be reached; means --network allowlist.", metavar="HOST:PORT")
    ] = (),
    wall: Annotated[float | None, OptionSpec("Seconds it may take (default: 60).", metavar="S")] = None,
    cpu: Annotated[
        float | None, OptionSpec("Seconds of CPU all its processes may take (default: 60).", metavar="S")
    ] = None,
    mem: Annotated[int | None, OptionSpec("Memory of all its processes (default: 512).", metavar="MB")] = None,
    disk: Annotated[int | None, OptionSpec("What it may write (default: 256).", metavar="MB")] = None,
    processes: Annotated[int | None, OptionSpec("Processes and threads (default: 64).", metavar="N")] = None,
    output: Annotated[int | None, OptionSpec("What it may print (default: 1048576).", metavar="BYTES")] = None,
    files: Annotated[
        tuple[str, ...], OptionSpec("A file or folder to put into its scratch.", "file", metavar="PATH")
    ] = (),
    image: Annotated[
        str | None, OptionSpec("An unpacked root file system to run in (default: programs of this one).", metavar="DIR")
    ] = None,
) -> Observation:
    from muniment.core.outside.system import SystemIds
    from muniment.verify.sandbox import load_sandbox

    caps = {
        "wall_ms": _milliseconds(wall),
        "cpu_ms": _milliseconds(cpu),
        "mem_mb": mem,
        "disk_mb": disk,
        "processes": processes,
        "output_bytes": output,
    }
    asked = _sandbox_policy(
        policy, network, allow, image, {name: most for name, most in caps.items() if most is not None}
    )
    line = command[0] if len(command) == 1 else shlex.join(command)
    images = {} if image is None else {image: Path(image)}
    try:
        with load_sandbox(images=images).open(asked, _read_files(files), trace_id=SystemIds().new("trc")) as session:
            return session.execute_bash(line)
    except SandboxFailure as error:
        report_error(error, call.as_json)
        sys.exit(EXIT_NO_SANDBOX)


def _sandbox_policy(
    named: str | None, network: str | None, allow: tuple[str, ...], image: str | None, caps: dict[str, int]
) -> SandboxPolicy:
    from muniment.contracts.runs import SandboxPolicy
    from muniment.core.record import RULECRAFT_VERSION

    wire: dict[str, Any] = {"schema_version": RULECRAFT_VERSION} if named is None else _policy_of(named)
    if allow:
        wire |= {"network": "allowlist", "allowlist": list(allow)}
    if network is not None:
        wire["network"] = network
    if image is not None:
        wire["image_id"] = image
    if caps and isinstance(wire.get("caps", {}), dict):  # anything else is refused with the policy
        wire["caps"] = {**wire.get("caps", {}), **caps}
    return SandboxPolicy.from_wire(wire)


def _policy_of(name: str) -> dict[str, Any]:
    document = next(read_documents(name), None)
    if document is None or document.error is not None or not isinstance(document.data, dict):
        fault = document.error.message if document is not None and document.error is not None else "not a JSON object"
        raise InvalidInput(f"{name} is no policy: {fault}", path="$.policy", hint="write a SandboxPolicy as JSON")
    return document.data


def _milliseconds(seconds: float | None) -> int | None:
    if seconds is not None and not isfinite(seconds):
        raise InvalidInput(f"{seconds} is no number of seconds", path="$.caps")
    return None if seconds is None else round(seconds * 1000)


def _read_files(names: tuple[str, ...]) -> dict[str, bytes]:
    """Read files by their path in the scratch: a file by its name, a folder by its own name and its contents."""
    found: dict[str, bytes] = {}
    for name in names:
        base = Path(name).resolve()
        if not base.is_dir() and not base.is_file():
            raise InvalidInput(f"{name} is neither a file nor a folder", path="$.file", hint="check the path")
        for path in sorted(base.rglob("*")) if base.is_dir() else [base]:
            if path.is_file() and not path.is_symlink():
                found[str(path.relative_to(base.parent))] = path.read_bytes()
    return found


def _observation(call: Call) -> dict[str, Any]:
    seen: Observation = call.answer
    return {
        "ok": seen.ok,
        "exit_code": seen.exit_code,
        "error_class": seen.error_class,
        "capped": list(seen.capped),
        "stdout": seen.stdout,
        "stderr": seen.stderr,
        "usage": {name: getattr(seen.usage, name) for name in seen.usage.__slots__},
        "trace": seen.trace.to_wire(),
    }


def _show_observation(call: Call) -> Iterator[str]:
    seen: Observation = call.answer
    echo(seen.stdout, nl=False)
    echo(seen.stderr, nl=False, err=True)
    for cap in seen.capped:
        echo(f"sandbox: {_CAPS[cap]}", err=True)
    if seen.error_class in ("sandbox_denied", "exec_unavailable"):
        echo(f"sandbox: the command was not run [{seen.error_class}]", err=True)
    return iter(())


def _exit_code(call: Call) -> int:
    seen: Observation = call.answer
    if seen.exit_code is not None and seen.error_class in (None, "exit_nonzero"):
        return seen.exit_code
    if seen.error_class == "sandbox_timeout":
        return EXIT_TIMEOUT
    return EXIT_KILLED if seen.error_class == "cap_exceeded" else EXIT_NO_SANDBOX


sandbox = Command(
    "",
    _show_observation,
    function=_run_walled_off,
    on="program",
    document=_observation,
    code=_exit_code,
    about="No network, no files of this machine, limits on everything, an empty scratch folder. One argument is a "
    "line of bash; several are a program and its arguments. The exit code is the command's, 124 if it was stopped at "
    "a time limit, 137 at another, 125 if there is no sandbox: then nothing was run.",
)
