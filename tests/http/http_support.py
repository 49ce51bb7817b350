"""What tests of the server share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from starlette.testclient import TestClient

Serve = Callable[..., TestClient]
TENANT = "/v1/tenants/default"
ANA = f"{TENANT}/users/ana"


def address(route: Any, **names: str) -> str:
    """The path of a route with these names, or some."""
    path: str = route.template
    usual = {"tenant_id": "default", "user_id": "ana", "run_id": "r1", "corpus_id": "notes", "agent_id": "solver"}
    for name in route.operation.named_in(path):
        path = path.replace(f"{{{name}}}", quote((usual | names).get(name, f"no_{name}"), safe=""))
    return path


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
