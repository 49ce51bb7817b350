"""What mem0 refuses and what it takes, case by case: ours, ours with `await`, and mem0 itself.

Names of mem0's own tests (`TestEntityIdValidation`, `TestSearchParamValidation`) stand in the guide's table beside the
cases; where those look inside mem0, what they mean is looked at from outside here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mem0_room import mem0_errors, mem0_itself, needs_mem0, texts

import muniment
from muniment.errors import InvalidInput, MunimentError
from muniment.integrations.mem0 import AsyncMemory, Memory
from muniment.integrations.mem0.exceptions import MemoryNotFoundError, ValidationError

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "from-mem0.md"


class Case(NamedTuple):
    call: str
    arguments: dict[str, Any]
    says: str
    """The words of the refusal, which the guide lists."""


ONE = {"user_id": "ana"}
EMPTY = "cannot be empty or whitespace-only. Provide a valid identifier."
SPACED = "cannot contain whitespace. Provide a valid identifier without spaces."
REFUSED = [
    *(
        Case(call, arguments(name, value), f"Invalid {name}: {says}")
        for name in ("user_id", "agent_id", "run_id")
        for value, says in (("", EMPTY), ("   ", EMPTY), ("user 123", SPACED), ("user\t123", SPACED), ("a\n b", SPACED))
        for call, arguments in (
            ("search", lambda name, value: {"query": "tea", "filters": {name: value}}),
            ("get_all", lambda name, value: {"filters": {name: value}}),
            ("add", lambda name, value: {"messages": "tea", name: value, "infer": False}),
            ("delete_all", lambda name, value: {name: value}),
        )
    ),
    *(
        Case("search", {"query": query, "filters": ONE}, "Invalid query: cannot be empty or whitespace-only.")
        for query in ("", "   ", "\n\t")
    ),
    *(
        Case("search", {"query": query, "filters": ONE}, "Invalid query: must be a non-empty string.")
        for query in (None, 3, ["tea"])
    ),
    *(
        Case("search", {"query": "tea", "filters": ONE, "threshold": value}, f"Invalid threshold: {value}. Must be")
        for value in (1.5, -0.5, 2)
    ),
    Case("search", {"query": "tea", "filters": ONE, "threshold": "high"}, "threshold must be a valid number"),
    *(
        Case(call, {**more, "filters": ONE, "top_k": value}, says)
        for call, more in (("search", {"query": "tea"}), ("get_all", {}))
        for value, says in (
            (-5, "Invalid top_k: -5. Must be a non-negative integer."),
            (2.5, "top_k must be a valid integer"),
            ("5", "top_k must be a valid integer"),
            (True, "top_k must be a valid integer"),
        )
    ),
    *(
        Case(call, {**more, "user_id": "ana"}, f"are not supported in {call}(). Use filters=")
        for call, more in (("search", {"query": "tea"}), ("get_all", {}))
    ),
    *(
        Case(call, {**more, "filters": filters}, "filters must contain at least one of: user_id, agent_id, run_id.")
        for call, more in (("search", {"query": "tea"}), ("get_all", {}))
        for filters in (None, {}, {"topic": "food"})
    ),
    Case("add", {"messages": "tea"}, "At least one of 'user_id', 'agent_id', or 'run_id' must be provided."),
    Case("add", {"messages": "tea", **ONE, "memory_type": "odd"}, "Invalid 'memory_type'. Please pass"),
    *(
        Case("add", {"messages": given, **ONE, "infer": False}, "messages must be str, dict, or list[dict]")
        for given in (3, None, {"a"})
    ),
    Case("add", {"messages": "tea", **ONE, "expiration_date": "soon"}, "expiration_date must be a valid date"),
    Case("add", {"messages": "tea", **ONE, "expiration_date": 3}, "expiration_date must be a date string"),
    Case("update", {"memory_id": "x"}, "At least one of text, metadata, or expiration_date must be provided."),
    Case("update", {"memory_id": "x", "text": "y", "expiration_date": "soon"}, "expiration_date must be a valid date"),
    Case("delete_all", {}, "At least one filter is required to delete all memories."),
    Case("search", {"query": "tea", "filters": {**ONE, "AND": {}}}, "AND operator requires a list of conditions"),
    *(
        Case("search", {"query": "tea", "filters": {**ONE, kind: given}}, f"{kind} operator requires a non-empty list")
        for kind in ("OR", "NOT")
        for given in ([], "x")
    ),
    Case("search", {"query": "tea", "filters": {**ONE, "n": {"gte": 1, "like": 2}}}, "operator: like"),
]  # fmt: skip
NIL = "00000000-0000-0000-0000-000000000000"
MISSING = [
    Case(
        "update", {"memory_id": NIL, "text": "x"}, f"Memory with id {NIL} not found. Please provide a valid 'memory_id'"
    ),
    Case("delete", {"memory_id": NIL}, f"Memory with id {NIL} not found"),
]


class Awaited:
    """`AsyncMemory` for those who do not wait."""

    def __init__(self, memory: AsyncMemory) -> None:
        self._memory = memory

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            async def work() -> Any:
                return await getattr(self._memory, name)(**arguments)

            return asyncio.run(work())

        return call


@pytest.fixture(params=["muniment", "await", pytest.param("mem0", marks=needs_mem0)])
def memory(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    if request.param == "mem0":
        with mem0_itself(tmp_path, monkeypatch) as made:
            yield made
    else:
        with muniment.open(":memory:") as mem:
            yield Memory(mem) if request.param == "muniment" else Awaited(AsyncMemory(mem))


def test_what_is_refused(memory: Any) -> None:
    """All cases over one memory: mem0 itself takes a second to open."""
    memory.add(messages="I like tea", user_id="ana", infer=False)
    for case in REFUSED + MISSING:
        with pytest.raises((ValueError, *mem0_errors())) as refused:
            getattr(memory, case.call)(**case.arguments)
        assert case.says in str(refused.value), case
        if isinstance(refused.value, MunimentError):
            assert isinstance(refused.value, ValueError), case
            assert refused.value.code, case
            assert refused.value.hint, case
    assert texts(memory.get_all(filters={"user_id": "ana"})) == ["I like tea"]


def test_ids_are_trimmed_and_turned_into_text(memory: Any) -> None:
    memory.add(messages="I like tea", user_id="  alice ", infer=False)
    memory.add(messages="I like milk", user_id=42, infer=False)
    memory.add(messages="I like juice", user_id=0, infer=False)
    assert texts(memory.get_all(filters={"user_id": " alice  "})) == ["I like tea"]
    assert texts(memory.get_all(filters={"user_id": 42})) == ["I like milk"]
    assert texts(memory.search(query="milk", filters={"user_id": "42"})) == ["I like milk"]
    memory.delete_all(user_id=" alice\n")
    memory.delete_all(user_id=42)
    assert texts(memory.get_all(filters={"user_id": "alice"})) == []
    assert texts(memory.get_all(filters={"user_id": "42"})) == []
    assert texts(memory.get_all(filters={"user_id": 0})) == ["I like juice"]


def test_edges_that_are_taken(memory: Any) -> None:
    memory.add(messages="I like tea", user_id="ana", infer=False)
    asked = {"query": "  tea\n", "filters": ONE}
    assert texts(memory.search(**asked)) == ["I like tea"]
    assert texts(memory.search(**asked, threshold=0)) == ["I like tea"]
    assert texts(memory.search(**asked, threshold=1.0)) in ([], ["I like tea"])
    assert texts(memory.search(**asked, top_k=0)) == []
    assert texts(memory.get_all(filters=ONE, top_k=0)) in ([], ["I like tea"])  # mem0 gives one
    assert memory.get(memory_id=NIL) is None
    assert memory.history(memory_id=NIL) == []
    assert memory.add(messages=[], user_id="ana", infer=False)["results"] == []


def test_metadata_cannot_say_whose_a_memory_is(memory: Any, caplog: pytest.LogCaptureFixture) -> None:
    given = {"user_id": "ben", "agent_id": "x", "topic": "food", "deep": {"a": [1]}}
    with caplog.at_level(logging.WARNING):
        added = memory.add(messages="I like tea", user_id="ana", infer=False, metadata=given)
    assert given == {"user_id": "ben", "agent_id": "x", "topic": "food", "deep": {"a": [1]}}
    assert "identity fields cannot be set through metadata" in caplog.text
    memory_id = added["results"][0]["id"]
    memory.update(memory_id=memory_id, metadata={"user_id": "ben", "topic": "drink"})
    got = memory.get(memory_id=memory_id)
    assert (got["user_id"], got["metadata"]) == ("ana", {"topic": "drink", "deep": {"a": [1]}})
    assert "agent_id" not in got
    assert texts(memory.get_all(filters={"user_id": "ben"})) == []


def test_data_is_an_old_name_for_text(memory: Any, caplog: pytest.LogCaptureFixture) -> None:
    memory_id = memory.add(messages="one", user_id="ana", infer=False)["results"][0]["id"]
    with caplog.at_level(logging.WARNING):
        memory.update(memory_id=memory_id, data="two")
    assert memory.get(memory_id=memory_id)["memory"] == "two"
    assert "deprecated" in caplog.text


def test_chat_is_not_there(memory: Any) -> None:
    with pytest.raises(NotImplementedError, match="Chat function not implemented yet"):
        memory.chat(query="hello")


def test_project_settings_are_refused() -> None:
    with muniment.open(":memory:") as mem:
        for given in ({"decay": True}, {"custom_instructions": "x"}):
            with pytest.raises(ValueError, match="not supported by the OSS Memory SDK"):
                Memory(mem).project.update(**given)


# -- ours ---------------------------------------------------------------------------------------------


def test_refusals_are_typed_with_path_and_hint() -> None:
    with muniment.open(":memory:") as mem:
        memory = Memory(mem)
        with pytest.raises(ValidationError) as refused:
            memory.add("tea")
        assert (refused.value.error_code, refused.value.code) == ("VALIDATION_001", "invalid_input")
        assert refused.value.suggestion == refused.value.hint
        with pytest.raises(ValidationError) as refused:
            memory.search("tea", filters={"user_id": "a b"})
        assert (refused.value.path, isinstance(refused.value, InvalidInput)) == ("$.user_id", True)
        with pytest.raises(MemoryNotFoundError):
            memory.delete("none")


@pytest.mark.parametrize("name", ["mem0", "muniment:fields"])
def test_keys_that_are_kept_are_not_the_caller_s(name: str) -> None:
    with muniment.open(":memory:") as mem, pytest.raises(ValidationError, match="kept"):
        Memory(mem).add("tea", user_id="ana", metadata={name: 1})


def test_messages_that_cannot_be_kept_are_named(caplog: pytest.LogCaptureFixture) -> None:
    said = [
        {"role": "system", "content": "be kind"},
        {"role": "user"},
        {"role": "narrator", "content": "meanwhile"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]},
        {"role": "human", "content": "I like tea"},
        {"role": "ai", "content": [{"type": "text", "text": "Noted."}]},
        {"role": "tool", "content": "42"},
        "no message",
    ]
    with muniment.open(":memory:") as mem:
        kept = Memory(mem).add(said, user_id="ana", infer=False)["results"]
    assert [(each["role"], each["memory"]) for each in kept] == [
        ("user", "I like tea"), ("assistant", "Noted."), ("tool", "42")
    ]  # fmt: skip
    assert [record.args[0] for record in caplog.records] == [1, 2, 3, 7]
