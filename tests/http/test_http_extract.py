"""A server whose store has a model reads what is pending when an administrator asks it to; nobody names another."""

from __future__ import annotations

import json

import pytest
from http_support import ANA, TENANT, Serve

import muniment
from muniment.errors import InvalidInput
from planted_model import HOLDS


def chat(_messages: list[dict[str, str]]) -> str:
    fact = {"turn": "t1", "speaker": "user", "key": "user.home", "value": "Rome", "quote": "My home is Rome", **HOLDS}
    return json.dumps({"facts": [fact]})


def test_a_server_reads_what_is_pending_with_the_model_of_its_store(serve: Serve) -> None:
    with muniment.open(extract=chat, policy={"memory": {"extraction": {"in_background": False}}}) as memory:
        memory.run(user_id="ana").observe("user", "My home is Rome")
        client = serve(memory)
        told = client.post(f"{TENANT}/extract", json={"budget": {"calls": 0}})
        assert told.status_code == 200, told.text
        assert (told.json()["left"], told.json()["stopped"]) == (1, "calls")
        report = client.post(f"{TENANT}/extract", json={"budget": 3}).json()
        assert (report["extractor"], report["turns"], report["accepted"], report["left"]) == ("model:chat", 1, 1, 0)
        assert client.post(f"{ANA}/extract", json={}).json()["turns"] == 0
        for wrong in ({"model": "openai:http://127.0.0.1:9/v1#x"}, {"budget": {"gold": 1}}, {"budget": "much"}):
            assert client.post(f"{TENANT}/extract", json=wrong).status_code in (400, 422)


def test_over_a_connection_no_model_is_given(serve: Serve) -> None:
    with muniment.open() as memory:
        memory.run(user_id="ana").observe("user", "I live in Rome.")
        client = serve(memory)
        with muniment.connect("http://testserver", http=client) as mem:
            assert mem.extract_pending().by_patterns == 1
            with pytest.raises(InvalidInput, match="over a connection"):
                mem.extract_pending(model=chat)
