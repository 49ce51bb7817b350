"""`muniment eval` as somebody types it: on a store, on files, with a model, in CI; the page, and a first file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from cli_room import Commands, in_folder

import muniment
from model_server import Chat, Server, serving
from products import for_each

EVAL = Commands("eval")
TALK: list[dict[str, Any]] = [
    {"content": "I live in Hamburg, near the harbour.", "ts": "2026-01-05T10:00:00Z", "session_id": "s1"},
    {"content": "My dog is called Rex.", "ts": "2026-02-01T10:00:00Z", "session_id": "s2"},
    {
        "content": "We moved to Berlin in May, so I live in Berlin now.",
        "ts": "2026-05-10T10:00:00Z",
        "session_id": "s3",
    },
    {"content": "I live in Paris.", "ts": "2026-05-11T10:00:00Z", "session_id": "s1", "user_id": "bo"},
]
HOME = {"id": "home", "question": "Where do I live?", "answers": ["Berlin"], "evidence": ["We moved to Berlin in May"]}
DOG = {"id": "dog", "question": "What is my dog called?", "answers": ["Rex"]}
CAT = {"id": "cat", "question": "What is my cat called?", "answers": ["Tom"]}


def write_lines(name: str, *documents: Any) -> str:
    Path(name).write_text("".join(json.dumps(each) + "\n" for each in documents))
    return name


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = in_folder(tmp_path, monkeypatch)
    write_lines("talk.jsonl", *({"role": "user", "user_id": "ana", **turn} for turn in TALK))
    write_lines("q.jsonl", {**HOME, "user_id": "ana"}, {**DOG, "user_id": "ana"})
    return made


@pytest.fixture
def store(folder: Path) -> Path:
    Commands("ingest").text("talk.jsonl", "--db", "m.db")
    return folder / "m.db"


def test_a_table_and_what_was_missed() -> None:
    write_lines("q.jsonl", HOME, DOG, CAT)
    shown = EVAL.text("q.jsonl", "--data", "talk.jsonl", "--user", "ana", "--budget", "512")
    first, _, heads, *rows = shown.splitlines()
    assert first == "q.jsonl: 3 questions"
    assert heads.split() == ["arm", "passed", "recall", "told", "offered", "tokens", "ms"]
    assert [row.split("  ")[0] for row in rows[:4]] == ["packet 512", "search@10", "bm25 512", "bm25@10"]
    assert rows[0].split()[2:5] == ["2/3", "1.000", "0.667"]
    assert "missed with packet 512: 1" in shown
    assert "  cat  ana: What is my cat called?\n      no answer stands in it: “Tom”" in shown


def test_a_store_is_only_read(store: Path) -> None:
    before = store.read_bytes()
    document = EVAL.document("q.jsonl", "--db", "m.db")
    assert store.read_bytes() == before
    assert Commands("packet").document("list", "--db", "m.db")["builds"] == []
    assert document["ok"] is True
    assert document["arms"][0]["passed"] == 2
    EVAL.failure("q.jsonl", "--db", "gone.db", code=2)
    assert not Path("gone.db").exists()


def test_the_same_files_give_the_same_bytes_but_for_times() -> None:
    for name in ("a.json", "b.json"):
        EVAL.text("q.jsonl", "--data", "talk.jsonl", "--save", name)
    a, b = (json.loads(Path(name).read_bytes()) for name in ("a.json", "b.json"))
    assert a.pop("times").keys() == b.pop("times").keys()
    assert a == b


def test_a_list_in_one_document_is_read_as_well() -> None:
    Path("q.json").write_text(json.dumps([{**HOME, "user_id": "ana"}, {**DOG, "user_id": "ana"}], indent=1))
    assert EVAL.document("q.json", "--data", "talk.jsonl")["arms"][0]["judged"] == 2
    piped = EVAL.document("-", "--data", "talk.jsonl", stdin=json.dumps({**DOG, "user_id": "ana"}))
    assert piped["name"] == "stdin"


# -- what is wrong ------------------------------------------------------------------------------------


@for_each(
    ("line", "message", "path"),
    [
        ('{"question": "Where?"', "q.jsonl:2: ", None),
        ('"Where?"', "q.jsonl:2: a question is an object", "$"),
        ('{"question": "Where?", "answers": "Berlin"}', "q.jsonl:2: not a question", "$.answers"),
        ('{"question": "Where?", "anwsers": ["Berlin"]}', "q.jsonl:2: not a question", "$.anwsers"),
        ('{"question": "Where?"}', "q.jsonl:2: nothing is expected", "$"),
        ('{"id": "dog", "question": "Where?", "answers": ["x"]}', "stands at q.jsonl:1 already", "$.id"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(line: str, message: str, path: str | None) -> None:
    Path("q.jsonl").write_text(f"{json.dumps(DOG)}\n{line}\n")
    refused = EVAL.failure("q.jsonl", "--data", "talk.jsonl", "--user", "ana", code=2)
    assert message in refused["message"]
    if path is not None:
        assert refused["path"] == path
        assert refused["hint"]


@pytest.mark.parametrize(
    ("typed", "path"),
    [
        (["--min", "recall"], "$.min"),
        (["--min", "recall=2"], "$.min"),
        (["--min", "recall=x"], "$.min"),
        (["--min", "speed=.5"], "$.min"),
        (["--budget", "3"], "$.max_tokens"),
        (["--k", "0"], "$.k"),
        (["--policy", "gone.toml"], "$.policy"),
        (["--policy", "a/p.toml", "--policy", "b/p.toml"], "$.policy"),
        (["--cite"], "$.cite"),
        (["--model", "nowhere"], None),
        (["--baseline", "gone.json"], None),
        (["--db", "m.db"], "$.data"),
        (["--html", "no/such/folder.html"], "$.html"),
        (["--save", "no/such/folder.json"], "$.save"),
        (["--junit", "no/such/folder.xml"], "$.junit"),
    ],
)
def test_what_was_typed_wrongly_is_named(typed: list[str], path: str | None) -> None:
    for name in ("a", "b"):
        Path(name).mkdir()
        Path(name, "p.toml").write_text("[compose]\nmax_tokens = 512\n")
    refused = EVAL.failure("q.jsonl", "--data", "talk.jsonl", *typed, code=2)
    assert refused["code"] == "invalid_input"
    if path is not None:
        assert refused["path"] == path


def test_a_measure_without_a_share_is_told_to_lack_one() -> None:
    assert "no share" in EVAL.failure("q.jsonl", "--data", "talk.jsonl", "--min", "recall", code=2)["message"]


@pytest.mark.parametrize("name", ["talk.jsonl", "gone.db"])
def test_a_store_that_cannot_be_read_is_no_result(name: str) -> None:
    EVAL.failure("q.jsonl", "--db", name, code=2)
    assert not Path("gone.db").exists()


@pytest.mark.parametrize("option", ["--save", "--junit", "--html"])
@pytest.mark.parametrize("name", ["q.jsonl", "./talk.jsonl", "link.jsonl", "muniment.db"])
def test_no_report_is_written_over_what_is_read(option: str, name: str) -> None:
    Path("link.jsonl").symlink_to("q.jsonl")
    Commands("ingest").text("talk.jsonl", "--db", "muniment.db")
    before = Path(name).read_bytes()
    refused = EVAL.failure("q.jsonl", "--data", "talk.jsonl", option, name, code=2)
    assert refused["path"] == f"$.{option[2:]}"
    assert Path(name).read_bytes() == before


def test_two_reports_are_two_files_and_a_run_may_take_the_place_of_the_one_before() -> None:
    typed = ("q.jsonl", "--data", "talk.jsonl")
    assert EVAL.failure(*typed, "--save", "one", "--html", "./one", code=2)["path"] == "$.html"
    EVAL.text(*typed, "--save", "last.json")
    assert EVAL.failure(*typed, "--baseline", "last.json", "--junit", "last.json", code=2)["path"] == "$.junit"
    EVAL.text(*typed, "--baseline", "last.json", "--save", "last.json")


def test_a_question_that_names_what_memory_does_not_hold_fails_the_run() -> None:
    write_lines("q.jsonl", {**DOG, "user_id": "ana"}, {**HOME, "user_id": "bo"})
    result = EVAL.call("q.jsonl", "--data", "talk.jsonl", "--junit", "j.xml")
    assert result.exit_code == 1
    assert "cannot be asked: 1" in result.stdout
    (error,) = ElementTree.parse("j.xml").iter("error")
    assert "neither an event of 'bo'" in error.attrib["message"]


# -- CI -----------------------------------------------------------------------------------------------


def test_shares_decide_the_exit_code() -> None:
    write_lines("q.jsonl", HOME, CAT)
    typed = ("q.jsonl", "--data", "talk.jsonl", "--user", "ana")
    assert EVAL.call(*typed).exit_code == 0
    assert EVAL.call(*typed, "--min", "told=.5", "--min", "bm25 512:told=.4").exit_code == 0
    for never in ("newest=0", "packet 9:told=0"):
        assert EVAL.call(*typed, "--min", never).exit_code == 1, never
    result = EVAL.call(*typed, "--min", "told=.6", "--min", "recall=1", "--junit", "j.xml")
    assert result.exit_code == 1
    assert "not good enough: told of packet 512 is 0.500, below 0.6" in result.stdout
    suite = ElementTree.parse("j.xml").getroot()
    assert (suite.attrib["failures"], suite.attrib["skipped"], suite.attrib["tests"]) == ("1", "1", "4")


def test_a_run_before_says_which_questions_flipped() -> None:
    typed = ("q.jsonl", "--data", "talk.jsonl")
    EVAL.text(*typed, "--save", "last.json")
    assert "nothing is otherwise" in EVAL.text(*typed, "--baseline", "last.json")
    write_lines(
        "talk.jsonl", *({"role": "user", "user_id": "ana", **turn} for turn in TALK if "Rex" not in turn["content"])
    )
    result = EVAL.call(*typed, "--baseline", "last.json", "--html", "page.html")
    assert result.exit_code == 1
    assert "passed, and does not: dog with packet 512" in result.stdout
    assert "not good enough: told of packet 512 fell from 1.000 to 0.500" in result.stdout
    assert "passed, and does not" in Path("page.html").read_text()
    document = json.loads(EVAL.call(*typed, "--baseline", "last.json", "--json").stdout)
    assert document["ok"] is False
    assert {flip["question_id"] for flip in document["since"]["flips"]} == {"dog"}
    EVAL.text(*typed, "--save", "last.json")
    write_lines("talk.jsonl", *({"role": "user", "user_id": "ana", **turn} for turn in TALK))
    better = EVAL.call(*typed, "--baseline", "last.json")
    assert better.exit_code == 0
    assert "passes, and did not: dog" in better.stdout


def test_what_json_prints_serves_as_the_run_before() -> None:
    typed = ("q.jsonl", "--data", "talk.jsonl")
    Path("last.json").write_text(EVAL.text(*typed, "--json"))
    assert EVAL.document(*typed, "--baseline", "last.json")["since"]["same"] == 2


def test_policies_are_compared_by_the_names_of_their_files() -> None:
    Path("small.toml").write_text("[policy.compose]\nfound_min = 0.9\n")
    found = EVAL.document(
        "q.jsonl", "--data", "talk.jsonl", "--policy", "small.toml", "--budget", "512", "--no-reference"
    )
    assert [arm["name"] for arm in found["arms"]] == ["packet 512", "packet 512 small", "search@10"]


# -- a model ------------------------------------------------------------------------------------------


@pytest.fixture
def model() -> Iterator[Server]:
    with serving() as server:
        yield server


def test_a_model_answers_each_arm(model: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
    write_lines("q.jsonl", {**DOG, "user_id": "ana"})
    model.answers += [Chat().says(said) for said in ("Rex", "I don't know.", "Your dog is Fido.", "Rex [1].")]
    typed = ("q.jsonl", "--data", "talk.jsonl", "--budget", "512", "--model", f"{model.url}/v1#small", "--cite")
    document = EVAL.document(*typed, "--html", "page.html")
    assert document["model"] == "small"
    given = document["questions"][0]["given"]
    measured = [given[arm]["measures"] for arm in ("packet 512", "search@10", "bm25 512", "bm25@10")]
    assert [each["contains"] for each in measured] == [1, 0, 0, 1]
    assert [each["answered"] for each in measured] == [1, 0, 1, 1]
    assert model.asked[0]["model"] == "small"
    assert model.asked[0]["temperature"] == 0
    assert "Your dog is Fido." in Path("page.html").read_text()
    assert "secret-key" not in json.dumps(document) + Path("page.html").read_text()


def test_a_model_that_is_not_there_ends_the_run(model: Server) -> None:
    model.answers += [404, 404]
    refused = EVAL.failure("q.jsonl", "--data", "talk.jsonl", "--model", f"{model.url}/v1#small")
    assert refused["code"] == "model_refused"
    model.answers += [{"choices": []}, {"choices": []}]
    refused = EVAL.failure("q.jsonl", "--data", "talk.jsonl", "--model", f"{model.url}/v1#small")
    assert refused["code"] == "model_malformed"


# -- the page -----------------------------------------------------------------------------------------

HOSTILE = '</pre></details><script>alert("1")</script><img src=x onerror=alert(2)> & \u202egnp.exe \x00\x1b[31m'


def test_nothing_on_the_page_is_anything_but_text() -> None:
    write_lines(
        "talk.jsonl", {"role": "user", "user_id": "ana", "content": f"My motto is {HOSTILE.replace(chr(0), '')}"}
    )
    write_lines(
        "q.jsonl",
        {"id": "<b>a</b>", "question": f"What is my motto? {HOSTILE}", "answers": [HOSTILE], "not_told": ["motto"],
         "note": HOSTILE, "evidence": ["My motto is"]},
        {"id": "'\"><i>", "question": "x", "evidence": [f"<i>{HOSTILE}"]},
    )  # fmt: skip
    result = EVAL.call("q.jsonl", "--data", "talk.jsonl", "--user", "ana", "--html", "p<a>ge.html", "--junit", "j.xml")
    assert result.exit_code == 1
    page = Path("p<a>ge.html").read_text("utf-8")
    tags = {found.lower() for found in re.findall(r"<\s*/?\s*([a-zA-Z!][\w!]*)", page)}
    assert tags <= {
        "!doctype", "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "div", "table", "tr", "th", "td",
        "details", "summary", "ul", "li", "b", "span", "pre", "label", "input",
    }  # fmt: skip
    assert not re.search(r"\bon\w+\s*=", re.sub(r">[^<]*<", "><", page))
    assert not re.search("[\x00-\x08\x0e-\x1f\u202a-\u202e]", page)
    assert "default-src 'none'" in page
    assert '<script>alert("1")</script>' in unescape(page)
    assert not re.search(r"(?:src|href)\s*=\s*[\"']?https?:", page)
    assert "\x1b[31m" not in result.stdout
    ElementTree.parse("j.xml")


def test_the_page_says_what_was_expected_what_was_given_and_why_not() -> None:
    write_lines("q.jsonl", HOME, CAT, {**DOG, "answerable": False, "answers": []})
    EVAL.call("q.jsonl", "--data", "talk.jsonl", "--user", "ana", "--html", "page.html")
    page = unescape(re.sub(r"<[^>]+>", "", Path("page.html").read_text()))
    for said in (
        "What is my cat called?",
        "an answer: Tom",
        "no answer stands in it: “Tom”",
        "expected: memory holds no answer",
        "We moved to Berlin in May, so I live in Berlin now.",
        "bm25@10",
    ):
        assert said in page, said


# -- a first file -------------------------------------------------------------------------------------


def test_a_first_file_comes_from_facts_and_can_be_asked(store: Path) -> None:
    refused = EVAL.failure("init", "first.jsonl", "--db", "m.db", code=2)
    assert "there are no facts" in refused["message"]
    with muniment.open(store) as mem:
        by_text = {entry.content: entry.id for entry in mem.ledger.entries(user_id="ana")}
        run = mem.run(user_id="ana", session_id="s9")
        run.remember("user.city", "Hamburg", sources=[by_text[TALK[0]["content"]]], valid_from="2026-01-05T00:00:00Z")
        run.remember("user.city", "Berlin", sources=[by_text[TALK[2]["content"]]], valid_from="2026-05-10T00:00:00Z")
        (entry,) = [entry for entry in mem.ledger.entries(user_id="bo") if entry.content]
        mem.run(user_id="bo", session_id="s9").propose("user.home_town", "Paris", sources=[entry.id])
    shown = EVAL.text("init", "first.jsonl", "--db", "m.db")
    assert shown.startswith("first.jsonl: 4 questions about 2 users\nA start:")
    made = [json.loads(line) for line in Path("first.jsonl").read_text().splitlines()]
    assert (made[0]["question"], made[0]["answers"]) == ("What is my city?", ["Berlin"])
    assert made[0]["stale"] == [by_text[TALK[0]["content"]]]
    assert EVAL.failure("init", "first.jsonl", "--db", "m.db")["code"] == "conflict"
    assert EVAL.document("init", "bo.jsonl", "--db", "m.db", "--user", "bo")["questions"] == 2
    document = EVAL.document("first.jsonl", "--db", "m.db")
    assert document["arms"][0]["measures"]["recall"] == {"mean": 1.0, "questions": 2}
