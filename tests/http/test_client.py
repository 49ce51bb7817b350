"""`muniment.connect` is `muniment.open` over HTTP: the same story, the same records, the same errors."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from http_support import Serve, running
from starlette.testclient import TestClient

import muniment
from effort import SOAK
from muniment.core.canonical import canonical_text
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.core.policy import Policy
from muniment.core.record import Record
from muniment.core.scope import EventSpan
from muniment.errors import (
    Conflict,
    DuplicateId,
    Forbidden,
    InvalidInput,
    InvalidJson,
    InvalidRecord,
    NotFound,
    RunFinished,
    StaleState,
    StorageFailure,
    Unauthorized,
)
from muniment.handles.memory import Memory
from muniment.surfaces.http._keys import KeyFile

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
LIBRARY = (
    "memory/test_candidates.py", "memory/test_corpora.py", "memory/test_document_forgetting.py", "memory/test_facts.py",
    "memory/test_forgetting.py", "memory/test_hearing.py", "memory/test_insights.py", "memory/test_rebuilding.py",
    "memory/test_working_state.py", "runs/test_claims.py", "runs/test_steps.py", "store/test_isolation.py",
    "store/test_users.py", "learning/test_bank_handles.py", "handles/test_aio_face.py",
    "runs/test_resume.py::test_the_async_face_tells_the_same_story",
)  # fmt: skip


def story(mem: Memory) -> list[Any]:
    """Something of everything, with what came of it."""
    told: list[Any] = []
    run = mem.run(user_id="ana", session_id="s1", run_id="r1", objective="talk", budgets={"tokens": 1000})
    told.append(run.state())
    said = run.observe("user", "I moved to Berlin in May.", ts=datetime(2026, 5, 2, tzinfo=UTC), tags={"b", "a"})
    told += [said, run.observe_tool("weather", args={"city": "Berlin"}, content="12 °C")]
    told.append(run.observe_many([{"role": "assistant", "content": "Noted.", "ts": date(2026, 5, 3)}]))
    told.append(run.observe("user", "x" * 70_000, id="docs/long one.md"))
    told += [
        run.ledger.content("docs/long one.md"),
        mem.ledger.content("docs/long one.md"),
        mem.ledger.get("docs/long one.md"),
    ]
    told.append(run.ledger.resolve(EventSpan(event_id=said.id, quote="Berlin")))
    told.append(run.remember("user.city", "Berlin", sources=[said.id], quote="Berlin"))
    told += [
        run.facts(),
        run.memory.fact_history("user.city"),
        run.patch(goal="dinner", slots={"city": "Berlin"}, note=1),
    ]
    told += [run.working_state(), run.search("where does she live"), mem.why("Berlin")]
    told += [run.propose("user.diet", "vegan", sources=[said.id]), run.memory.candidates(), run.extract()]
    told += [run.procedure("booking", {"steps": ["a"]}, priority=1), run.insight("hypothesis", "she may be vegan")]
    build = run.compose("planner", query="Where should we eat?", max_tokens=512)
    told += [build.id, build.packet, build.packet_bytes, build.text, build.tokens, build.marks, build.request]
    told += [build.pool.hits, build.policy, build.to_openai(), build.to_anthropic(), build.resolve("Berlin [1].")]
    told += [build.to_openai(include_query=False, cite=False), build.to_anthropic(cache=True), build.stable_chars]
    told.append(mem.replay(build.id).packet_bytes)
    told += [mem.diff(build.id, build.id), mem.compare(build.id, Policy(policy_id="other"))]
    told += [
        run.log.claim("She lives in Berlin.", evidence=[said.id], status="verified"),
        run.log.claims(),
        run.log.read(),
    ]
    told += [
        run.log.question("Where?"),
        run.log.questions(),
        run.log.failure("tool", "here", "why"),
        run.log.plan_next(["eat"]),
    ]
    told += [
        run.log.step("COMPILE_DONE", "p", builds=[build]),
        run.log.compact(),
        list(mem.log.snapshots("r1")),
        mem.log.narrative("r1"),
    ]
    told += [
        mem.log.check_snapshot("r1"),
        mem.log.drift(user_id="ana"),
        mem.runs(),
        mem.log.run_state("r1"),
        run.log.budgets(),
    ]
    resumed = mem.resume("r1")
    told += [resumed.log, resumed.snapshot, resumed.tail, resumed.rejected, resumed.run.scope]
    told += [
        run.learning.recall("eat", intent={"task_family": "dinner"}).response,
        run.learning.note(facts=["f"]),
        run.learning.working_set(),
    ]
    told += [run.verify("Berlin", documents=["Berlin"]).verdict, len(run.verifications())]
    bank = mem.bank(user_id="ana")
    told += [bank.name, bank.records(), bank.plans(), bank.select_seed(), bank.reasoning_bank(), bank.event_logs()]
    notes = mem.corpus("notes", user_id="ana")
    told += [notes.add("# A\n\ntext", document_id="a/b.md"), notes.get("a/b.md"), notes.documents()]
    told += [notes.search("text"), notes.retract("a/b.md", "old"), list(mem.ledger.episodes(user_id="ana"))]
    told += [list(run.ledger.entries()), [each.seq for each in mem.ledger.entries(user_id="ana", session_id="s1")]]
    told += [
        run.finish(),
        mem.verify(),
        mem.store.rebuild(),
        list(mem.export()),
        mem.store.tenants(),
        mem.info.name,
        mem.policy,
    ]
    told += [mem.forget(event=said.id), mem.forget(user_id="ana", session="s1"), mem.forget(tenant="default")]
    return told


@pytest.mark.soak
def test_both_tell_the_same_story(serve: Serve) -> None:
    def fresh() -> Memory:
        return muniment.open(clock=TickingClock(), ids=CountingIds())

    with fresh() as here:
        at_home = story(here)
    with fresh() as there, muniment.connect("http://localhost", http=serve(there)) as remote:
        away = story(remote)
    assert len(at_home) == len(away)
    for index, (one, other) in enumerate(zip(at_home, away, strict=True)):
        assert _untimed(one) == _untimed(other), index


def _untimed(value: Any) -> str:
    """How it reads, but for instants and ids: a server looks at its clock, and mints, a little more often."""
    shown = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", "T", canonical_text(_plain(value)))
    return re.sub(r"[0-9a-f]{64}|[0-9a-f]{32}|[a-z]{2,4}_muniment\d{8}", "H", shown)


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_wire()
    if is_dataclass(value):
        return [_plain(getattr(value, each.name)) for each in fields(value)]
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.decode() if isinstance(value, bytes) else value


@pytest.mark.soak
def test_over_a_real_server_with_keys(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "keys.json", lambda: datetime.now(UTC))
    with muniment.open(tmp_path / "store.db") as memory, running(memory, tmp_path, auth="on") as url:
        with pytest.raises(Unauthorized):
            muniment.connect(url)
        everything = keys.create("all", tenant="*", access="admin").token
        with muniment.connect(url, key=everything) as mem:
            assert story(mem)
        acme = keys.create("acme", tenant="acme").token
        with muniment.connect(url, key=acme) as mem:
            said = mem.run(user_id="ana", tenant_id="acme").observe("user", "Oslo is home.")
            assert mem.verify().ok
            with pytest.raises(Forbidden):
                mem.runs()
        own = keys.create("ana", tenant="acme", user="ana").token
        with muniment.connect(url, key=own) as mem:
            assert mem.ledger.get(said.id, tenant_id="acme") == said
            assert mem.ledger.content(said.id, tenant_id="acme") == "Oslo is home."
            build = mem.run(user_id="ana", tenant_id="acme").compose("responder", query="home")
            assert mem.replay(build.id, tenant_id="acme") == build
            assert len(mem.runs(tenant_id="acme")) == 1
            with pytest.raises(Forbidden):
                mem.run(user_id="bob", tenant_id="acme")


@pytest.mark.soak
def test_many_threads_share_one_connection(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "store.db") as memory, running(memory, tmp_path) as url, muniment.connect(url) as mem:

        def talk(n: int) -> str:
            run = mem.run(user_id=f"u{n % 3}", session_id=f"s{n % 5}")
            return run.observe("user", f"turn {n}").id

        with ThreadPoolExecutor(8) as pool:
            ids = list(pool.map(talk, range(60)))
        assert len(set(ids)) == 60
        report = mem.verify()
        assert (report.ok, report.entries) == (True, 120)
        lines = list(mem.export())
        with muniment.open() as other:
            progress: list[int] = []
            assert other.import_(lambda: lines).written["entries"] == 120
            assert mem.import_(lambda: lines, progress=progress.append).skipped["entries"] == 120


def test_errors_are_typed_and_keep_what_they_carry(serve: Serve) -> None:
    with muniment.connect("http://localhost", http=serve()) as mem:
        run = mem.run(user_id="ana", session_id="s1", objective="talk")
        assert run.state() is None, "nothing is written until something happens"
        run.patch(goal="a")
        with pytest.raises(StaleState) as stale:
            run.patch(goal="b", expected_version=0)
        assert stale.value.current_version == 1
        with pytest.raises(InvalidRecord) as invalid:
            run.observe("root", "x")
        assert invalid.value.issues[0].path == "$.role"
        with pytest.raises(NotFound, match="nope"):
            mem.ledger.get("nope")
        with pytest.raises(Conflict):
            mem.run(user_id="ana", session_id="s1", run_id=run.run_id, objective="sing")
        run.finish()
        with pytest.raises(RunFinished):
            run.observe("user", "x")
        with pytest.raises(InvalidJson):
            run.observe("user", "\ud800")
        with pytest.raises(InvalidInput, match="cannot be sent"):
            run.observe("user", "x", metadata={"a": object()})
        with pytest.raises(InvalidInput, match="over a connection"):
            run.extract(model=object())  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            run.observe("user")  # type: ignore[call-arg]
        with pytest.raises(InvalidInput):
            mem.ledger.get("")


def test_what_is_not_there_or_not_ours_says_so(serve: Serve) -> None:
    for url in ("", "localhost:1", "ftp://localhost", 5):
        with pytest.raises(InvalidInput):
            muniment.connect(url)  # type: ignore[arg-type]
    with pytest.raises(StorageFailure, match="cannot be reached"):
        muniment.connect("http://127.0.0.1:9")

    async def another(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body", "body": b"<html>nothing here</html>"})

    with pytest.raises(StorageFailure, match="no muniment"):
        muniment.connect("http://localhost", http=TestClient(another, base_url="http://localhost"))


def test_agents_run_at_home_and_learn_there(serve: Serve) -> None:
    with muniment.connect("http://localhost", http=serve()) as mem:
        study = mem.research("Should Alder replace its diesel ferries?", user_id="ana", run_id="alder")
        route = study.route()
        results = study.collect(lambda prompt, _: f"# Output\n\n{prompt[:40]}")
        assert [each.perspective_id for each in results] == [each.id for each in route if each.id in
                                                             {result.perspective_id for result in results}]  # fmt: skip
        assert mem.open_research("alder").manifest() == study.manifest()
        with pytest.raises(Forbidden):
            study.look(object())  # type: ignore[arg-type]
        with pytest.raises(InvalidInput):
            mem.open_research("alder", directory="elsewhere")
        path = Path(__file__)
        added = mem.corpus("code", user_id="ana").add_file(path)
        assert added.document_id == path.as_posix()


@pytest.mark.soak
def test_what_an_integration_puts_is_one_request(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All of it or nothing, whichever corpora it goes to; and what stood there before is asked for at once."""
    from muniment.integrations.keyed_documents import KeyedDocuments, Put, put_all

    asked: list[str] = []
    with muniment.open() as mem, running(mem, tmp_path) as url, muniment.connect(url) as far:
        monkeypatch.setattr(far._connection, "_before", lambda: asked.append("a request"))
        drawers = [
            KeyedDocuments(far, "notes"),
            KeyedDocuments(far, "notes", user_id="ana"),
            KeyedDocuments(far, "other"),
        ]
        puts = [Put(documents, f"key {n}", {"n": n}, f"text {n}") for documents in drawers for n in range(10)]
        put_all(puts)
        assert len(asked) == 1
        asked.clear()
        stood = drawers[1].get_many([f"key {n}" for n in range(20)])
        assert [kept.value for kept in stood.values()] == [{"n": n} for n in range(10)]
        assert len(asked) == 1
        asked.clear()
        with pytest.raises(DuplicateId, match="'key 3' is given twice"):
            put_all([*(put._replace(value={"n": 0}) for put in puts), puts[3]])
        assert drawers[0].get_many(["key 3"])["key 3"].value == {"n": 3}
        assert drawers[0].history("key 3")[0][1] == "live"
        long = {"\u00e4" * 250 + str(n): n for n in range(60)}
        put_all([Put(drawers[0], key, {"n": n}, "x") for key, n in long.items()])
        assert {key: kept.value["n"] for key, kept in drawers[0].get_many(list(long)).items()} == long
        assert mem.verify().ok


@pytest.mark.req("LG-02")
def test_the_key_of_one_user_puts_what_is_that_users(tmp_path: Path) -> None:
    from muniment.integrations.keyed_documents import KeyedDocuments, Put, put_all

    keys = KeyFile(tmp_path / "keys.json", lambda: datetime.now(UTC))
    token = keys.create("ana's", tenant="default", user="ana", access="write").token
    with (
        muniment.open() as mem,
        running(mem, tmp_path, auth="on") as url,
        muniment.connect(url, key=token) as far,
    ):
        notes, other = KeyedDocuments(far, "notes", user_id="ana"), KeyedDocuments(far, "other", user_id="ana")
        put_all([Put(documents, f"key {n}", {"n": n}, f"text {n}") for documents in (notes, other) for n in range(3)])
        assert sorted(notes.get_many(["key 0", "key 2"])) == ["key 0", "key 2"]
        (added,) = far.store.add_documents([{"corpus_id": "notes", "text": "a heron"}])
        assert mem.corpus("notes", user_id="ana").get(added.document_id) == added, "it is the user's, not everybody's"
        for drawers in (
            [KeyedDocuments(far, "notes")],
            [KeyedDocuments(far, "notes", user_id="bob")],
            [notes, KeyedDocuments(far, "notes")],
        ):
            with pytest.raises(Forbidden):
                put_all([Put(documents, "mine", {}, "x") for documents in drawers])
        for user in ("bob", None):
            with pytest.raises(InvalidInput) as caught:
                far.store.add_documents([{"corpus_id": "notes", "text": "a heron", "user_id": user}])
            assert caught.value.path == "$[0].user_id"
        assert mem.corpus("notes").documents() == mem.corpus("notes", user_id="bob").documents() == []


@pytest.mark.soak
@pytest.mark.slow
def test_the_librarys_own_tests_pass_over_http() -> None:
    """In a process of their own, with a plugin that serves every store they open; each case if MUNIMENT_SOAK is set."""
    tests = [str(ROOT / "tests" / "unit" / name) for name in LIBRARY]
    chosen = "not sqlite and not postgres and not file and not other_turn"
    chosen += "" if SOAK else " and not megabytes and not stub_is_up_to_date"  # long, and hardly about the wire
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "over_http", "-p", "no:cacheprovider", "-k", chosen, *tests],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout


@pytest.mark.soak
def test_connecting_loads_no_server() -> None:
    code = (
        "import sys; from muniment.surfaces.client.remote import RemoteMemory;"
        "sys.exit(', '.join({'starlette', 'uvicorn', 'click', 'psycopg'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
