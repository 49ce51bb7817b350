"""`MemoryClient`: what a store of one's own does of the calls of mem0's hosted platform, and what it refuses."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mem0_room import needs_client, needs_mem0, served, texts

import muniment
from muniment.integrations.mem0 import AsyncMemoryClient, MemoryClient
from muniment.integrations.mem0.exceptions import (
    AuthenticationError,
    ConfigurationError,
    MemoryNotFoundError,
    NetworkError,
    RateLimitError,
    UnsupportedError,
    ValidationError,
    translated,
)
from muniment.integrations.mem0.options import AddMemoryOptions, GetAllMemoryOptions, SearchMemoryOptions
from muniment.integrations.mem0.platform import HostedProject, PlatformOnly

ANA = {"filters": {"user_id": "ana"}}


@pytest.fixture(params=["open", pytest.param("served", marks=needs_client)])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryClient]:
    if request.param == "open":
        with muniment.open(":memory:") as mem:
            yield MemoryClient(client=mem)
    else:
        with served(tmp_path) as http:
            yield MemoryClient(host="http://localhost", client=http)


def test_a_life(client: MemoryClient) -> None:
    said = [{"role": "user", "content": "I live in Berlin."}, {"role": "assistant", "content": "How nice."}]
    added = client.add(said, user_id="ana", metadata={"topic": "home"}, infer=True, async_mode=False)
    assert texts(added) == ["I live in Berlin.", "How nice."]
    memory_id = added["results"][0]["id"]
    found = client.search("where does she live", **ANA)
    assert texts(found)[0] in ("I live in Berlin.", "user.location: Berlin")
    assert client.get(memory_id)["memory"] == "I live in Berlin."
    assert (
        client.update(memory_id, text="I live in Hamburg.", metadata={"topic": "city"})["memory"]
        == "I live in Hamburg."
    )
    assert client.get(memory_id)["metadata"] == {"topic": "city"}
    assert [row["event"] for row in client.history(memory_id)] == ["ADD", "UPDATE"]
    assert client.get_profile("ana")["profile"] == {"user.location": "Hamburg"}
    assert client.delete(memory_id)["message"] == "Memory deleted successfully!"
    with pytest.raises(MemoryNotFoundError, match="not found"):
        client.get(memory_id)
    with pytest.raises(MemoryNotFoundError):
        client.update(memory_id, text="x")
    assert client.delete_all(user_id="ana") == {"message": "Memories deleted successfully!"}
    assert client.get_all(**ANA)["count"] == 0


def test_options_are_taken_as_mem0_has_them(client: MemoryClient) -> None:
    options = AddMemoryOptions(
        filters={"user_id": "ana", "app_id": "shop"}, metadata={"categories": ["food"]}, infer=False
    )
    client.add("I like tea.", options)
    client.add("I like milk.", user_id="ana", timestamp=1767225600, infer=False)
    (found,) = client.search("tea", SearchMemoryOptions(filters={"user_id": "ana"}, top_k=1))["results"]
    assert (found["memory"], found["app_id"], found["categories"]) == ("I like tea.", "shop", ["food"])
    assert texts(client.search("tea milk", **ANA, categories=["food", "x"])) == ["I like tea."]
    assert texts(client.search("tea milk", filters={"AND": [{"user_id": "ana"}, {"app_id": "shop"}]})) == [
        "I like tea."
    ]
    assert texts(client.search("tea milk", **ANA, metadata={"categories": "food"})) == ["I like tea."]
    assert client.search("tea", **ANA, fields=["memory", "score"])["results"][0].keys() == {"memory", "score"}
    early = GetAllMemoryOptions(filters={"user_id": "ana"}, start_date="2025-12-31", end_date="2026-01-02")
    assert texts(client.get_all(early)) == ["I like milk."]


@needs_mem0
def test_mem0_s_own_options_are_taken_too(client: MemoryClient) -> None:
    from mem0.client.types import AddMemoryOptions as Theirs

    client.add("I like tea.", Theirs(filters={"user_id": "ana"}, infer=False))
    assert texts(client.get_all(**ANA)) == ["I like tea."]


def test_pages(client: MemoryClient) -> None:
    client.add([{"role": "user", "content": f"thing {number}"} for number in range(7)], user_id="ana", infer=False)
    first = client.get_all(**ANA, page=1, page_size=3)
    assert (first["count"], len(first["results"]), first["previous"]) == (7, 3, None)
    assert first["next"] == "?page=2&page_size=3"
    last = client.get_all(**ANA, page=3, page_size=3)
    assert (len(last["results"]), last["next"], last["previous"]) == (1, None, "?page=2&page_size=3")
    seen = [text for page in (1, 2, 3) for text in texts(client.get_all(**ANA, page=page, page_size=3))]
    assert sorted(seen) == [f"thing {number}" for number in range(7)]
    assert client.get_all(**ANA, page=9)["results"] == []


def test_filters_of_the_platform(client: MemoryClient) -> None:
    for user, text in (("ana", "tea one"), ("ben", "tea two"), ("cy", "tea three")):
        client.add(text, user_id=user, infer=False)
    client.add("tea four", agent_id="cook", infer=False)
    for filters, expected in [
        ({"OR": [{"user_id": "ana"}, {"user_id": "ben"}]}, {"tea one", "tea two"}),
        ({"OR": [{"user_id": "ana"}, {"agent_id": "cook"}]}, {"tea one", "tea four"}),
        ({"AND": [{"user_id": {"in": ["ana", "cy"]}}, {"NOT": [{"memory": {"contains": "three"}}]}]}, {"tea one"}),
        ({"AND": [{"user_id": "*"}]}, {"tea one", "tea two", "tea three"}),
        ({"user_id": "ana", "created_at": {"lt": "2000-01-01"}}, set()),
    ]:
        assert set(texts(client.search("tea", filters=filters))) == expected, filters
        assert set(texts(client.get_all(filters=filters))) == expected, filters


@pytest.mark.parametrize(
    ("call", "arguments", "says"),
    [
        ("add", {"messages": "tea"}, "At least one of 'user_id'"),
        ("add", {"messages": 3, "user_id": "ana"}, "messages must be str, dict, or list\\[dict\\], got int"),
        ("add", {"messages": "x", "user_id": "a b"}, "cannot contain whitespace"),
        ("add", {"messages": "x", "filters": {"topic": "y"}}, "'topic' is none"),
        ("add", {"messages": "x", "user_id": "ana", "colour": 1}, "takes no 'colour'"),
        ("search", {"query": " ", "filters": {"user_id": "ana"}}, "cannot be empty or whitespace-only"),
        ("search", {"query": "x", "user_id": "ana"}, "are not supported in search"),
        ("search", {"query": "x", "app_id": "ana"}, "are not supported in search"),
        ("search", {"query": "x"}, "filters must contain"),
        ("search", {"query": "x", "filters": {"NOT": [{"user_id": "ana"}]}}, "filters must contain"),
        ("search", {"query": "x", "filters": {"user_id": "ana"}, "top_k": -1}, "Invalid top_k"),
        ("search", {"query": "x", "filters": {"user_id": "ana"}, "threshold": 7}, "Invalid threshold"),
        ("get_all", {"agent_id": "ana"}, "are not supported in get_all"),
        ("get_all", {"filters": {"user_id": "ana"}, "page": 0}, "page must be"),
        ("get_all", {"filters": 3}, "filters must be a dict"),
        ("update", {"memory_id": "x"}, "At least one of text, metadata, timestamp, or expiration_date must be"),
        ("delete_all", {}, "At least one filter"),
        ("feedback", {"memory_id": "x", "feedback": "meh"}, "feedback must be one of POSITIVE, NEGATIVE"),
        ("delete_users", {}, "No entities to delete"),
        ("batch_update", {"memories": []}, "non-empty list"),
        ("batch_update", {"memories": [{"text": "x"}]}, "memory_id"),
        ("batch_delete", {"memories": [{"memory_id": "x", "text": "y"}]}, "memory_id"),
        ("search", {"query": "x", "options": 3}, "Options object"),
    ],
)  # fmt: skip
def test_what_is_refused(call: str, arguments: dict[str, Any], says: str) -> None:
    with muniment.open(":memory:") as mem, pytest.raises(ValidationError, match=says):
        getattr(MemoryClient(client=mem), call)(**arguments)


@pytest.mark.parametrize(
    "more",
    [{"custom_instructions": "x"}, {"custom_categories": [{}]}, {"includes": "x"}, {"enable_graph": True},
     {"immutable": True}, {"org_id": "o"}, {"project_id": "p"}, {"structured_data_schema": {}}],
)  # fmt: skip
def test_what_would_mean_something_else_is_not_passed_over(more: dict[str, Any]) -> None:
    with muniment.open(":memory:") as mem:
        client = MemoryClient(client=mem)
        with pytest.raises(UnsupportedError):
            client.add("x", user_id="ana", **more)
        assert client.get_all(**ANA)["count"] == 0


def test_batches_are_done_whole_or_not_at_all(client: MemoryClient) -> None:
    added = client.add([{"role": "user", "content": f"thing {n}"} for n in range(3)], user_id="ana", infer=False)
    one, two, three = (each["id"] for each in added["results"])
    with pytest.raises(MemoryNotFoundError):
        client.batch_update([{"memory_id": one, "text": "changed"}, {"memory_id": "none", "text": "x"}])
    with pytest.raises(MemoryNotFoundError):
        client.batch_delete([{"memory_id": one}, {"memory_id": "none"}])
    assert sorted(texts(client.get_all(**ANA))) == ["thing 0", "thing 1", "thing 2"]
    told = client.batch_update([{"memory_id": one, "text": "changed"}, {"memory_id": two, "metadata": {"a": 1}}])
    assert told == {"message": "Successfully updated 2 memories"}
    assert client.batch_delete([{"memory_id": three}, {"memory_id": three}]) == {
        "message": "Successfully deleted 1 memories"
    }
    assert sorted(texts(client.get_all(**ANA))) == ["changed", "thing 1"]


def test_feedback_is_kept_and_changes_nothing(client: MemoryClient) -> None:
    (added,) = client.add("I like tea.", user_id="ana", infer=False)["results"]
    assert client.feedback(added["id"], "negative", "she does not")["memory_id"] == added["id"]
    assert client.get(added["id"])["memory"] == "I like tea."
    assert [row["event"] for row in client.history(added["id"])] == ["ADD"]
    client.update(added["id"], text="I like milk.")
    assert [row["event"] for row in client.history(added["id"])] == ["ADD", "UPDATE"]
    with pytest.raises(MemoryNotFoundError):
        client.feedback("none", "POSITIVE")


def test_users_and_what_is_theirs(client: MemoryClient) -> None:
    client.add("one", user_id="ana", infer=False)
    client.add("two", agent_id="cook", infer=False)
    client.add("three", run_id="r1", infer=False)
    found = {(each["type"], each["name"]) for each in client.users()["results"]}
    assert found == {("user", "ana"), ("agent", "cook"), ("run", "r1")}
    assert client.delete_users(agent_id="cook") == {"message": "Entity deleted successfully."}
    with pytest.raises(MemoryNotFoundError):
        client.delete_users(agent_id="cook")
    assert client.users()["count"] == 2
    assert client.reset()["message"].startswith("Client reset successful")
    assert client.users()["results"] == []
    with pytest.raises(UnsupportedError):
        client.delete_users(app_id="shop")


def test_everybody_is_deleted_where_that_is_said(client: MemoryClient) -> None:
    for user in ("ana", "ben"):
        client.add("tea", user_id=user, infer=False, metadata={"topic": "x" if user == "ana" else "y"})
    client.add("tea", agent_id="cook", infer=False)
    client.delete_all(filters={"AND": [{"user_id": "*"}, {"topic": "x"}]})
    assert client.get_all(**ANA)["count"] == 0
    assert client.get_all(filters={"user_id": "ben"})["count"] == 1
    client.delete_all(user_id="*")
    assert client.get_all(filters={"user_id": "ben"})["count"] == 0
    assert client.get_all(filters={"agent_id": "cook"})["count"] == 1


def test_a_profile_is_the_facts_that_stand(client: MemoryClient) -> None:
    client.add("We met.", user_id="ana")
    assert client.get_profile("ana")["status"] == "insufficient_data"
    client.add("I live in Oslo.", user_id="ana")
    run = client._memory.memories.mem.run(user_id="ana")
    liked = run.observe("user", "I like tea and milk.")
    for drink in ("tea", "milk"):
        run.remember("user.likes", drink, sources=[liked.id])
    told = client.get_profile("ana")
    assert told["status"] == "succeeded"
    assert told["profile"]["user.location"] == "Oslo"
    assert set(told["profile"]["user.likes"]) >= {"tea", "milk"}
    with pytest.raises(MemoryNotFoundError):
        client.get_profile("nobody")


@pytest.mark.parametrize("cls", [PlatformOnly, HostedProject])
def test_what_only_the_platform_has_says_the_way_out(cls: type) -> None:
    with muniment.open(":memory:") as mem:
        held = MemoryClient(client=mem) if cls is PlatformOnly else MemoryClient(client=mem).project
        names = [name for name in vars(cls) if not name.startswith("_") and callable(getattr(cls, name))]
        assert len(names) >= 8
        for name in names:
            given = [
                "x"
                for each in inspect.signature(getattr(held, name)).parameters.values()
                if each.default is each.empty and each.kind is not each.VAR_KEYWORD
            ]
            with pytest.raises(NotImplementedError) as refused:
                getattr(held, name)(*given)
            assert isinstance(refused.value, UnsupportedError), name
            assert len(refused.value.suggestion) > 20, name


def test_who_names_no_place_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEM0_API_KEY", raising=False)
    with pytest.raises(ValueError, match=r"Mem0 API Key not provided\. Please provide an API Key\.") as refused:
        MemoryClient()
    assert isinstance(refused.value, ConfigurationError)
    monkeypatch.setenv("MEM0_API_KEY", "k")
    with pytest.raises(ConfigurationError, match="no hosted platform") as refused:
        MemoryClient()
    assert "muniment serve" in refused.value.suggestion


@needs_client
def test_a_server_s_refusals_are_mem0_s(tmp_path: Path) -> None:
    with served(tmp_path, auth="on") as http, pytest.raises(AuthenticationError):
        MemoryClient(api_key="wrong", host="http://localhost", client=http)
    with pytest.raises(NetworkError):
        MemoryClient(api_key="k", host="http://127.0.0.1:9")


def test_errors_of_ours_in_mem0_s_words() -> None:
    from muniment import errors

    for given, wanted in (
        (errors.RateLimited("slow down", details={"retry_after_s": 3}), RateLimitError),
        (errors.QueueFull("wait", details={"retry_after_s": 3}), RateLimitError),
        (errors.Unauthorized("no"), AuthenticationError),
        (errors.StorageLost("gone"), NetworkError),
    ):
        made = translated(given)
        assert isinstance(made, wanted)
        assert isinstance(made, errors.MunimentError)
        assert made.message == given.message
    assert translated(errors.RateLimited("x", details={"retry_after_s": 3})).debug_info["retry_after"] == 3  # type: ignore[attr-defined]
    other = errors.Conflict("x")
    assert translated(other) is other


def test_from_many_threads() -> None:
    with muniment.open(":memory:") as mem:
        client = MemoryClient(client=mem)

        def work(number: int) -> int:
            user = f"u{number % 4}"
            client.add(f"tea number {number}", user_id=user, infer=False, metadata={"n": number})
            found = client.search("tea", filters={"user_id": user, "n": number})
            client.get_all(filters={"user_id": user})
            return len(found["results"])

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(work, range(40))) == [1] * 40
        assert sum(client.get_all(filters={"user_id": f"u{n}"})["count"] for n in range(4)) == 40


def test_the_same_with_await() -> None:
    async def work() -> None:
        with muniment.open(":memory:") as mem:
            async with AsyncMemoryClient(client=mem) as client:
                added = await client.add("I like tea.", user_id="ana")
                assert texts(await client.search("tea", **ANA))[0] == "I like tea."
                await client.delete(added["results"][0]["id"])
                assert (await client.get_all(**ANA))["count"] == 0
                with pytest.raises(UnsupportedError):
                    await client.get_webhooks("p")
                with pytest.raises(UnsupportedError):
                    await client.project.get()

    asyncio.run(work())
