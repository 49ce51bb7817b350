"""`from_config`: what of mem0's configuration maps, what is passed over with a word, and what is refused."""

from __future__ import annotations

import asyncio
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from mem0_room import HAS_MEM0, needs_mem0, texts

import muniment
from model_server import serving
from muniment.errors import Closed, MissingDependency
from muniment.integrations.mem0 import AsyncMemory, Memory
from muniment.integrations.mem0.config import ConfigWarning, read_config
from muniment.integrations.mem0.exceptions import ConfigurationError, LLMError, UnsupportedError
from planted_model import HOLDS


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "TOGETHER_API_KEY", "GROQ_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MEM0_DIR", str(tmp_path / "home"))


@pytest.mark.parametrize(
    ("config", "place"),
    [
        ({}, "home/muniment.db"),
        ({"history_db_path": "{}/h/history.db"}, "h/muniment.db"),
        ({"history_db_path": "{}/muniment.db"}, "muniment.db"),
        ({"vector_store": {"provider": "qdrant", "config": {"path": "{}/q", "on_disk": True}}}, "q/muniment.db"),
        ({"vector_store": {"provider": "chroma", "config": {"path": "{}/c"}}}, "c/muniment.db"),
        (
            {"vector_store": {"provider": "faiss", "config": {"path": "{}/f", "embedding_model_dims": 8}}},
            "f/muniment.db",
        ),
        ({"vector_store": {"config": {"path": "{}/q"}}, "history_db_path": "{}/h/h.db"}, "q/muniment.db"),
    ],
)
def test_where_the_file_lies(config: dict[str, Any], place: str, tmp_path: Path) -> None:
    filled = eval(repr(config).replace("{}/", f"{tmp_path}/"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        memory = Memory.from_config(filled)
    with memory:
        memory.add("I like tea", user_id="ana")
    assert (tmp_path / place).is_file()
    with Memory.from_config(filled) as again:
        assert texts(again.get_all(filters={"user_id": "ana"})) == ["I like tea"]


def test_files_of_mem0_are_left_as_they_are(tmp_path: Path) -> None:
    history = tmp_path / "history.db"
    history.write_bytes(b"mem0's own")
    with Memory.from_config({"history_db_path": str(history)}) as memory:
        memory.add("I like tea", user_id="ana")
    assert history.read_bytes() == b"mem0's own"


def test_nothing_but_memory() -> None:
    config = {"vector_store": {"provider": "qdrant", "config": {"path": ":memory:"}}}
    with Memory.from_config(config) as memory:
        memory.add("I like tea", user_id="ana")
    with Memory.from_config(config) as memory:
        assert texts(memory.get_all(filters={"user_id": "ana"})) == []


def test_collections_are_walls(tmp_path: Path) -> None:
    def opened(name: str) -> Memory:
        settings = {"path": str(tmp_path), "collection_name": name}
        return Memory.from_config({"vector_store": {"provider": "qdrant", "config": settings}})

    with opened("mem0") as one, opened("other") as two:
        one.add("I like tea", user_id="ana")
        assert texts(two.get_all(filters={"user_id": "ana"})) == []
        two.add("I like milk", user_id="ana")
        two.reset()
        assert texts(two.get_all(filters={"user_id": "ana"})) == []
        assert texts(one.get_all(filters={"user_id": "ana"})) == ["I like tea"]


def test_postgresql_is_reached_where_mem0_had_its_vectors() -> None:
    settings = {"host": "db", "port": 6543, "user": "a b", "password": "p@ss", "dbname": "m", "collection_name": "x"}
    place = read_config({"vector_store": {"provider": "pgvector", "config": settings}}).place
    assert (place.target, place.tenant_id) == ("postgresql://a%20b:p%40ss@db:6543/m", "x")
    told = {"connection_string": "postgresql://u@h/d"}
    assert read_config({"vector_store": {"provider": "pgvector", "config": told}}).place.target == "postgresql://u@h/d"
    with pytest.raises(ConfigurationError, match="connection_string"):
        read_config({"vector_store": {"provider": "pgvector", "config": {"host": "db"}}})


def test_a_server_of_ours() -> None:
    settings = {"url": "https://memory.example.org", "api_key": "k"}
    place = read_config({"vector_store": {"provider": "muniment", "config": settings}}).place
    assert (place.target, place.key) == ("https://memory.example.org", "k")


@pytest.mark.parametrize(
    ("llm", "url", "name"),
    [
        ({"provider": "openai", "config": {"api_key": "k"}}, "https://api.openai.com/v1", "gpt-5-mini"),
        ({"provider": "openai", "config": {"openai_base_url": "http://m/v1/", "model": "a"}}, "http://m/v1", "a"),
        ({"provider": "ollama", "config": {"model": "q"}}, "http://localhost:11434/v1", "q"),
        ({"provider": "vllm", "config": {"vllm_base_url": "http://v/v1", "model": "q"}}, "http://v/v1", "q"),
        ({"provider": "lmstudio", "config": {"model": "q"}}, "http://localhost:1234/v1", "q"),
        ({"config": {"api_key": "k", "model": "m", "max_tokens": 50}}, "https://api.openai.com/v1", "m"),
    ],
)  # fmt: skip
def test_models_that_speak_openai_s_api_propose_facts(llm: dict[str, Any], url: str, name: str) -> None:
    read = read_config({"llm": llm})
    assert (read.model._chat._server.url, read.model.name, read.passed) == (f"{url}/chat/completions", name, ())


def test_a_model_s_proposals_become_facts() -> None:
    """What mem0's model says is kept; ours says it with a quote, and is asked at the address of the configuration."""
    boat = {"turn": "t1", "speaker": "user", "key": "user.boat", "value": "Argo", "quote": "my Argo", **HOLDS}
    said = {"facts": [boat]}
    with serving() as server:
        server.answers = [{"choices": [{"message": {"content": json.dumps(said)}, "finish_reason": "stop"}]}] * 3
        config = {
            "vector_store": {"provider": "qdrant", "config": {"path": ":memory:"}},
            "llm": {
                "provider": "openai",
                "config": {"openai_base_url": f"{server.url}/v1", "model": "m", "api_key": "k"},
            },
        }
        with Memory.from_config(config) as memory:
            added = memory.add("We crossed the bay in my Argo.", user_id="ana")
            assert [(fact["key"], fact["value"]) for fact in added["facts"]] == [("user.boat", "Argo")]
            found = memory.search("What do you know about me?", filters={"user_id": "ana"})
            assert texts(found)[0] == "user.boat: Argo"
            assert memory.get(added["facts"][0]["id"])["memory"] == "user.boat: Argo"
    assert server.received[0].path == "/v1/chat/completions"


def test_a_model_that_fails_is_mem0_s_error_and_loses_nothing() -> None:
    with serving() as server, muniment.open(":memory:") as mem:
        server.answers = [400] * 9
        memory = Memory(mem, model=f"{server.url}/v1#m")
        with pytest.raises(LLMError, match="LLM extraction failed") as failed:
            memory.add("I like tea.", user_id="ana")
        assert failed.value.details["results"][0]["memory"] == "I like tea."
        assert texts(memory.get_all(filters={"user_id": "ana"})) == ["I like tea."]


@pytest.mark.parametrize(
    "embedder",
    [
        {"provider": "openai", "config": {"api_key": "k", "model": "m", "embedding_dims": 8}},
        {"provider": "ollama", "config": {"ollama_base_url": "http://o:1"}},
        {"provider": "lmstudio", "config": {"model": "m"}},
    ],
)
def test_embedders_over_http_are_those_of_the_configuration(embedder: dict[str, Any]) -> None:
    read = read_config({"embedder": embedder})
    assert type(read.embedder).__name__ == "OpenAiEmbedder"
    assert read.passed == ()


def test_embedders_of_ours_have_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for provider, model in (("huggingface", "intfloat/e5-small"), ("fastembed", "intfloat/multilingual-e5-small")):
        with pytest.raises(MissingDependency, match=model.partition("/")[2]):
            read_config({"embedder": {"provider": provider, "config": {"model": model}}})


PASSED = [
    ({"graph_store": {"provider": "neo4j"}}, "graph_store"),
    ({"reranker": {"provider": "cohere"}}, "reranker"),
    ({"version": "v1.0"}, "version"),
    ({"colour": "green"}, "colour (unknown)"),
    ({"llm": {"provider": "anthropic", "config": {"api_key": "k"}}}, "llm.provider anthropic"),
    ({"llm": {"provider": "openai", "config": {"api_key": "k", "temperature": 0.2}}}, "llm.config.temperature"),
    ({"embedder": {"provider": "huggingface", "config": {"model": "BAAI/bge"}}}, "embedder.provider huggingface"),
    (
        {"embedder": {"provider": "openai", "config": {"api_key": "k", "http_client_proxies": {}}}},
        "http_client_proxies",
    ),
    ({"vector_store": {"provider": "qdrant", "config": {"path": ":memory:", "quantized": 1}}}, "config.quantized"),
]


@pytest.mark.parametrize(("config", "word"), PASSED)
def test_what_is_passed_over_is_said(config: dict[str, Any], word: str) -> None:
    read = read_config(config)
    assert len(read.passed) == 1
    assert word in read.passed[0]


def test_one_warning_names_all_of_it() -> None:
    config = {"vector_store": {"provider": "qdrant", "config": {"path": ":memory:"}}}
    config |= {"reranker": {"provider": "cohere"}, "graph_store": {"provider": "kuzu"}, "version": "v1.0"}
    with pytest.warns(ConfigWarning) as told:
        Memory.from_config(config).close()
    assert len(told) == 1
    assert all(name in str(told[0].message) for name in ("reranker", "graph_store", "version"))
    assert told[0].filename == __file__


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"custom_instructions": "never keep health data"}, "$.custom_instructions"),
        ({"custom_fact_extraction_prompt": "x"}, "$.custom_fact_extraction_prompt"),
        ({"custom_update_memory_prompt": "x"}, "$.custom_update_memory_prompt"),
        ({"vector_store": {"provider": "pinecone", "config": {}}}, "$.vector_store"),
        ({"vector_store": {"provider": "qdrant", "config": {"host": "q", "port": 6333}}}, "$.vector_store.config.host"),
        ({"vector_store": {"provider": "qdrant", "config": {"url": "https://q"}}}, "$.vector_store.config.url"),
    ],
)  # fmt: skip
def test_what_would_mean_something_else_is_refused(config: dict[str, Any], path: str) -> None:
    with pytest.raises(UnsupportedError) as refused:
        Memory.from_config(config)
    assert refused.value.path == path
    assert refused.value.suggestion


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"vector_store": {"provider": "shoebox"}}, "Unsupported vector store provider: shoebox"),
        ({"llm": {"provider": "oracle"}}, "Unsupported LLM provider: oracle"),
        ({"embedder": {"provider": "abacus"}}, "Unsupported embedding provider: abacus"),
        ({"llm": {"provider": "openai"}}, "takes a key"),
        ({"embedder": {"provider": "openai", "config": {}}}, "takes a key"),
        ({"llm": {"provider": "vllm"}}, "name of a model"),
        ({"llm": 3}, "should be a dict"),
        ({"llm": {"provider": "openai", "config": 3}}, "should be a dict"),
        ("agent.db", "a dict or an open store"),
    ],
)
def test_what_is_no_configuration_is_a_value_error(config: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as refused:
        Memory.from_config(config)
    assert isinstance(refused.value, ValueError)


@needs_mem0
def test_mem0_s_own_config_object_is_taken(tmp_path: Path) -> None:
    assert HAS_MEM0
    from mem0.configs.base import MemoryConfig

    with Memory(MemoryConfig(history_db_path=str(tmp_path / "x" / "history.db"))) as memory:
        memory.add("I like tea", user_id="ana")
    assert (tmp_path / "x" / "muniment.db").is_file()


# -- reset, close -------------------------------------------------------------------------------------


def test_a_store_that_was_handed_in_stays_open() -> None:
    with muniment.open(":memory:") as mem:
        with Memory(mem) as memory:
            memory.add("I like tea", user_id="ana")
        with pytest.raises(Closed):
            memory.get_all(filters={"user_id": "ana"})
        memory.close()
        assert texts(Memory(mem).get_all(filters={"user_id": "ana"})) == ["I like tea"]


def test_reset_erases_everybody_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    with muniment.open(":memory:") as mem:
        memory = Memory(mem)
        memory.reset()  # nothing is there
        for user in ("ana", "ben"):
            memory.add("I live in Berlin.", user_id=user)
        memory.add("its own", agent_id="cook", infer=False)
        assert memory.reset() is None
        assert "Resetting all memories" in caplog.text
        for filters in ({"user_id": "ana"}, {"user_id": "ben"}, {"agent_id": "cook"}):
            assert texts(memory.get_all(filters=filters)) == []
        assert texts(memory.search("Berlin", filters={"user_id": "ana"})) == []
        memory.add("I like tea", user_id="ana")
        assert texts(memory.get_all(filters={"user_id": "ana"})) == ["I like tea"]
        assert mem.verify().ok


def test_the_same_with_await(tmp_path: Path) -> None:
    async def work() -> None:
        async with AsyncMemory.from_config({"history_db_path": str(tmp_path / "h.db")}) as memory:
            await memory.add("I like tea", user_id="ana")
            assert texts(await memory.search("tea", filters={"user_id": "ana"}))[0] == "I like tea"
            with pytest.raises(UnsupportedError, match="llm"):
                await memory.add("x", user_id="ana", llm=object())
            with pytest.raises(ValueError, match="not supported by the OSS"):
                await memory.project.update(decay=True)
            await memory.reset()
            assert texts(await memory.get_all(filters={"user_id": "ana"})) == []
        with pytest.raises(Closed):
            await memory.get("x")

    asyncio.run(work())
