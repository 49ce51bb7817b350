"""Bad input at every door: a MunimentError with a code, never another exception, nothing half-written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import muniment
from muniment.core.scope import EventSpan
from muniment.errors import MunimentError, TooLarge
from muniment.handles.memory import Memory
from muniment.store.ledger import LedgerEntry
from products import for_each

Counts = Callable[[Memory], dict[str, int]]
Maker = Callable[..., Memory]

HUGE = 10**5000
DEEP: Any = None
for _ in range(5000):
    DEEP = [DEEP]
CYCLE: dict[str, Any] = {}
CYCLE["self"] = CYCLE
ODD: list[Any] = [
    5,
    1.5,
    float("nan"),
    True,
    b"x",
    object(),
    ["x"],
    ("x",),
    {"a": 1},
    {1, 2},
    int,
    lambda: 1,
    "\ud800",
    HUGE,
    DEEP,
]
ODD_IDS: list[Any] = [*ODD, "", "a\0b", "a\nb", "\x7f", "\t", "x" * 257, "😀" * 193]


def names(values: list[Any]) -> list[str]:
    return [f"{type(value).__name__}-{at}" for at, value in enumerate(values)]


def refused(call: Callable[[], Any], path: str | None = None) -> None:
    """The call raises a MunimentError with a code, where sensible a path; and it can be shown."""
    with pytest.raises(MunimentError) as caught:
        call()
    error = caught.value
    assert error.code
    assert error.code != "error"
    assert str(error)
    assert error.to_dict()["message"]
    if path is not None:
        assert error.path is not None
        assert error.path == path or error.path.startswith((f"{path}.", f"{path}[")), (error.path, path)


@pytest.fixture(scope="module")
def store() -> Any:
    with muniment.open(":memory:") as memory:
        memory.run(user_id="ana", session_id="s1").observe("user", "x", id="e1")
        yield memory


@pytest.fixture
def unchanged(store: Memory, counts: Counts) -> Any:
    before = counts(store)
    yield store
    assert counts(store) == before
    assert store.verify().ok


# -- run


@for_each("value", ODD_IDS, ids=names(ODD_IDS))
@for_each("name", ["user_id", "agent_id", "session_id", "run_id", "tenant_id"])
def test_names_of_a_run(unchanged: Memory, name: str, value: Any) -> None:
    refused(lambda: unchanged.run(**({"user_id": "ana"} | {name: value})), f"$.{name}")


@pytest.mark.parametrize("name", ["user_id", "agent_id", "tenant_id"])
def test_names_that_are_missing(unchanged: Memory, name: str) -> None:
    refused(lambda: unchanged.run(**({"user_id": "ana"} | {name: None})), f"$.{name}")


def test_the_tenant_that_means_all_tenants(unchanged: Memory) -> None:
    refused(lambda: unchanged.run(user_id="ana", tenant_id="*").observe("user", "x"))


@for_each("value", ODD, ids=names(ODD))
@for_each("name", ["task_type", "objective"])
def test_words_of_a_run(unchanged: Memory, name: str, value: Any) -> None:
    refused(lambda: unchanged.run(user_id="ana", **{name: value}), f"$.{name}")


@pytest.mark.parametrize(
    "value",
    [
        5,
        1.5,
        ["x"],
        b"x",
        object(),
        "\ud800",
        {1: 2},
        {"a": float("nan")},
        {"a": object()},
        {"a": {1: 2}},
        {"a": DEEP},
        CYCLE,
        {"a": HUGE},
        {"a": "\ud800"},
        {"\ud800": 1},
        {"a": (1, 2)},
    ],
)
def test_the_done_definition_of_a_run(unchanged: Memory, value: Any) -> None:
    refused(lambda: unchanged.run(user_id="ana", done_definition=value), "$.done_definition")


def test_an_objective_over_the_limit(unchanged: Memory) -> None:
    refused(lambda: unchanged.run(user_id="ana", objective="x" * 1_100_000))


# -- observe

OBSERVE: dict[str, list[Any]] = {
    "role": [*ODD, "", "User", None, "root"],
    "content": [value for value in ODD if value is not None] + [None],
    "speaker": [value for value in ODD if not isinstance(value, str)] + ["\ud800"],
    "ts": [
        5,
        1.5,
        b"x",
        object(),
        ["x"],
        {"a": 1},
        "",
        "soon",
        "\0",
        "2026-13-01",
        "99999-01-01",
        time(12),
        timedelta(1),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=9))),
        "\ud800",
        HUGE,
    ],
    "id": ODD_IDS,
    "tags": [5, 1.5, "tag", b"x", object(), {"a": 1}, [1], ["\ud800"], {1, "a"}, {1, 2}, (None,), [["x"]], [HUGE]],
    "entities": [5, "tag", {"a": 1}, [1], {1, "a"}, [b"x"]],
    "metadata": [
        5,
        1.5,
        "x",
        ["x"],
        object(),
        {1: 2},
        {None: 1},
        {"a": {1: 2}},
        {"a": float("nan")},
        {"a": [float("inf")]},
        {"a": object()},
        {"a": {1, 2}},
        {"a": b"x"},
        {"a": "\ud800"},
        {"\ud800": 1},
        {"a": DEEP},
        CYCLE,
        {"a": HUGE},
        {"a": datetime(2026, 1, 1)},
        {"a": (1, 2)},
        {"a": MappingProxyType({})},
    ],
    "idempotency_key": ODD_IDS,
    "trust": [*ODD, "", "root", "User"],
}
CASES = [(name, value) for name, values in OBSERVE.items() for value in values]


@for_each(("name", "value"), CASES, ids=[f"{n}-{type(v).__name__}-{i}" for i, (n, v) in enumerate(CASES)])
def test_every_argument_of_observe_in_every_call(unchanged: Memory, name: str, value: Any) -> None:
    run = unchanged.run(user_id="ana", session_id="s1")
    event = {"role": "user", "content": "x"} | {name: value}
    path = f"$.{name}"
    refused(lambda: run.observe(**event), path)
    if value is not None:
        refused(lambda: run.observe_many([{"role": "user", "content": "fine"}, event]), f"$[1]{path[1:]}")
    if name not in ("role", "speaker"):
        tool = {key: item for key, item in event.items() if key != "role"}
        refused(lambda: run.observe_tool("t", **tool), path)


@pytest.mark.parametrize("value", ODD_IDS, ids=names(ODD_IDS))
def test_the_name_of_a_tool(unchanged: Memory, value: Any) -> None:
    refused(lambda: unchanged.run(user_id="ana").observe_tool(value, content="x"), "$.tool.name")


@pytest.mark.parametrize(
    "value", [5, "x", ["x"], [("a", 1)], {1: 2}, {"a": float("nan")}, {"a": object()}, CYCLE, {"a": DEEP}]
)
def test_the_arguments_of_a_tool(unchanged: Memory, value: Any) -> None:
    refused(lambda: unchanged.run(user_id="ana").observe_tool("t", content="x", args=value), "$.tool.args")


@pytest.mark.parametrize("value", [5, 1, 0, "yes", None, [True], object()])
def test_whether_a_tool_was_ok(unchanged: Memory, value: Any) -> None:
    refused(lambda: unchanged.run(user_id="ana").observe_tool("t", content="x", ok=value), "$.tool.ok")


@pytest.mark.parametrize(
    "value", [None, 5, "x", b"x", {"role": "user", "content": "x"}, object(), [5], [None], ["x"], [[]], [{}], [{1: 2}]]
)
def test_the_events_of_observe_many(unchanged: Memory, value: Any) -> None:
    refused(lambda: unchanged.run(user_id="ana").observe_many(value), "$")


@pytest.mark.parametrize(
    "value", [*ODD, None, "", "done", "objective_achieved"], ids=names([*ODD, None, "", "done", "o"])
)
def test_the_reason_of_finish(unchanged: Memory, value: Any) -> None:
    refused(lambda: unchanged.run(user_id="ana").finish(value), "$.stop_reason")


# -- reading, forgetting, transfer

BAD_NAMES: list[Any] = [5, 1.5, b"x", object(), ["x"], {"a": 1}, "\ud800", "a\0b"]


@pytest.mark.parametrize("value", BAD_NAMES, ids=names(BAD_NAMES))
def test_names_in_reads(unchanged: Memory, value: Any) -> None:
    run = unchanged.run(user_id="ana")
    for call in (
        lambda: unchanged.ledger.get(value),
        lambda: unchanged.ledger.get("e1", tenant_id=value),
        lambda: unchanged.ledger.content(value),
        lambda: unchanged.ledger.content("e1", tenant_id=value),
        lambda: unchanged.ledger.resolve(value),
        lambda: unchanged.ledger.resolve("e1", tenant_id=value),
        lambda: list(unchanged.ledger.entries(user_id=value)),
        lambda: list(unchanged.ledger.entries(user_id="ana", session_id=value)),
        lambda: list(unchanged.ledger.entries(user_id="ana", tenant_id=value)),
        lambda: list(unchanged.export(user_id=value)),
        lambda: list(unchanged.export(session_id=value)),
        lambda: list(unchanged.export(tenant_id=value)),
        lambda: unchanged.verify(tenant_id=value),
        lambda: unchanged.store.rebuild(tenant_id=value),
        lambda: unchanged.forget(event=value),
        lambda: unchanged.forget(fact=value),
        lambda: unchanged.forget(session=value),
        lambda: unchanged.forget(user_id=value),
        lambda: unchanged.forget(tenant=value),
        lambda: unchanged.forget(event="e1", tenant_id=value),
        lambda: run.ledger.get(value),
        lambda: run.ledger.content(value),
        lambda: run.ledger.resolve(value),
    ):
        refused(call)


@pytest.mark.parametrize("value", [None, "", "*"])
def test_a_tenant_or_user_that_cannot_be(unchanged: Memory, value: Any) -> None:
    for call in (
        lambda: unchanged.ledger.get("e1", tenant_id=value),
        lambda: unchanged.forget(event="e1", tenant_id=value),
        lambda: list(unchanged.export(tenant_id=value)),
        lambda: unchanged.store.rebuild(tenant_id=value),
    ):
        refused(call)
    if value is None:
        refused(lambda: list(unchanged.ledger.entries(user_id=value)), "$.user_id")
        refused(lambda: unchanged.ledger.get(value))


@pytest.mark.parametrize(
    "selector",
    [
        {},
        {"event": ""},
        {"user_id": ""},
        {"tenant": ""},
        {"event": "e1", "session": "s1"},
        {"tenant": "default", "user_id": "ana"},
        {"event": "e1", "fact": "f1"},
        {"tenant": "default", "tenant_id": "acme"},
        {"event": "no"},
        {"fact": "e1"},
        {"user_id": "no"},
        {"session": "no"},
        {"tenant": "no"},
        {"event": "e1", "user_id": "bob"},
        {"session": "s1", "user_id": "bob"},
    ],
)
def test_selectors_of_forget(unchanged: Memory, selector: dict[str, str]) -> None:
    refused(lambda: unchanged.forget(**selector))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "pointer",
    [
        {},
        {"namespace": "event"},
        {"namespace": "other", "event_id": "e1"},
        {"namespace": "event", "event_id": 5},
        {"namespace": "event", "event_id": "e1", "span": {"start": 2, "end": 1}},
        {"namespace": "event", "event_id": "e1", "x": 1},
        {"namespace": "event", "event_id": "e1", "span": {"start": -1, "end": 1}},
        {"chunk_id": "e1"},
        {1: 2},
        "",
        "a\nb",
        EventSpan.model_construct(event_id="a\0b", namespace="event", span=None, quote=None),
    ],
)
def test_pointers(unchanged: Memory, pointer: Any) -> None:
    refused(lambda: unchanged.ledger.resolve(pointer))
    refused(lambda: unchanged.run(user_id="ana").ledger.resolve(pointer))


@pytest.mark.parametrize(
    "source", [5, None, b"x", ["x"], object(), "", "/no/such/file", "\0", ".", lambda: 5, lambda: ["x"], lambda: [5]]
)
def test_sources_of_an_import(unchanged: Memory, source: Any) -> None:
    if callable(source) and source() == 5:
        with pytest.raises(TypeError):  # the caller's own function is broken
            unchanged.import_(source)
        return
    refused(lambda: unchanged.import_(source))


def test_a_progress_that_is_no_function(unchanged: Memory) -> None:
    lines = list(unchanged.export())
    refused(lambda: unchanged.import_(lambda: lines, progress=5), "$.progress")  # type: ignore[arg-type]


@pytest.mark.parametrize("arguments", [{"clock": 5}, {"durability": "maximal"}, {"durability": None}, {"policy": 5}])
def test_arguments_of_open(tmp_path: Path, arguments: dict[str, Any]) -> None:
    refused(lambda: muniment.open(tmp_path / "x.db", **arguments))


# -- what is odd and works


@pytest.mark.parametrize(
    "event",
    [
        {"content": ""},
        {"content": "\0"},
        {"content": "a\0b\x01\x7f\u2028\ufeff\uffff"},
        {"content": "\0" * 70_000},
        {"content": "e\u0301 é \U0010ffff"},
        {"speaker": ""},
        {"speaker": "\0"},
        {"tags": ["", "a", "a", "\0"]},
        {"entities": ["\0"]},
        {
            "metadata": {
                "": "",
                "\0": "\0",
                "big": 2**200,
                "small": -(2**200),
                "f": 1e308,
                "z": -0.0,
                "n": None,
                "l": [],
            }
        },
        {"metadata": {"deep": [[[[[[[[[[1]]]]]]]]]]}},
        {"metadata": MappingProxyType({"a": 1})},
        {"id": "x" * 256},
        {"id": "字" * 256},
        {"idempotency_key": " "},
        {"ts": "0001-01-01"},
        {"ts": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)},
        {"ts": date(2026, 1, 1)},
    ],
)
def test_odd_things_come_back_as_they_were(any_mem: Memory, event: dict[str, Any]) -> None:
    run = any_mem.run(user_id="ana", session_id="s1")
    said = run.observe(**({"role": "user", "content": "x"} | event))
    read: LedgerEntry = any_mem.ledger.get(said.id)
    assert read == said
    if "content" in event:
        assert any_mem.ledger.content(said.id) == event["content"]
    if isinstance(event.get("metadata"), Mapping):
        assert read.metadata == dict(event["metadata"])
    if "tags" in event:
        assert list(read.tags) == event["tags"]
    assert any_mem.verify().ok
    assert b"".join(any_mem.export())


def test_names_of_every_script_and_length_on_every_engine(any_mem: Memory) -> None:
    """768 bytes that do not compress in every name at once: an index of the server has a limit of its own."""
    long = "".join(chr(0x4E00 + at * 37 % 20_000) for at in range(256))
    for number, name in enumerate(
        (long, "\u00a0", "' OR 1=1 --", '"; DROP TABLE entries; --', "%s", "../..", "a,b", "NULL")
    ):
        scope = {"tenant_id": name, "user_id": name, "agent_id": name, "session_id": name}
        run = any_mem.run(**scope, run_id=f"{name[:-1]}{number}")
        said = run.observe("user", "x", id=f"{name[:-2]}e{number}", idempotency_key=name)
        run.finish()
        assert any_mem.ledger.get(said.id, tenant_id=name) == said
        assert [entry.seq for entry in any_mem.ledger.entries(user_id=name, session_id=name, tenant_id=name)] == [
            1,
            2,
            3,
        ]
        any_mem.forget(session=name, user_id=name, tenant_id=name)
    assert any_mem.verify().ok


def test_33_mb_of_content_is_refused_and_32_are_kept(make: Maker, counts: Counts) -> None:
    mem = make("sqlite")
    run = mem.run(user_id="ana")
    run.observe("user", "x")
    before = counts(mem)
    with pytest.raises(TooLarge) as caught:
        run.observe("user", "x" * (33 * 1024 * 1024))
    assert caught.value.path == "$.content"
    assert counts(mem) == before
    said = run.observe("user", "x" * (32 * 1024 * 1024))
    assert len(mem.ledger.content(said.id)) == 32 * 1024 * 1024


def test_an_error_in_the_callers_own_iterable_writes_nothing(make: Maker, counts: Counts) -> None:
    mem = make("sqlite")
    run = mem.run(user_id="ana")
    run.observe("user", "x")
    before = counts(mem)

    def events() -> Any:
        yield {"role": "user", "content": "a"}
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run.observe_many(events())
    assert counts(mem) == before
    run.observe("user", "and it goes on")


def test_what_the_caller_does_with_its_data_afterwards_changes_nothing(mem: Memory) -> None:
    metadata: dict[str, Any] = {"list": [1]}
    run = mem.run(user_id="ana")
    said = run.observe("user", "x", metadata=metadata)
    metadata["list"].append(2)
    assert mem.ledger.get(said.id).metadata == {"list": [1]}
    assert mem.verify().ok
