"""`muniment research` by hand: the whole way, every refusal, edited files, two at once, what goes over the network."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from cli_room import Commands, in_folder
from click.testing import CliRunner

import muniment
from muniment.research.records import GatesFile, ResearchManifest, WaveResult
from muniment.surfaces.cli.hints import PHRASES
from muniment.surfaces.cli.main import cli
from muniment.surfaces.cli.tree import TREE
from muniment.testing.stories import LAUNDERED, PAGES, QUESTION, draft_for, output_for
from products import for_each

RUN = "dr_1"
TOOLS = ("--tool", "search_calls=2", "--tool", "fetch_calls=2")
CHINESE = "中国新能源汽车市场近年来发展如何，主要驱动因素和争议是什么？"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    in_folder(tmp_path, monkeypatch)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("COLUMNS", "160")
    for number in (1, 2, 3):
        Path(f"p{number}.md").write_text(output_for(f"p{number}"), "utf-8")
    Path("pages.jsonl").write_text("".join(json.dumps(page) + "\n" for page in PAGES), "utf-8")
    return tmp_path


COMMANDS = Commands("research")
call, text, document, failure = COMMANDS.call, COMMANDS.text, COMMANDS.document, COMMANDS.failure


def begin(question: str = QUESTION, *more: str) -> None:
    text("init", question, "--user", "ana", "--run-id", RUN, *more)


def walk_to(stage: str) -> None:
    begin()
    text("route", RUN)
    if stage == "wave1":
        return
    for name in ("p1", "p2", "p3"):
        text("ingest", RUN, name, f"{name}.md", *TOOLS)
    text("pivot", RUN)
    text("source", RUN, "--lines", "pages.jsonl")
    text("citations", RUN)
    if stage == "synthesis":
        text("pack", RUN)


def write_draft(name: str = "report.md") -> str:
    with muniment.open("muniment.db") as mem:
        draft = draft_for(mem.open_research(RUN).synthesis_input())
    Path(name).write_text(draft, "utf-8")
    return draft


# -- the whole way ------------------------------------------------------------------------------------


@pytest.mark.req("RP-07")
def test_the_whole_way_in_words(folder: Path) -> None:
    told = text("init", QUESTION, "--user", "ana", "--run-id", RUN)
    assert f"next:     muniment research route {RUN}" in told
    assert str(folder / "config/opencode/research-runs" / RUN) in told
    assert "p3  contrarian" in text("route", RUN)
    assert text("prompt", RUN, "p1").startswith("# Research task p1")
    for name in ("p1", "p2", "p3"):
        assert f"{name} accepted, attempt 1" in text("ingest", RUN, name, f"{name}.md", *TOOLS)
    assert "no second wave" in text("pivot", RUN)
    first = text("citations", RUN)
    assert "3 unchecked" in first
    assert "✗ C citations ░░░░░░░░░░ 0 of 3" in first
    assert "kept: 3 sources" in text("source", RUN, "--lines", "pages.jsonl")
    assert "✓ C citations ██████████ 3 of 3 valid" in text("citations", RUN)
    assert "flagged: 3 claims" in text("pack", RUN)
    assert LAUNDERED in text("claims", RUN)
    given = text("synthesis", RUN)
    assert LAUNDERED not in given
    assert all(page["url"] in given for page in PAGES)
    write_draft()
    assert "the report holds" in text("check", RUN, "report.md")
    assert "synthesis ✓ → done ✓" in text("status", RUN)


def test_every_command_answers_with_one_document(folder: Path) -> None:
    def moved(*args: str, to: str, code: int = 0) -> Any:
        told = document(*args, code=code)
        assert (told["run_id"], told["stage"]) == (RUN, to)
        assert told["revision"] >= 1
        return told

    started = moved("init", QUESTION, "--user", "ana", "--run-id", RUN, to="init")
    ResearchManifest.from_wire(started["manifest"])
    names = [each["id"] for each in moved("route", RUN, "--revision", "1", to="wave1")["perspectives"]]
    assert names == ["p1", "p2", "p3"]
    assert "# Research task p2" in moved("prompt", RUN, "p2", to="wave1")["prompt"]
    for name in ("p1", "p2"):
        result = WaveResult.from_wire(moved("ingest", RUN, name, f"{name}.md", *TOOLS, to="wave1")["result"])
        assert result.accepted
    assert moved("give-up", RUN, "p3", "--reason", "no time", to="wave1")["standing"] == "given_up"
    assert moved("pivot", RUN, "--no-second-wave", to="wave1")["decision"]["second_wave"] is False
    assert len(moved("source", RUN, "--lines", "pages.jsonl", to="wave1")["cids"]) == 3
    settled = moved("citations", RUN, to="citations")
    assert [each["status"] for each in settled["citations"]] == ["valid"] * 3
    assert (settled["gate"]["status"], settled["looked"]) == ("pass", [])
    packed = moved("pack", RUN, to="synthesis")
    assert (packed["pack"]["schema_version"], packed["flagged"]) == ("summary_pack.v1", {"p1": 1, "p2": 1})
    claims = moved("claims", RUN, to="synthesis")
    assert {each["claim"] for each in claims["claims"]} == {LAUNDERED}
    assert len(moved("claims", RUN, "--all", "--perspective", "p1", to="synthesis")["claims"]) == 6
    given = moved("synthesis", RUN, to="synthesis")
    assert given["pack"] == packed["pack"]
    gates = moved("gates", RUN, to="synthesis")["gates"]
    assert [gate["status"] for gate in gates] == ["pass", "pass", "pass", "pass", "not_run"]
    status = moved("status", RUN, to="synthesis")
    GatesFile.from_wire(status["gates"])
    assert set(status["summary_bytes"]) == {"p1", "p2"}
    assert status["commands"][0] == f"muniment research synthesis {RUN}"
    write_draft()
    assert moved("check", RUN, "report.md", to="done")["check"]["passed"]
    assert moved("resume", RUN, to="done")["written"] == []
    (listed,) = document("list")["runs"]
    assert (listed["run_id"], listed["user_id"], listed["stage"]) == (RUN, "ana", "done")


@for_each("name", TREE["research"].entries)
def test_every_command_explains_itself(name: str) -> None:
    told = text(name, "--help")
    assert "Usage: " in told
    assert "--json" in told


def test_a_chinese_question_from_standard_input(folder: Path) -> None:
    result = call("init", "-", "--user", "李雷", "--run-id", RUN, "--agent", "研究员", stdin=CHINESE.encode())
    assert result.exit_code == 0, result.output
    table = text("route", RUN).splitlines()
    assert "研究员" in table[1]
    assert CHINESE in text("prompt", RUN, "p1")
    assert "李雷" in text("list")


def test_a_question_from_a_file_and_limits(folder: Path) -> None:
    Path("question.txt").write_text(QUESTION + "\n", "utf-8")
    told = document(
        "init",
        "--file",
        "question.txt",
        "--user",
        "ana",
        "--limit",
        "max_summary_kb=0.5",
        "--limit",
        "max_wave2_agents=0",
    )
    assert told["manifest"]["question"] == QUESTION
    assert (told["manifest"]["limits"]["max_summary_kb"], told["manifest"]["limits"]["max_wave2_agents"]) == (0.5, 0)


def test_a_plan_of_ones_own(folder: Path) -> None:
    begin()
    plan = document("route", RUN)["perspectives"]
    plan[0]["title"] = "What the installers say"
    Path("plan.json").write_text(json.dumps(plan), "utf-8")
    assert "What the installers say" in text("route", RUN, "--plan", "plan.json")
    plan[1]["agent_type"] = "Nobody"
    Path("plan.json").write_text(json.dumps({"perspectives": plan}), "utf-8")
    (issue,) = failure("route", RUN, "--plan", "plan.json")["details"]["issues"]
    assert issue["path"] == "$.perspectives[1].agent_type"
    assert "What the installers say" in text("prompt", RUN, "p1")


def test_what_agents_write_cannot_drive_the_terminal(folder: Path) -> None:
    walk_to("wave1")
    bell = "The study \x1b[31mfollowed\x07 550 homes in Norway. [1]"
    for name in ("p1", "p2", "p3"):
        output = Path(f"{name}.md").read_text("utf-8").replace("## Sources", f"- {bell}\n\n## Sources")
        Path(f"{name}.md").write_text(output.replace("None", "- [P1] figures \x1b[2J of 2024"), "utf-8")
        assert "\x1b" not in text("ingest", RUN, name, f"{name}.md", *TOOLS)
    told = text("pivot", RUN, "--no-second-wave")
    text("source", RUN, "--lines", "pages.jsonl")
    told += text("citations", RUN) + text("pack", RUN) + text("claims", RUN, "--all") + text("synthesis", RUN)
    assert "550 homes in Norway" in told
    assert not {"\x1b", "\x07"} & set(told + text("status", RUN))


def test_commands_that_are_printed_name_the_store(folder: Path) -> None:
    told = text("init", QUESTION, "--user", "ana", "--run-id", RUN, "--db", "other store.db")
    assert f"next:     muniment research route {RUN} --db 'other store.db'" in told
    assert f"muniment research prompt {RUN} p1 --db 'other store.db'" in text("route", RUN, "--db", "other store.db")


# -- outputs that are not accepted --------------------------------------------------------------------


@pytest.mark.req("RP-02")
def test_a_rejected_output_says_what_to_tell_the_agent(folder: Path) -> None:
    walk_to("wave1")
    whole = Path("p1.md").read_text("utf-8")
    Path("short.md").write_text(whole.partition("## Sources")[0], "utf-8")
    result = call("ingest", RUN, "p1", "short.md", *TOOLS)
    assert (result.exit_code, result.stderr) == (1, "")
    for piece in (
        "p1 rejected, attempt 1",
        "missing_section: ",
        "dangling_mark: ",
        "tell the agent:",
        "Add a change note",
    ):
        assert piece in result.stdout
    again = f"muniment research ingest {RUN} p1 FILE --tool fetch_calls=N --tool search_calls=N --change-note TEXT"
    assert f"again:   {again}\n" in result.stdout
    assert again in text("status", RUN)
    assert "what has to change" in text("prompt", RUN, "p1")
    told = document("ingest", RUN, "p1", "p1.md", *TOOLS, code=1)["result"]
    assert [breach["kind"] for breach in told["breaches"]] == ["missing_change_note"]
    assert "p1 accepted, attempt 2" in text("ingest", RUN, "p1", "p1.md", *TOOLS, "--change-note", "added the sources")
    assert "accepted (2)" in text("status", RUN)


def test_an_agent_result_with_its_pages(folder: Path) -> None:
    walk_to("wave1")
    result = {"markdown": Path("p1.md").read_text("utf-8"), "tool_use": {"search_calls": 1}, "sources": PAGES[:1]}
    Path("p1.json").write_text(json.dumps(result), "utf-8")
    text("ingest", RUN, "p1", "p1.json")
    Path("page.html").write_text(f"<title>Prices</title><p>{PAGES[1]['text']}</p>", "utf-8")
    text("ingest", RUN, "p2", "p2.md", *TOOLS, "--source", f"{PAGES[1]['url']}?a=b=page.html")
    text("ingest", RUN, "p3", "p3.md", *TOOLS, "--source", f"{PAGES[1]['url']}=page.html")
    text("pivot", RUN)
    settled = {each["url"]: each for each in document("citations", RUN)["citations"]}
    assert [settled[page["url"]]["status"] for page in PAGES] == ["valid", "valid", "unchecked"]
    assert settled[PAGES[1]["url"]]["title"] == "Prices"


def test_one_source_as_a_page_or_a_snippet(folder: Path) -> None:
    walk_to("wave1")
    Path("page.md").write_text(PAGES[0]["text"], "utf-8")
    assert "kept: 1 source\n" in text("source", RUN, PAGES[0]["url"], "page.md", "--title", "A study")
    assert "kept: 1 source\n" in text("source", RUN, PAGES[1]["url"], "--snippet", PAGES[1]["text"])
    with muniment.open("muniment.db") as mem:
        documents = mem.corpus(f"research-{RUN}", user_id="ana").documents()
    assert {each.document_id.partition(":")[2]: each.title for each in documents} == {
        "page": "A study",
        "snippet": None,
    }


@pytest.mark.req("RP-08")
def test_a_draft_is_checked_line_by_line(folder: Path) -> None:
    walk_to("synthesis")
    good = write_draft()
    bad = good.replace("## Limitations", "Half of them save 77 euros a month.\n\n## Weather")
    Path("bad.md").write_text(bad, "utf-8")
    result = call("check", RUN, "bad.md")
    assert (result.exit_code, result.stderr) == (1, "")
    line = bad[: bad.index("Half of them")].count("\n") + 1
    assert f"bad.md:{line}: uncited_figure: " in result.stdout
    assert "bad.md: missing_section: " in result.stdout
    assert "2 findings; review 1 of 4" in result.stdout
    told = document("check", RUN, "bad.md", "--section", "Weather", "--section", "Findings", code=1)
    assert [each["problem"] for each in told["check"]["findings"]] == ["uncited_figure"]
    assert call("gates", RUN).exit_code == 1
    assert "review 3 of 4" in text("check", RUN, "report.md")


# -- refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "code", "kind"),
    [
        (("init", "--user", "ana"), 2, "invalid_input"),
        (("init", " ", "--user", "ana"), 2, "invalid_input"),
        (("init", "Why?"), 2, "invalid_input"),
        (("init", "Why?", "--file", "p1.md", "--user", "ana"), 2, "invalid_input"),
        (("init", "--file", "nowhere.md", "--user", "ana"), 2, "invalid_input"),
        (("init", "--file", "binary.md", "--user", "ana"), 2, "invalid_input"),
        (("init", "Why?", "--user", "ana", "--mode", "huge"), 2, "invalid_input"),
        (("init", "Why?", "--user", "ana", "--limit", "max_summary_kb=0"), 1, "invalid_record"),
        (("init", "Why?", "--user", "ana", "--limit", "max_summary_kb=nan"), 1, "invalid_record"),
        (("init", "Why?", "--user", "ana", "--limit", "colour=1"), 1, "invalid_record"),
        (("init", "Why?", "--user", "ana", "--limit", "max_summary_kb=much"), 2, "invalid_input"),
        (("init", "Why?", "--user", "ana", "--run-id", "../up"), 2, "invalid_input"),
        (("init", "Why?", "--user", "ana", "--run-id", RUN), 1, "conflict"),
        (("status", "dr_none"), 1, "not_found"),
        (("status", RUN, "--db", "nowhere.db"), 2, "invalid_input"),
        (("status", RUN, "--db", "p1.md"), 1, "not_a_database"),
        (("route", RUN, "--plan", "nowhere.json"), 2, "invalid_input"),
        (("route", RUN, "--plan", "p1.md"), 1, "invalid_json"),
        (("route", RUN, "--plan", "empty.json"), 1, "invalid_record"),
        (("route", RUN, "--revision", "9"), 1, "stale_state"),
        (("prompt", RUN, "p9"), 1, "not_found"),
        (("ingest", RUN, "p9", "p1.md", *TOOLS), 1, "not_found"),
        (("ingest", RUN, "p1", "nowhere.md"), 2, "invalid_input"),
        (("ingest", RUN, "p1", "binary.md"), 2, "invalid_input"),
        (("ingest", RUN, "p1", "."), 2, "invalid_input"),
        (("ingest", RUN, "p1", "huge.md"), 1, "too_large"),
        (("ingest", RUN, "p1", "empty.json"), 2, "invalid_input"),
        (("ingest", RUN, "p1", "p1.md", "--tool", "search_calls"), 2, "invalid_input"),
        (("ingest", RUN, "p1", "p1.md", "--tool", "search_calls=-1"), 2, "invalid_input"),
        (("ingest", RUN, "p1", "p1.md", *TOOLS, "--source", "nothing"), 2, "invalid_input"),
        (("ingest", RUN, "p1", "p1.md", *TOOLS, "--source", "mailto:a@example.org=p1.md"), 2, "invalid_input"),
        (("give-up", RUN, "p1", "--reason", " "), 2, "invalid_input"),
        (("pivot", RUN), 1, "gate_failed"),
        (("source", RUN), 2, "invalid_input"),
        (("source", RUN, "https://a.example/"), 2, "invalid_input"),
        (("source", RUN, "https://a.example/", "p1.md", "--snippet", "x"), 2, "invalid_input"),
        (("source", RUN, "https://a.example/", "binary.md"), 2, "invalid_input"),
        (("source", RUN, "https://a.example/", "--snippet", ""), 1, "invalid_record"),
        (("source", RUN, "no address", "--snippet", "x"), 2, "invalid_input"),
        (("source", RUN, "--lines", "blank.jsonl"), 2, "invalid_input"),
        (("source", RUN, "--lines", "binary.md"), 1, "invalid_json"),
        (("source", RUN, "--lines", "lines.jsonl"), 2, "invalid_input"),
        (("citations", RUN), 1, "wrong_stage"),
        (("pack", RUN), 1, "wrong_stage"),
        (("synthesis", RUN), 1, "wrong_stage"),
        (("check", RUN, "p1.md"), 1, "wrong_stage"),
        (("check", RUN, "nowhere.md"), 2, "invalid_input"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else str(each),
)
def test_what_is_refused_changes_nothing(folder: Path, args: tuple[str, ...], code: int, kind: str) -> None:
    walk_to("wave1")
    Path("binary.md").write_bytes(b"\x00\xff\xfe" * 100)
    Path("blank.jsonl").write_bytes(b"\n\n")
    Path("empty.json").write_text("[]", "utf-8")
    Path("lines.jsonl").write_text('"a"\n', "utf-8")
    Path("huge.md").write_bytes(b"word " * 1_000_000)
    before = document("status", RUN)["manifest"]
    assert failure(*args, code=code)["code"] == kind
    assert document("status", RUN)["manifest"] == before
    assert document("status", RUN)["edited"] == []
    assert len(document("list")["runs"]) == 1


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (("status", "dr_none"), "`muniment research list` names the research runs of this store"),
        (("citations", RUN), f"`muniment research pivot {RUN}` first"),
        (("pack", RUN), f"`muniment research status {RUN}` says what comes next"),
        (("pivot", RUN), f"`muniment research gates {RUN}` says what would help"),
        (("init", QUESTION, "--user", "ana", "--run-id", RUN), f"`muniment research status {RUN}` shows how it stands"),
    ],
)
def test_hints_name_commands(folder: Path, args: tuple[str, ...], hint: str) -> None:
    walk_to("wave1")
    assert failure(*args)["hint"] == hint


def test_no_hint_is_translated_that_nobody_gives() -> None:
    """Else a hint that was reworded would speak of Python calls on the command line."""
    package = Path(muniment.__file__).parent
    sources = [path for path in sorted(package.rglob("*.py")) if "surfaces" not in path.parts]
    given = "".join(path.read_text("utf-8") for path in sources)
    for phrase in {**PHRASES["research"], **PHRASES["rules"], **PHRASES[""]}:
        assert phrase in given or phrase.replace("objective", "{name}") in given, phrase


def test_a_command_that_does_not_exist(folder: Path) -> None:
    done = call("statsu", RUN)
    assert done.exit_code == 2
    assert "Did you mean 'status'?" in done.stderr


def test_the_group_alone_shows_its_help(folder: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "muniment", "research"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: muniment research [OPTIONS] COMMAND")


# -- files --------------------------------------------------------------------------------------------


def test_an_edited_file_is_named_until_it_is_written_anew(folder: Path) -> None:
    walk_to("synthesis")
    pack = folder / "config/opencode/research-runs" / RUN / "summaries/summary-pack.json"
    pack.write_text(pack.read_text("utf-8") + " ", "utf-8")
    error = failure("synthesis", RUN)
    assert (error["code"], error["details"]["paths"]) == ("artifact_edited", ["summaries/summary-pack.json"])
    assert error["hint"].startswith(f"`muniment research resume {RUN}` writes the store's files")
    told = text("status", RUN)
    assert "edited      not what the store holds: summaries/summary-pack.json" in told
    assert told.endswith(f"muniment research resume {RUN}\n")
    assert "written: summaries/summary-pack.json\n" in text("resume", RUN)
    text("synthesis", RUN)


def test_a_directory_of_ones_own_can_move(folder: Path) -> None:
    text("init", QUESTION, "--user", "ana", "--run-id", RUN, "--dir", "here")
    Path("here").rename("there")
    assert failure("route", RUN)["code"] == "artifact_edited"
    text("route", RUN, "--dir", "there")
    assert document("status", RUN)["directory"] == str(folder / "there")
    error = failure("init", "Another?", "--user", "ana", "--run-id", "dr_2", "--dir", "there")
    assert (error["code"], error["path"]) == ("conflict", "$.directory")


def test_whoever_comes_second_is_told(folder: Path) -> None:
    walk_to("wave1")
    command = [sys.executable, "-m", "muniment", "research", "ingest", RUN, "p1", "p1.md", *TOOLS, "--json"]
    with (folder / "config/opencode/research-runs" / RUN / ".lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "waiting" in text("status", RUN)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert json.loads(done.stderr)["code"] == "storage_busy"
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["result"]["accepted"]


def test_a_forgotten_run_is_not_listed(folder: Path) -> None:
    walk_to("synthesis")
    assert CliRunner().invoke(cli, ["forget", "--user", "ana", "--yes"]).exit_code == 0
    assert failure("status", RUN)["code"] == "forgotten"
    assert text("list") == "no research runs in muniment.db\n"
    assert not (folder / "config/opencode/research-runs" / RUN).exists()


# -- the network --------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """A page of our own, and who asked for it."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = PAGES[0]["text"].encode()
            self.send_response(200 if self.path == "/study" else 403)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as http:
        threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{http.server_address[1]}", asked
        http.shutdown()


@pytest.mark.soak
def test_nothing_is_fetched_unless_asked_for(folder: Path, server: tuple[str, list[str]]) -> None:
    address, asked = server
    begin()
    text("route", RUN)
    for name in ("p1", "p2", "p3"):
        output = Path(f"{name}.md").read_text("utf-8").replace(PAGES[0]["url"], f"{address}/study")
        Path(f"{name}.md").write_text(output.replace(PAGES[1]["url"], f"{address}/secret"), "utf-8")
        text("ingest", RUN, name, f"{name}.md", *TOOLS)
    text("pivot", RUN)
    text("source", RUN, PAGES[2]["url"], "--snippet", PAGES[2]["text"])
    text("citations", RUN)
    assert document("citations", RUN, "--check-urls")["looked"][0]["status"] == "unchecked"
    assert asked == []
    told = text("citations", RUN, "--check-urls", "--allow-private")
    assert sorted(asked) == ["/secret", "/study"]
    assert "1 blocked, 2 valid" in told
    assert f"muniment research citations {RUN} --check-urls" in told


# -- for the eye --------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_the_status_fits_its_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    from rich.cells import cell_len

    monkeypatch.setenv("COLUMNS", columns)
    begin(CHINESE)
    text("route", RUN)
    lines = text("status", RUN).splitlines()
    titles = [line for line in lines if "中国新能源汽车" in line and not line.startswith("中国")]
    assert len(titles) >= 2
    assert all(cell_len(line) <= int(columns) for line in titles)
    assert "[wave1] → wave2 → citations" in "\n".join(lines)
    assert any(line.startswith("… B waves") for line in lines)


def test_a_question_that_is_none_leaves_no_store_behind(folder: Path) -> None:
    result = call("init", "  ", "--db", "new.db", "--user", "ana")
    assert (result.exit_code, Path("new.db").exists()) == (2, False)
    assert "error[invalid_input]" in result.stderr
