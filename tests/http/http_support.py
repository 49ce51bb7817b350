"""What tests of the server share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote

import pytest
import uvicorn
from starlette.testclient import TestClient

from muniment.core.ports.engine import Reader, Row, Select
from muniment.handles.memory import Memory
from muniment.surfaces.http.app import create_app
from muniment.surfaces.http.settings import ServerSettings
from muniment.surfaces.operations.table import owner_name

Serve = Callable[..., TestClient]
TENANT = "/v1/tenants/default"
ANA = f"{TENANT}/users/ana"


def address(route: Any, **names: str) -> str:
    """The path of a route with these names, or some."""
    path: str = route.template
    usual = {"tenant_id": "default", "user_id": "ana", "run_id": "r1", "corpus_id": "notes", "agent_id": "solver"}
    usual["owner"] = owner_at(route.level, "ana", "solver")
    for name in route.operation.named_in(path):
        path = path.replace(f"{{{name}}}", quote((usual | names).get(name, f"no_{name}"), safe=""))
    return path


def owner_at(level: str, user_id: str, agent_id: str) -> str:
    """Whose a bank or a rulebook at a level is, as an address names it."""
    return owner_name(user_id if level == "user" else None, agent_id if level == "agent" else None)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@contextmanager
def running(memory: Memory, tmp_path: Path, **settings: Any) -> Iterator[str]:
    """A real server on a port of its own; its address."""
    places = {"keys": str(tmp_path / "keys.json"), "research_dir": str(tmp_path / "research")}
    app = create_app(memory, ServerSettings(**places | settings))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, access_log=False))
    thread = Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(30)


def count_rows(mem: Memory, rows: list[Row], monkeypatch: pytest.MonkeyPatch) -> None:
    """Take down every row that a reader of the store hands out."""
    engine = type(mem._ctx.engine)
    read = engine.read

    class Counting:
        def __init__(self, inner: Reader) -> None:
            self._inner = inner

        def do(self, op: Any) -> Any:
            answer = self._inner.do(op)
            rows.extend(answer if isinstance(answer, list) else ())
            return answer

        def stream(self, select: Select) -> Any:
            for row in self._inner.stream(select):
                rows.append(row)
                yield row

    def counted(self: Any, tenant_id: str, work: Any) -> Any:
        return read(self, tenant_id, lambda reader: work(Counting(reader)))

    monkeypatch.setattr(engine, "read", counted)
