"""The commands that recall, by hand: search, compose, replay, diff, explain, why, facts, episodes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cli_room import Commands, copied, in_folder
from click.testing import CliRunner

import muniment
from effort import SOAK
from muniment.contracts.schemas import validate
from muniment.contracts.semantics import check_semantics
from muniment.packets.explain import REASONS
from muniment.surfaces.cli import explained
from muniment.surfaces.cli.main import cli
from muniment.surfaces.cli.terminal import one_line, when
from products import for_each

QUERY = "Where does Ana live?"
DINNER = ("--session", "s2", "--run", "run_dinner")
READERS = (
    ("search", QUERY, "--user", "ana"),
    ("compose", "responder", "--query", QUERY, "--user", "ana"),
    ("replay", "bld_x"),
    ("diff", "bld_x", "bld_y"),
    ("explain", "bld_x"),
    ("why", "Berlin"),
    ("facts", "--user", "ana"),
    ("memory", "episodes", "--user", "ana"),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return in_folder(tmp_path, monkeypatch)


@pytest.fixture(scope="module", name="filled")
def make_filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Two sessions in which a fact changes; the ids of what matters."""
    path = tmp_path_factory.mktemp("filled") / "muniment.db"
    with muniment.open(path) as mem:
        run = mem.run(user_id="ana", session_id="s1")
        old = run.observe("user", "I live in Lisbon.", speaker="Ana", ts="2026-03-01T10:00:00Z", tags=["home"])
        run.remember("user.city", "Lisbon", sources=[old.id])
        later = run.observe("user", "I like the tram.", speaker="Ana", ts="2026-03-02T10:00:00Z")
        run = mem.run(user_id="ana", session_id="s2", run_id="run_dinner")
        new = run.observe("user", "I moved to Berlin, so I live in Berlin now.", speaker="Ana", ts="2026-05-01")
        run.remember("user.city", "Berlin", sources=[new.id], valid_from="2026-05-01")
        run.patch(goal="book dinner", plan=[{"step": "find a table", "status": "todo"}])
        run.insight("hypothesis", "she may miss the sea", sources=[new.id])
    return path, {"old": old.id, "later": later.id, "new": new.id}


@pytest.fixture
def store(folder: Path, filled: tuple[Path, dict[str, str]]) -> dict[str, str]:
    copied(filled[0], folder)
    return filled[1]


COMMANDS = Commands()
call, document, failure = COMMANDS.call, COMMANDS.document, COMMANDS.failure


def composed(*args: str) -> str:
    build_id: str = document("compose", *args, "--user", "ana")["build_id"]
    return build_id


# -- search -------------------------------------------------------------------------------------------


def test_search_says_what_why_who_when(store: dict[str, str]) -> None:
    hits = document("search", QUERY, "--user", "ana")["hits"]
    events = [hit for hit in hits if hit["kind"] == "event"]
    assert events[0]["id"] == store["new"]
    assert events[0]["speaker"] == "Ana"
    assert events[0]["why"]
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    shown = call("search", QUERY, "--user", "ana", "--k", "1").stdout
    assert len([line for line in shown.splitlines() if line.startswith(" 1 ")]) == 1
    assert " 2  " not in shown
    text = call("search", QUERY, "--user", "ana").stdout
    for piece in ("Ana: I moved to Berlin", "2026-05-01", store["new"], events[0]["why"][0]):
        assert piece in text


def test_search_reads_as_of_a_time_and_from_standard_input(store: dict[str, str]) -> None:
    asked = document("search", "-", "--user", "ana", "--now", "2026-06-01", stdin=QUERY)
    assert asked == document("search", QUERY, "--user", "ana", "--now", "2026-06-01T00:00:00Z")
    assert failure("search", "-", "--user", "ana", code=2, stdin=b"\xff")["code"] == "invalid_input"


def test_search_takes_the_user_from_the_settings(
    folder: Path, store: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert failure("search", QUERY, code=2)["path"] == "$.user"
    (folder / "muniment.toml").write_text('user = "ana"\n')
    assert document("search", QUERY)["hits"]
    monkeypatch.setenv("MUNIMENT_USER", "zoe")
    assert document("search", QUERY)["hits"] == []
    assert document("search", QUERY, "--user", "ana")["hits"]


@pytest.mark.parametrize("k", ["0", "-1", "1001"])
def test_search_refuses_a_bad_k(store: dict[str, str], k: str) -> None:
    assert failure("search", QUERY, "--user", "ana", "--k", k, code=2)["path"] == "$.k"
    assert failure("search", QUERY, "--user", "ana", "--now", "soon", code=2)["path"] == "$.now"


@pytest.mark.req("TM-11")
def test_search_leaves_out_what_is_less_likely_evidence(store: dict[str, str]) -> None:
    every = document("search", QUERY, "--user", "ana")["hits"]
    least = str(every[0]["score"])
    assert document("search", QUERY, "--user", "ana", "--min-score", least)["hits"] == every[:1]
    assert document("search", QUERY, "--user", "ana", "--min-score", "1")["hits"] == []
    assert failure("search", QUERY, "--user", "ana", "--min-score", "1.5", code=2)["path"] == "$.min_score"


@pytest.mark.req("MP-15")
def test_printed_parts_add_up(store: dict[str, str]) -> None:
    """The parts make the rank that orders the hits; the score is a chance, and not their sum."""
    build_id = composed("responder", "--query", QUERY)
    pages = [call("search", QUERY, "--user", "ana").stdout, call("explain", build_id).stdout]
    for page in pages:
        found = re.findall(r"rank (-?\d+\.\d\d) = ((?:\w+ -?\d+\.\d\d(?: \+ )?)+)", page)
        assert found
        for rank, parts in found:
            hundredths = [round(100 * float(part)) for part in re.findall(r"-?\d+\.\d\d", parts)]
            assert sum(hundredths) == round(100 * float(rank))


# -- compose and replay -------------------------------------------------------------------------------


@pytest.mark.parametrize("purpose", ["planner", "tool", "responder"])
def test_compose_in_three_forms(store: dict[str, str], purpose: str) -> None:
    asked = ("compose", purpose, "--query", QUERY, "--user", "ana", *DINNER, "--now", "2026-06-01")
    made = document(*asked)
    assert set(made) == {"build_id", "tokens", "found", "text", "packet"}
    assert made["found"] is True
    assert validate("MemoryPacket", made["packet"]) == check_semantics("MemoryPacket", made["packet"]) == []
    assert "I live in Berlin now" in made["text"]
    assert ("find a table" in made["text"]) == (purpose != "responder")
    assert ("miss the sea" in made["text"]) == (purpose == "planner")
    for form in ((), ("--text",)):
        shown = call(*asked, *form)
        assert shown.stdout == made["text"]
        assert shown.stderr.startswith("build bld_")
        assert f": {made['tokens']} of " in shown.stderr
    packet = call(*asked, "--packet")
    assert json.loads(packet.stdout_bytes) == made["packet"]
    again = call("replay", made["build_id"], "--packet")
    assert again.stdout_bytes == packet.stdout_bytes
    assert document("replay", made["build_id"]) == made
    assert call("replay", made["build_id"]).stdout == made["text"]


def test_compose_takes_all_its_options(store: dict[str, str]) -> None:
    made = document(
        "compose", "planner", "--query", "-", "--user", "ana", "--agent", "concierge", "--session", "s9",
        "--max-tokens", "512", "--per-section", "facts=100", "--per-section", "insights=0",
        "--cues", '{"tags": ["home"], "keywords": ["tram"]}', "--task-type", "booking", "--now", "2026-06-01",
        stdin=QUERY,
    )  # fmt: skip
    meta = made["packet"]["meta"]
    assert (meta["scope"]["agent_id"], meta["scope"]["session_id"]) == ("concierge", "s9")
    assert meta["budget"]["max_tokens"] == 512
    assert (meta["budget"]["per_section"]["facts"], meta["budget"]["per_section"]["insights"]) == (100, 0)
    assert meta["cues"] == {"tags": ["home"], "keywords": ["tram"]}
    assert meta["task_type"] == "booking"
    assert meta["generated_at"] == "2026-06-01T00:00:00.000000Z"


@for_each(
    ("args", "path", "code"),
    [
        (("teacher",), "$.purpose", "invalid_input"),
        (("tool", "--max-tokens", "-5"), "$.max_tokens", "invalid_input"),
        (("tool", "--max-tokens", "0"), "$.max_tokens", "invalid_input"),
        (("tool", "--max-tokens", "255"), "$.max_tokens", "invalid_input"),
        (("tool", "--per-section", "facts"), "$.per_section", "invalid_input"),
        (("tool", "--per-section", "facts=-1"), "$.per_section", "invalid_input"),
        (("tool", "--per-section", "gossip=9"), "$.per_section.gossip", "invalid_input"),
        (("tool", "--cues", "{"), "$.cues", "invalid_input"),
        (("tool", "--cues", "[]"), "$.cues", "invalid_input"),
        (("tool", "--cues", '{"tags": 3}'), "$.cues.tags", "invalid_record"),
        (("tool", "--now", "soon"), "$.now", "invalid_input"),
        (("tool", "--run", "run_dinner"), "$.session", "invalid_input"),
        (("tool", "--session", "s3", "--run", "run_dinner"), "$.run_id", "duplicate_id"),
        (("tool", "--session", ""), "$.session_id", "invalid_record"),
    ],
)
def test_compose_refuses(store: dict[str, str], args: tuple[str, ...], path: str, code: str) -> None:
    result = call("compose", *args, "--user", "ana", "--json")
    assert result.exit_code in (1, 2)
    assert result.stdout == ""
    error = json.loads(result.stderr)
    assert (error["path"], error["code"]) == (path, code)
    assert "builds" not in document("why", "Berlin")
    assert document("why", "e")["tellings"] == []


def test_forms_exclude_each_other(store: dict[str, str]) -> None:
    for args in (("compose", "tool", "--user", "ana"), ("replay", "bld_x")):
        assert call(*args, "--text", "--packet").exit_code == 2
        assert json.loads(call(*args, "--packet", "--json").stderr)["path"] == "$.json"


@pytest.mark.parametrize(
    "query",
    [
        "where does she live " * (50_000 if SOAK else 12_000),
        "x" * 1_000_000,
        "住在哪里" * (80_000 if SOAK else 20_000),
    ],
    ids=["words", "a word", "characters"],
)
def test_a_very_long_query(store: dict[str, str], query: str) -> None:
    assert call("search", "-", "--user", "ana", stdin=query).exit_code == 0
    assert document("compose", "planner", "--query", "-", "--user", "ana", stdin=query)["tokens"] >= 0


def test_replay_after_later_writes_and_after_forgetting(store: dict[str, str]) -> None:
    build_id = composed("responder", "--query", QUERY)
    before = call("replay", build_id, "--packet").stdout_bytes
    with muniment.open("muniment.db") as mem:
        mem.run(user_id="ana", session_id="s3").observe("user", "I live in Rome since today.")
    assert call("replay", build_id, "--packet").stdout_bytes == before
    receipt = json.loads(call("forget", "--event", store["new"], "--json", "--yes").stdout)
    for args in (("replay", build_id), ("explain", build_id), ("diff", build_id, build_id)):
        error = failure(*args, code=1)
        assert error["code"] == "forgotten"
        assert error["details"]["receipt_id"] == receipt["receipt_id"]
        assert "Berlin" not in json.dumps(error)


@pytest.mark.parametrize("args", [("replay", "bld_x"), ("explain", "bld_x"), ("diff", "bld_x", "bld_y")])
def test_a_build_that_is_not_there(store: dict[str, str], args: tuple[str, ...]) -> None:
    assert failure(*args, code=1)["code"] == "not_found"
    assert failure(*args[:-1], store["new"], code=1)["code"] == "not_found"
    build_id = composed("tool", "--query", QUERY)
    assert failure(*args[:-1], build_id, "--tenant", "other", code=1)["code"] == "not_found"


# -- diff, explain, why -------------------------------------------------------------------------------


def test_diff_says_what_changed_and_why(store: dict[str, str]) -> None:
    first = composed("planner", "--query", QUERY, *DINNER)
    second = composed("responder", "--query", QUERY, *DINNER)
    found = document("diff", first, second)
    assert (found["a"], found["b"], found["is_same"]) == (first, second, False)
    assert "purpose" in found["request"]
    removed = [change for change in found["changes"] if change["what"] == "removed"]
    assert any(change["item"].startswith("insight:") for change in removed)
    shown = call("diff", first, second).stdout
    assert "asked differently: " in shown
    assert "miss the sea" in shown
    assert explained.REASONS["insight_wall"] in shown
    assert document("diff", first, first)["is_same"] is True
    assert "the same bytes" in call("diff", first, first).stdout


def test_preview_says_what_other_settings_would_have_made_and_keeps_nothing(store: dict[str, str]) -> None:
    build_id = composed("planner", "--query", QUERY, *DINNER)
    kept = len(document("packet", "list")["builds"])
    asked = (
        "packet",
        "preview",
        build_id,
        "--purpose",
        "responder",
        "--max-tokens",
        "256",
        "--per-section",
        "episodes=0",
    )
    found = document(*asked)
    assert (found["basis"], found["request"]["budget"]["max_tokens"]) == ("then", 256)
    assert {"budget", "purpose"} <= set(found["diff"]["request"])
    shown = call(*asked).stdout
    assert shown.startswith("made from the store as the build saw it\n")
    assert explained.REASONS["insight_wall"] in shown
    assert "of 2048 → 256" in shown
    assert call(*asked, "--text").stdout == found["text"]
    assert len(document("packet", "list")["builds"]) == kept
    assert failure("packet", "preview", build_id, "--max-tokens", "3", code=2)["path"] == "$.max_tokens"


def test_explain_can_be_read(store: dict[str, str]) -> None:
    build_id = composed("responder", "--query", QUERY, *DINNER, "--max-tokens", "256")
    told = document("explain", build_id)
    packet = document("replay", build_id)["packet"]
    assert told["build_id"] == build_id
    assert told["query"] == QUERY
    assert len(told["selected"]) == len(packet["explain"]["selected"])
    assert len(told["omitted"]) == len(packet["explain"]["omitted"])
    assert told["budget_report"] == packet["budget_report"]
    assert all(each["text"] and each["why"] for each in told["selected"])
    quote = next(each for each in told["selected"] if store["new"] in each.get("sources", ()))
    assert quote["marks"]
    shown = call("explain", build_id).stdout
    for piece in (
        build_id,
        f"asked: {QUERY}",
        "of 256 tokens",
        "█",
        "░",
        "Ana: I moved to Berlin",
        "insight_wall (1): a supposition",
        "she may miss the sea",
        "deprecated (1)",
        "City: Lisbon",
        "replays to the same bytes",
        "cited",
    ):
        assert piece in shown


def test_every_reason_has_words() -> None:
    assert set(explained.REASONS) == set(REASONS)


def test_explain_shows_what_stepped_down_and_conflicts(folder: Path) -> None:
    with muniment.open("muniment.db") as mem:
        run = mem.run(user_id="ana", session_id="s1", grants=("tenant",))
        for number in range(40):
            run.observe("user", f"Berlin note {number}: {' '.join(['canal', 'bridge', 'tram'] * 12)}.", speaker="Ana")
        said = run.observe("user", "I live in Berlin.", speaker="Ana")
        run.remember("user.city", "Berlin", sources=[said.id])
        run.remember("user.city", "Bonn", sources=[said.id], scope_level="tenant")
    shown = call("explain", composed("planner", "--query", "Berlin canal note", "--max-tokens", "256")).stdout
    assert "over_budget" in shown
    assert "more; --json lists all" in shown
    assert "conflicts" in shown


def test_why_goes_back_to_the_event(store: dict[str, str]) -> None:
    assert document("why", "live in Berlin")["tellings"] == []
    assert "no build" in call("why", "live in Berlin").stdout
    build_id = composed("responder", "--query", QUERY)
    (telling,) = document("why", "live in  berlin")["tellings"]
    assert (telling["build_id"], telling["evidence_ids"]) == (build_id, [store["new"]])
    shown = call("why", "live in Berlin").stdout
    for piece in (build_id, store["new"], QUERY, "policy default", "trust user"):
        assert piece in shown
    assert document("why", "live in Berlin", "--user", "zoe")["tellings"] == []
    assert failure("why", " ", code=2)["path"] == "$.text"


# -- facts and episodes -------------------------------------------------------------------------------


def test_facts_with_their_history_and_sources(store: dict[str, str]) -> None:
    (fact,) = document("facts", "--user", "ana")["facts"]
    assert (fact["value"], fact["status"], fact["sources"]) == ("Berlin", "active", [store["new"]])
    history = document("facts", "--user", "ana", "--key", "user.city", "--all")["facts"]
    assert [(each["value"], each["status"]) for each in history] == [("Lisbon", "deprecated"), ("Berlin", "active")]
    assert [each["value"] for each in document("facts", "--user", "ana", "--at", "2026-04-01")["facts"]] == ["Lisbon"]
    shown = call("facts", "--user", "ana", "--all").stdout
    for piece in ("user.city\n", "Lisbon  [deprecated until 2026-05-01", "Berlin  [active from 2026-05-01"):
        assert piece in shown
    assert f"from {store['old']}  2026-03-01 10:00  Ana: I live in Lisbon." in shown
    assert document("facts", "--user", "ana", "--key", "none.such")["facts"] == []
    assert failure("facts", code=2)["path"] == "$.user"
    assert failure("facts", "--user", "ana", "--at", "soon", code=2)["path"] == "$.at"


def test_each_key_is_printed_once(store: dict[str, str], folder: Path) -> None:
    with muniment.open(folder / "muniment.db") as mem:
        run = mem.run(user_id="zoe", session_id="s1")
        said = run.observe("user", "I live in Rome and eat no meat. No, in Oslo, and meat is fine.")
        for key, value in (
            ("user.city", "Rome"),
            ("user.diet", "no meat"),
            ("user.city", "Oslo"),
            ("user.diet", "any"),
        ):
            run.remember(key, value, sources=[said.id])
    lines = call("facts", "--user", "zoe", "--all").stdout.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == ["user.city", "user.diet"]
    assert [line.split()[0] for line in lines if "[" in line] == ["Rome", "Oslo", "no", "any"]


def test_episodes_are_cut_by_silence(store: dict[str, str]) -> None:
    found = document("memory", "episodes", "--user", "ana")["episodes"]
    assert [(each["session_id"], each["sources"]) for each in found] == [
        ("s1", [store["old"]]),
        ("s1", [store["later"]]),
        ("s2", [store["new"]]),
    ]
    assert found[0]["tags"] == ["home"]
    assert [
        each["session_id"] for each in document("memory", "episodes", "--user", "ana", "--session", "s2")["episodes"]
    ] == ["s2"]
    shown = call("memory", "episodes", "--user", "ana").stdout
    for piece in ("2026-03-01 10:00  s1  1 turn  (home)", "I live in Lisbon.", store["old"]):
        assert piece in shown
    assert document("memory", "episodes", "--user", "ana", "--session", "none")["episodes"] == []
    assert failure("memory", "episodes", code=2)["path"] == "$.user"


def test_episodes_over_the_library(store: dict[str, str]) -> None:
    with muniment.open("muniment.db") as mem:
        assert len(list(mem.ledger.episodes(user_id="ana"))) == 3
        assert list(mem.ledger.episodes(user_id="zoe")) == []
        assert list(mem.ledger.episodes(user_id="ana", tenant_id="other")) == []
        mem.forget(event=store["new"])
        assert [each.session_id for each in mem.ledger.episodes(user_id="ana")] == ["s1", "s1"]
        with pytest.raises(muniment.MunimentError):
            mem.ledger.episodes(user_id="ana", session_id=3)  # type: ignore[arg-type]


# -- nothing there ------------------------------------------------------------------------------------


@pytest.mark.parametrize("args", READERS, ids=lambda args: args[0])
def test_no_store_is_an_error_and_makes_none(folder: Path, args: tuple[str, ...]) -> None:
    assert failure(*args, "--db", "none.db", code=2)["path"] == "$.db"
    assert not (folder / "none.db").exists()


@pytest.mark.parametrize("state", ["empty store", "unknown user", "unknown tenant"])
def test_nothing_known_is_an_honest_answer(folder: Path, state: str) -> None:
    with muniment.open("muniment.db") as mem:
        if state != "empty store":
            mem.run(user_id="bob", session_id="s1").observe("user", "I live in Berlin.")
    scope = ("--user", "ana", *(("--tenant", "other") if state == "unknown tenant" else ()))
    assert document("search", QUERY, *scope) == {"hits": []}
    assert "nothing found in the memory of ana" in call("search", QUERY, *scope).stdout
    assert document("facts", *scope) == {"facts": []}
    assert "no facts about ana" in call("facts", *scope).stdout
    assert document("memory", "episodes", *scope) == {"episodes": []}
    assert "no episodes" in call("memory", "episodes", *scope).stdout
    made = document("compose", "responder", "--query", QUERY, *scope)
    assert "Berlin" not in made["text"]
    assert validate("MemoryPacket", made["packet"]) == []
    assert "nothing to tell" in call("compose", "responder", *scope).stderr
    assert "nothing was left out" in call("explain", made["build_id"], *scope[2:]).stdout


# -- what a terminal gets -----------------------------------------------------------------------------


def test_text_for_a_terminal() -> None:
    assert one_line("a\n\tb \x1b[31mred") == "a b [31mred"
    assert one_line("x" * 300, 10) == "x" * 9 + "…"
    assert one_line("\n" * 9000 + "late", 10).endswith("…")
    assert one_line("0123456789", 10) == "0123456789"
    assert when(None) == "undated"
    assert when("2026-05-01T00:00:00.000000Z") == "2026-05-01"
    assert when("2026-05-01T10:30:00.000000Z") == "2026-05-01 10:30"


def test_escape_sequences_in_memory_do_not_reach_the_terminal(folder: Path) -> None:
    with muniment.open("muniment.db") as mem:
        run = mem.run(user_id="ana", session_id="s1")
        said = run.observe("user", "Berlin \x1b[2J is home", speaker="Ana")
        run.remember("user.city", "Berlin\x1b[2J", sources=[said.id])
    build_id = composed("responder", "--query", "Berlin home")
    for args in (
        ("search", "Berlin home", "--user", "ana"),
        ("facts", "--user", "ana"),
        ("memory", "episodes", "--user", "ana"),
        ("explain", build_id),
        ("why", "is home"),
    ):
        result = CliRunner().invoke(cli, list(args), color=True)
        assert "Berlin" in result.stdout
        assert "\x1b[2J" not in result.stdout
