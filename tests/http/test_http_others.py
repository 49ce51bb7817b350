"""No answer tells of another tenant or user: each address, asked in stores that differ only in what others hold.

Status, headers and body are compared byte by byte, and the operations on the store one by one: an answer that took more
statements would tell by its time. The ids that are named exist with the others, and nowhere else (LG-02, X-09).
The library, MCP and the command line are asked the same way.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from other_requests import Asked, requests
from other_scopes import ACTOR, AskedStore, Ids, holdings, made
from starlette.testclient import TestClient

import muniment
from effort import SOAK, one_in
from muniment.core.canonical import canonical_bytes
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.errors import MunimentError
from muniment.handles.memory import Memory
from muniment.surfaces.cli.main import cli
from muniment.surfaces.http.app import create_app
from muniment.surfaces.http.settings import ServerSettings
from muniment.surfaces.mcp.callers import CallerScope, ToolCallers
from muniment.surfaces.mcp.resources import read_resource
from muniment.surfaces.mcp.server import _call as call_tool
from muniment.surfaces.mcp.settings import McpSettings

pytestmark = [pytest.mark.req("LG-02", "X-09"), pytest.mark.timeout(1800)]
OTHERS = [("globex", "bo"), ("acme", "ana")] if SOAK else [("acme", "ana")]


class Door(NamedTuple):
    """A server over one of the stores."""

    store: AskedStore
    client: TestClient

    def ask(self, asked: Asked) -> tuple[int, dict[str, str], bytes, list[str]]:
        self.store.put_back()
        sent: dict[str, Any] = {} if asked.body is None else {"json": asked.body}
        answer = self.client.request(
            asked.route.operation.method, asked.path, headers=asked.headers | {"X-Request-Id": "r"}, **sent
        )
        headers = {name: value for name, value in answer.headers.items() if name != "date"}
        if b'"directory"' in answer.content:  # a study says where its files lie, and its ETag with it
            headers.pop("etag", None)
        if "/research" in asked.path and asked.route.operation.method == "POST":
            self.store.put_files_back()
        body = answer.content.replace(b"/among", b"/alone")  # the folder of the server's own files
        return answer.status_code, headers, body, self.store.ops()


class Doors(NamedTuple):
    """Servers over a store that Bo has alone, and over one that others have too."""

    alone: Door
    beside: Door
    own: Ids
    theirs: Ids
    is_same_tenant: bool

    @property
    def levels(self) -> set[str]:
        """At which levels Bo is asking: what the tenant has as a whole, its other users have a part in."""
        return {"user"} if self.is_same_tenant else {"user", "tenant", "agent"}


@pytest.fixture(scope="module", params=OTHERS, ids="/".join)
def doors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    with ExitStack() as stack:
        opened = []
        for name, others in (("alone", None), ("among", request.param)):
            folder = tmp_path_factory.mktemp(name)
            store, own, theirs = made(folder, others)
            stack.callback(store.memory.close)
            places = {"keys": str(folder / "keys"), "research_dir": str(folder / "research")}
            settings = ServerSettings(**places, lease_seconds=3600)  # nothing of the server's own is read meanwhile
            app = create_app(store.memory, settings)
            client = TestClient(app, base_url="http://localhost", raise_server_exceptions=False)
            opened.append((Door(store, stack.enter_context(client)), own, theirs))
        (alone, own, _), (beside, same, theirs) = opened
        assert own == same
        assert not set(own.values()) & {theirs[kind] for kind in theirs if kind not in ("verification", "user")}
        yield Doors(alone, beside, own, theirs, request.param[0] == ACTOR[0])


def without_hashes(answer: Any) -> Any:
    """An answer without the hashes of what was erased: an event of a study holds the folder of its store."""
    status, headers, body, ops = answer
    return status, {**headers, "etag": ""}, re.sub(rb'"hash":"[0-9a-f]{64}"', b"", body), ops


def test_every_address_answers_as_if_nobody_else_were_there(doors: Doors) -> None:
    told: dict[str, list[str]] = {"answer": [], "operations": [], "refusal": [], "defect": []}
    refusals: dict[tuple[str, str], set[bytes]] = {}
    statuses: set[int] = set()
    for asked in one_in(2, list(requests(doors.own, doors.theirs, doors.levels))):
        alone, beside = doors.alone.ask(asked), doors.beside.ask(asked)
        if asked.route.operation.call.startswith("forget"):
            alone, beside = without_hashes(alone), without_hashes(beside)
        statuses.add(alone[0])
        if 500 in (alone[0], beside[0]):
            told["defect"].append(str(asked))
        if alone[:3] != beside[:3] and doors.is_same_tenant and asked.chooses:
            if (beside[0], json.loads(beside[2] or b"{}").get("code")) != (409, "duplicate_id"):
                told["refusal"].append(f"{asked}\n    {beside[0]} {beside[2][:300]!r}")
            said = beside[2].replace(doors.theirs[asked.kind].encode(), b"ID")
            refusals.setdefault((asked.route.template, asked.slot), set()).add(said)
        elif alone[:3] != beside[:3]:
            told["answer"].append(f"{asked}\n    {alone[:3]!r:.400}\n    {beside[:3]!r:.400}")
        elif alone[3] != beside[3]:
            told["operations"].append(f"{asked}\n    {alone[3]}\n    {beside[3]}")
    told["refusal"] += [f"{where}: {said}" for where, said in refusals.items() if len(said) > 1]
    assert {200, 201, 404} <= statuses
    said = [f"{len(found)} by their {what}:\n" + "\n".join(found[:12]) for what, found in told.items() if found]
    assert not said, "\n".join(said)


# -- other doors --------------------------------------------------------------------------------------


def outcome(store: AskedStore, call: Callable[[Memory], Any]) -> tuple[Any, list[str]]:
    """What a call answers or raises, in a store as it was made, and what it asked of the store."""
    store.put_back()
    try:
        answer = call(store.memory)
    except MunimentError as error:
        answer = (type(error).__name__, error.to_dict(), str(error))
    if isinstance(answer, bytes):
        answer = answer.replace(b"/among", b"/alone")  # the folder of a study's files
    return answer, store.ops()


def library_call(asked: Asked) -> Callable[[Memory], Any]:
    """The method that an address stands for, called as a program would."""
    operation, names = asked.route.operation, asked.names
    tenant_id, user_id = ACTOR
    body = asked.body or {}
    arguments = {operation.body: body} if operation.body else dict(body)
    known = {"tenant_id": tenant_id, "user_id": user_id} if asked.route.level == "user" else {"tenant_id": tenant_id}
    arguments |= {name: value for name, value in (names | known).items() if name in operation.takes_names}
    owner = {name: names[name] for name in ("user_id", "agent_id") if name in names} | {"tenant_id": tenant_id}

    def call(memory: Memory) -> Any:
        match operation.handle:
            case "run":
                run = {"run_id": names["run_id"]} if "run_id" in names else {}
                handle: Any = memory.run(**owner, agent_id="agent", session_id="session-own", **run)
            case "corpus":
                handle = memory.corpus(names["corpus_id"], tenant_id=tenant_id, user_id=names.get("user_id"))
            case "bank":
                handle = memory.bank(**owner)
            case "rulebook":
                handle = memory.rulebook(**owner)
            case "values":
                handle = memory.store.values(names["space"], **owner)
            case "threads":
                handle = memory.store.threads(names["space"], **owner)
            case _:
                handle = memory
        if isinstance(getattr(type(handle), operation.call, None), property):
            return getattr(handle, operation.call)
        result = operation.target(handle, **arguments)
        is_plain = operation.media != "application/json" or isinstance(result, bytes)
        return list(result) if operation.media.endswith("ndjson") else result if is_plain else encoded(result)

    def encoded(result: Any) -> bytes:
        return canonical_bytes(operation.shape.encode(result))

    return call


def test_every_method_answers_and_fails_as_if_nobody_else_were_there(doors: Doors) -> None:
    told, count = [], 0
    for asked in one_in(3, list(requests(doors.own, doors.theirs, doors.levels))):
        operation = asked.route.operation
        is_whole = operation.handle == "memory" and "user_id" not in operation.takes_names  # of the tenant as a whole
        if asked.headers or "?" in asked.path or operation.handle in ("study", "works") or operation.makes_folder:
            continue
        if doors.is_same_tenant and (is_whole or asked.chooses or asked.slot == "path run_id"):
            continue
        call = library_call(asked)
        alone, beside = outcome(doors.alone.store, call), outcome(doors.beside.store, call)
        count += 1
        if operation.call.startswith("forget"):  # as above
            alone, beside = (re.sub(r'"hash":"[0-9a-f]{64}"', "", repr(each)) for each in (alone, beside))
        if alone != beside:
            told.append(f"{asked}\n    {alone!r:.500}\n    {beside!r:.500}")
    assert count > 100
    assert not told, f"{len(told)}:\n" + "\n".join(told[:10])


def test_every_tool_answers_as_if_nobody_else_were_there(doors: Doors) -> None:
    def asked_at(store: AskedStore, name: str, arguments: dict[str, Any]) -> Any:
        callers = ToolCallers(store.memory, McpSettings(profile="full"))

        def call(_memory: Memory) -> Any:
            caller = callers.take(CallerScope(*ACTOR, "agent", "session-own"))
            if name == "resource":
                return read_resource(caller, arguments["uri"]).model_dump_json()
            return call_tool(caller, name, arguments).model_dump_json()

        return outcome(store, call)

    for id_ in doors.theirs.values():
        for name, arguments in (
            ("search_memory", {"query": id_}),
            ("read", {"event_id": id_}),
            ("why", {"build_id": id_}),
            ("why", {"text": id_}),
            ("forget", {"event_id": id_}),
            ("forget", {"fact_id": id_}),
            ("remember", {"key": "k", "value": 1, "sources": [id_]}),
            ("claim", {"statement": "x", "evidence": [{"event_id": id_}]}),
            ("claim", {"statement": "x", "evidence": [{"event_id": id_, "quote": "tea"}]}),
            ("claim", {"claim_id": id_, "status": "verified"}),
            ("claim", {"claim_id": id_, "status": "retracted", "reason": "x"}),
            ("get_context", {"query": "tea", "purpose": "planner"}),
            ("get_lessons", {"query": "tea"}),
            ("resource", {"uri": f"muniment://events/{id_}"}),
            ("resource", {"uri": f"muniment://builds/{id_}"}),
            ("resource", {"uri": f"muniment://facts/{id_}"}),
            ("resource", {"uri": f"muniment://sessions/{id_}"}),
            ("search_memory", {"event_id": id_}),
            ("resource", {"uri": f"muniment://runs/{id_}/narrative"}),
            ("resource", {"uri": f"muniment://runs/{id_}/narrative/1"}),
        ):
            alone, beside = (asked_at(door.store, name, arguments) for door in (doors.alone, doors.beside))
            assert alone == beside, (name, arguments)


COMMANDS = (
    "replay {}", "diff {} {}", "explain {}", "run show {}", "run log {}", "run events {}", "run claims {}",
    "run snapshot {}", "run snapshots {}", "run resume {}", "forget --yes --event {}", "forget --yes --fact {}",
    "store export --session {}", "learn bank show --user bo {}", "corpus show --user bo --corpus corpus-own {}",
    "corpus show --user bo --corpus {} document-own", "research status {}",
)  # fmt: skip


def test_every_command_answers_as_if_no_other_tenant_were_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In two files, each called store.db in a folder of its own."""
    theirs: Ids = {}
    for name in ("alone", "among"):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        for seed, scope in (("own", ACTOR), ("theirs", ("globex", "bo")))[: 1 if name == "alone" else 2]:
            with muniment.open("store.db", clock=TickingClock(), ids=CountingIds(seed)) as mem:
                theirs = holdings(mem, *scope, seed, folder / seed)
    said = []
    for command in COMMANDS:
        for kind in one_in(4, ("event", "run", "fact", "build", "memory", "document", "study", "gone", "session")):
            told = []
            for name in ("alone", "among"):
                shutil.copytree(tmp_path / name, tmp_path / "here")
                monkeypatch.chdir(tmp_path / "here")
                words = command.format(theirs[kind], theirs[kind]).split()
                scope = ["--db", "store.db", "--tenant", "acme", "--json"]
                result = CliRunner().invoke(cli, [*words, *scope])
                told.append((result.exit_code, result.stdout, result.stderr))
                monkeypatch.chdir(tmp_path)
                shutil.rmtree(tmp_path / "here")
            assert told[0] == told[1], command
            said.append(told[0])
    assert len({code for code, _, _ in said}) > 1
    assert sum("not_found" in stderr for _, _, stderr in said) > len(said) / 4
