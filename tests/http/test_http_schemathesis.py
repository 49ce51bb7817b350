"""Requests made up from the OpenAPI document: no answer is a defect, and none is other than the document says.

One in twelve addresses in every run, all of them under a soak.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from effort import one_in
from muniment.surfaces.http.app import create_app
from muniment.surfaces.http.settings import ServerSettings
from muniment.surfaces.operations.openapi import openapi_text
from products import for_each

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.specs.openapi.checks import (  # noqa: E402
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    unsupported_method,
]
EXAMPLES = int(os.environ.get("MUNIMENT_HTTP_EXAMPLES", "2"))


ROUTES = [
    (method, path)
    for path, item in json.loads(openapi_text())["paths"].items()
    for method in item
    if not path.endswith(("/operations/{operation_id}/events", "/import"))  # a stream of events, and one of lines
]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("api")
    server = ServerSettings(host="0.0.0.0", auth="off", research_dir=str(folder / "research"), body_seconds_max=5)
    inner = create_app(folder / "store.db", server)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":  # it would be started and closed for each request
            await inner(scope, receive, send)
            return
        for event in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{event}.complete"})

    return schemathesis.openapi.from_asgi("/v1/openapi.json", app)


@for_each(("method", "path"), one_in(12, ROUTES), ids=lambda part: part)
def test_no_answer_is_a_defect_or_undocumented(api: Any, method: str, path: str) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=api[path][method].as_strategy())
    def asked(case: Any) -> None:
        case.call_and_validate(checks=CHECKS)

    asked()
