"""`muniment validate` and `muniment schema` from outside: what is read, what is said, which exit code (X-04)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from muniment.surfaces.cli import _reading
from muniment.surfaces.cli.main import TREE, Entry, cli

V = "0.5.15"
HINT = {"memory_id": "m", "source": "Rulebook"}
STACK = {"schema_version": V, "stack": ["a"]}


def run(*args: str, data: bytes | str | None = None) -> Result:
    return CliRunner().invoke(cli, list(args), input=data)


def lines(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def write(path: Path, content: bytes | str) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


@pytest.mark.req("X-04")
def test_one_json_document(tmp_path: Path) -> None:
    name = write(tmp_path / "hint.json", json.dumps(HINT, indent=2))
    result = run("validate", "--kind", "MemoryHint", name)
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{name}: valid\n", "")


@pytest.mark.req("X-04")
def test_a_bad_document_says_where_what_was_wanted_and_what_was_found(tmp_path: Path) -> None:
    name = write(tmp_path / "hint.json", '{"memory_id": 7}')
    result = run("validate", "--kind", "MemoryHint", name)
    assert result.exit_code == 1
    assert result.stdout == (
        f"{name}: invalid\n  $.memory_id: wanted a string, found 7\n  $.source: a required key is missing\n"
    )


@pytest.mark.req("X-04")
def test_json_lines_are_one_line_a_document_in_order(tmp_path: Path) -> None:
    text = f"{json.dumps(STACK)}\n\n{json.dumps({**STACK, 'stack': 1})}\nnot json\n{json.dumps(STACK)}"
    name = write(tmp_path / "stacks.jsonl", text)
    single = write(tmp_path / "one.json", json.dumps(STACK, indent=1))
    result = run("validate", "--kind", "WorkingSet", "--json", name, single)
    assert result.exit_code == 1
    found = lines(result)
    assert [(one["index"], one["valid"], one["line"]) for one in found] == [
        (0, True, 1),
        (1, False, 3),
        (2, False, 4),
        (3, True, 5),
        (4, True, 1),
    ]
    assert found[1]["errors"] == [{"path": "$.stack", "message": "wanted an array, found 1"}]
    assert set(found[0]) == {"index", "valid", "errors", "file", "line"}
    assert found[4]["file"] == single


@pytest.mark.req("X-04")
@pytest.mark.parametrize(
    ("content", "verdicts"),
    [
        (json.dumps(STACK), [True]),
        (json.dumps(STACK, indent=2), [True]),
        (f"{json.dumps(STACK)}\n{json.dumps(STACK)}\n", [True, True]),
        (f"\n\n{json.dumps(STACK)}\n{{}}\n", [True, False]),
        (f"[{json.dumps(STACK)}, {json.dumps(STACK)}]", [False]),  # an array is one document, and no record
        (f"[\n{json.dumps(STACK)}\n]", [False]),
        ("", [False]),
        ("  \n", [False]),
        ("not json", [False]),
        ("not json\nnor this", [False, False]),
        (f"broken\n{json.dumps(STACK)}", [False, True]),
        (f'{{"schema_version": "0.5\n{json.dumps(STACK)}', [False, True]),  # a truncated first line
        ('{\n "schema_version": "0.5.15",\n "stack": ["a",]\n}', [False]),  # one document with a slip, not four
        ('{\n "schema_version": "0.5.15",\n "schema_version": "0.5.15"\n}', [False]),
        (b'{"schema_version": "0.5.15", "zz": "\xff"}', [False]),
        (b"\xef\xbb\xbf" + json.dumps(STACK).encode(), [False]),
        ('{"schema_version": "0.5.15", "zz": NaN}', [False]),
        ('{"schema_version": "0.5.15", "zz": 1e999}', [False]),
        ('{"schema_version": "0.5.15", "zz": "\\ud800"}', [False]),
        ('{"schema_version": "0.5.15", "schema_version": "0.5.15"}', [False]),
        ("[" * 100_000, [False]),
        ('{"schema_version": "0.5.15", "zz": ' + "[" * 200 + "]" * 200 + "}", [False]),
        (f"{json.dumps(STACK)}\r\n{json.dumps(STACK)}\r\n", [True, True]),
    ],
)
@pytest.mark.parametrize("through", ["file", "stdin"])
def test_what_is_a_document(tmp_path: Path, content: str | bytes, verdicts: list[bool], through: str) -> None:
    name = write(tmp_path / "any.json", content) if through == "file" else "-"
    result = run("validate", "--kind", "WorkingSet", "--json", name, data=content if through == "stdin" else None)
    assert [one["valid"] for one in lines(result)] == verdicts
    assert result.exit_code == (0 if all(verdicts) else 1)
    assert all(one["errors"] for one in lines(result) if not one["valid"])


def test_an_empty_jsonl_holds_no_document(tmp_path: Path) -> None:
    result = run("validate", "--kind", "WorkingSet", "--json", write(tmp_path / "none.jsonl", "\n"))
    assert (result.exit_code, result.stdout) == (0, "")


def test_a_document_over_the_limit_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_reading, "DOCUMENT_BYTES_MAX", 1000)
    long = json.dumps({**STACK, "stack": ["x" * 2000]})
    for content, verdicts in [
        (f"{json.dumps(STACK)}\n{long}\n{json.dumps(STACK)}\n", [True, False, True]),
        (long, [False]),
        (json.dumps({**STACK, "stack": ["x"] * 500}, indent=1), [False]),
        ("broken\n" + f"{json.dumps(STACK)}\n" * 100, [False] + [True] * 100),
        (json.dumps({**STACK, "stack": ["x" * 928]}) + "\n", [True]),
    ]:
        result = run("validate", "--kind", "WorkingSet", "--json", write(tmp_path / "a.json", content))
        assert [one["valid"] for one in lines(result)] == verdicts
        bad = next((one for one in lines(result) if not one["valid"]), None)
        if bad and not content.startswith("broken"):
            assert bad["errors"] == [{"path": "$", "message": "a document over the limit of 1000 bytes"}]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to read the peak of its memory")
def test_a_line_of_100_megabytes_stays_within_memory(tmp_path: Path) -> None:
    path = tmp_path / "big.jsonl"
    with path.open("wb") as out:
        out.write(json.dumps(STACK).encode() + b'\n{"a": "')
        for _ in range(100):
            out.write(b"x" * 1_000_000)
        out.write(b'"}\n' + json.dumps(STACK).encode())
    code = (
        "import sys\n"
        "from muniment.surfaces.cli.main import cli\n"
        "try: cli(['validate', '--kind', 'WorkingSet', '--json', sys.argv[1]])\n"
        "finally: print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert [json.loads(line)["valid"] for line in done.stdout.splitlines()] == [True, False, True]
    assert int(done.stderr.split()[-1]) < 200_000, "KiB: the interpreter and one buffer of 32 MiB"


def test_an_unreadable_file_is_exit_2_and_the_others_are_still_checked(tmp_path: Path) -> None:
    good = write(tmp_path / "good.json", json.dumps(STACK))
    for bad in (str(tmp_path / "missing.json"), str(tmp_path)):
        result = run("validate", "--kind", "WorkingSet", bad, good)
        assert result.exit_code == 2
        assert result.stdout == f"{good}: valid\n"
        assert result.stderr.startswith("error[invalid_input]: cannot read")
    as_json = run("validate", "--kind", "WorkingSet", "--json", str(tmp_path / "missing.json"))
    assert json.loads(as_json.stderr)["code"] == "invalid_input"


def test_an_unknown_kind_is_a_usage_error() -> None:
    result = run("validate", "--kind", "MemoryPackage", "-", data="{}")
    assert result.exit_code == 2
    assert result.stderr.startswith(
        "error[unknown_kind]: there is no kind 'MemoryPackage'\nhint: did you mean MemoryPacket"
    )
    assert run("validate", "-").exit_code == 2
    assert run("validate", "--kind", "MemoryPacket").exit_code == 2


@pytest.mark.req("X-04", "X-08")
def test_strict_warns_of_unknown_keys_and_does_not_fail(tmp_path: Path) -> None:
    name = write(tmp_path / "a.json", json.dumps({"schema_version": V, "stck": [], "query": 1}))
    result = run("validate", "--kind", "WorkingSet", "--strict", "--json", name)
    assert result.exit_code == 0
    assert lines(result)[0]["warnings"] == [
        {"path": "$.stck", "message": "a key the contract does not know; did you mean 'stack'?"},
        {"path": "$.query", "message": "a key the contract does not know"},
    ]
    assert "warning: $.stck" in run("validate", "--kind", "WorkingSet", "--strict", name).stdout
    assert "warnings" not in lines(run("validate", "--kind", "WorkingSet", "--json", name))[0]


SNAPSHOT = {
    "snapshot_id": "s",
    "run_id": "r",
    "sequence": 1,
    "created_at": "",
    "objective": "o",
    "done_definition": "d",
    "provenance_mode": "audit_only",
    "policy_snapshot_ref": None,
    "counts": {"steps_since_last_compaction": 0, "counted_events_since_last_compaction": 0},
    "latest_context_manifest_ids": [],
    "state": {
        "claims": [],
        "conflicts": [],
        "open_questions": [],
        "failures": [],
        "source_coverage": {"source_ids_seen": [], "chunk_ids_seen": [], "chunk_ids_cited": []},
    },
    "retrieval_diagnostics": {},
    "validation": {"status": "PASS", "checks": [], "failure_action_taken": "NONE"},
}


@pytest.mark.req("X-04", "CS-05")
def test_semantic_compares_the_snapshots_of_a_run_over_all_files(tmp_path: Path) -> None:
    later = write(tmp_path / "later.jsonl", json.dumps({**SNAPSHOT, "sequence": 2, "objective": "p"}) + "\nnot json\n")
    first = write(tmp_path / "first.json", json.dumps(SNAPSHOT))
    result = run("validate", "--kind", "CompactionSnapshot", "--semantic", "--json", later, first)
    assert result.exit_code == 1
    assert [(one["index"], one["valid"]) for one in lines(result)] == [(0, False), (1, False), (2, True)]
    assert lines(result)[0]["errors"][0]["path"] == "$.objective"
    assert "first snapshot" in lines(result)[0]["errors"][0]["message"]
    without = run("validate", "--kind", "CompactionSnapshot", "--json", later, first)
    assert [one["valid"] for one in lines(without)] == [True, False, True]


@pytest.mark.req("X-04", "CS-06")
def test_semantic_rules_of_one_document(tmp_path: Path) -> None:
    claim = {"claim_id": "k", "status": "verified", "statement": "s", "evidence_refs": []}
    document = {**SNAPSHOT, "state": {**SNAPSHOT["state"], "claims": [claim]}}  # type: ignore[dict-item]
    name = write(tmp_path / "a.json", json.dumps(document))
    assert run("validate", "--kind", "CompactionSnapshot", name).exit_code == 0
    result = run("validate", "--kind", "CompactionSnapshot", "--semantic", name)
    assert result.exit_code == 1
    assert "$.state.claims[0].evidence_refs" in result.stdout


@pytest.mark.req("X-04")
def test_schema_list_show_export(tmp_path: Path) -> None:
    listed = [line.split()[0] for line in run("schema", "list").stdout.splitlines()]
    assert len(listed) == 34  # those of the four documents, and our own neutral file
    assert [one["kind"] for one in lines(run("schema", "list", "--json"))] == listed
    shown = run("schema", "show", "EventLog")
    assert json.loads(shown.stdout)["$id"] == "urn:muniment:schema:EventLog"
    assert lines(run("schema", "show", "EventLog", "--json")) == [json.loads(shown.stdout)]
    assert run("schema", "show", "Eventlog").exit_code == 2
    done = run("schema", "export", str(tmp_path / "out" / "schemas"))
    assert done.exit_code == 0
    assert sorted(path.stem for path in (tmp_path / "out" / "schemas").iterdir()) == sorted(listed)
    assert (tmp_path / "out" / "schemas" / "EventLog.json").read_text(encoding="utf-8") == shown.stdout


def test_help_names_every_command_and_imports_none() -> None:
    code = (
        "import sys\nfrom muniment.surfaces.cli.main import cli\n"
        "try: cli(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'pydantic', 'sqlite3', 'rich', 'muniment.surfaces.cli.commands', 'muniment.surfaces.cli.calling'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for name, entry in TREE.items():
        assert (f"\n  {name} " in done.stdout) is not entry.hidden
        assert entry.hidden or entry.summary.partition(",")[0][:40] in done.stdout


def test_version_module_and_slips() -> None:
    version = run("--version")
    assert version.stdout.startswith("muniment ")
    env = {key: value for key, value in os.environ.items() if not key.startswith("MUNIMENT_")}
    done = subprocess.run(
        [sys.executable, "-m", "muniment", "--version"], capture_output=True, text=True, check=True, env=env
    )
    assert done.stdout == version.stdout
    slip = run("validat")
    assert slip.exit_code == 2
    assert "Did you mean 'validate'?" in slip.stderr


def test_a_command_whose_module_is_missing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "entries", {**TREE, "nowhere": Entry("Not there.", "nowhere:nowhere")})
    assert run("--help").exit_code == 0
    result = run("nowhere")
    assert result.exit_code == 1
    assert "not part of this build" in result.stderr
