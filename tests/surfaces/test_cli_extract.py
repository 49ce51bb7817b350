"""`muniment extract`: a model behind a server reads what is pending; budgets, settings, reports, errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_room import Commands, in_folder

import muniment
from model_server import Chat, serving
from planted_model import HOLDS

EXTRACT = Commands("extract")


def fact(turn: str, key: str, value: Any, quote: str) -> dict[str, Any]:
    return {"turn": turn, "speaker": "user", "key": key, "value": value, "quote": quote, **HOLDS}


def says(*facts: dict[str, Any], usage: bool = True) -> Any:
    counted = {"usage": {"prompt_tokens": 500, "completion_tokens": 40}} if usage else {}
    return Chat().says(json.dumps({"facts": list(facts)})) | counted


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with muniment.open(tmp_path / "muniment.db") as mem:
        for user in ("ana", "bob"):
            run = mem.run(user_id=user, session_id="s1")
            run.observe("user", f"My home is Rome, {user} said.")
            run.observe("user", "Is Oslo nice?")
    return in_folder(tmp_path, monkeypatch)


@pytest.mark.req("MP-17")
def test_a_model_reads_within_a_budget_and_goes_on(folder: Path) -> None:
    home = fact("t1", "user.home", "Rome", "My home is Rome")
    with serving() as server:
        model = f"{server.url}/v1#qwen"
        server.answers += [says(home, fact("t2", "user.likes", "Oslo", "Oslo nice")), 503, says(home)]
        shown = EXTRACT.text("--model", model, "--budget", "calls=1,usd=1", "--budget", "price_in=2,price_out=10")
        assert "2 turns read by model:qwen" in shown
        assert "1 call, 500 tokens in, 40 out, 0.001400 USD" in shown
        assert "proposed 2: 1 facts, 0 wait for a decision" in shown
        assert "rejected 1: the quote is part of a question" in shown
        assert "stopped at the limit of calls; 2 turns still to be read" in shown
        told = EXTRACT.document("--model", f"openai:{model}", "--user", "bob")
        assert (told["turns"], told["calls"], told["accepted"], told["left"]) == (2, 2, 1, 0)
        assert server.asked[0]["response_format"]["json_schema"]["strict"] is True
        assert server.asked[0]["model"] == "qwen"
    assert "nothing is left to be read" in EXTRACT.text("--model", model)
    assert "user.home: Rome" in Commands("memory").text("candidates", "--user", "ana", "--status", "promoted")


def test_the_setting_names_the_model_and_without_one_the_rules_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert EXTRACT.document()["extractor"] == "rules"
    with serving() as server:
        monkeypatch.setenv("MUNIMENT_EXTRACT_MODEL", f"openai:{server.url}/v1#small")
        server.answers += [says(usage=False), says(usage=False)]
        told = EXTRACT.document()
    assert (told["extractor"], told["calls"], told["is_estimated"]) == ("model:small", 2, True)
    monkeypatch.setenv("MUNIMENT_EXTRACT_MODEL", "gpt")
    assert EXTRACT.failure(code=2)["path"] == "$.model"


@pytest.mark.parametrize("budget", ["much", "calls=", "calls=x", "gold=3", "calls=-1", "usd=1", "calls=1.5"])
def test_a_budget_that_is_none(folder: Path, budget: str) -> None:
    result = EXTRACT.call("--budget", budget, "--json")
    assert (result.exit_code in (1, 2), result.stdout) == (True, "")
    assert json.loads(result.stderr)["path"].startswith("$.budget")


def test_a_server_that_refuses_says_what_was_done_before(folder: Path) -> None:
    with serving() as server:
        server.answers += [says(), 401]
        result = EXTRACT.call("--model", f"{server.url}/v1#qwen", "--json")
    assert (result.exit_code, result.stdout) == (1, "")
    error = json.loads(result.stderr)
    assert error["code"] == "model_refused"
    assert (error["details"]["extracted"]["turns"], error["details"]["extracted"]["left"]) == (2, 2)
