"""Upkeep over HTTP: as an operation, and as what a server does beside its requests."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import muniment
from muniment.errors import InvalidInput
from muniment.surfaces.http.app import create_app
from muniment.surfaces.http.settings import ServerSettings, load_server_settings
from upkeep_room import leases, load


def test_it_is_an_operation_of_a_store_and_of_a_tenant(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "store.db") as mem:
        load(mem)
        load(mem, tenant_id="acme")
        with TestClient(create_app(mem), base_url="http://localhost") as client:
            done = client.post("/v1/tenants/acme/upkeep", json={"kinds": ["index"]})
            assert (done.status_code, done.json()["index"]) == (200, 80)
            done = client.post("/v1/upkeep", json={})
            assert (done.status_code, done.json()["index"], done.json()["held"]) == (200, 80, 0)
            assert client.get("/v1/tenants/acme/overview").json()["under_way"] == 0
            refused = client.post("/v1/upkeep", json={"kinds": ["everything"]})
            assert (refused.status_code, bool(refused.json()["hint"])) == (422, True)
        assert leases(mem) == leases(mem, "acme") == []


def test_a_server_does_what_its_settings_name(tmp_path: Path) -> None:
    settings = ServerSettings(upkeep="index, scrub", upkeep_seconds=1, lease_seconds=1)
    with muniment.open(tmp_path / "store.db") as mem:
        with TestClient(create_app(mem, settings), base_url="http://localhost"):
            load(mem)
            for _ in range(600):
                if not mem.store.overview().unindexed:
                    break
                threading.Event().wait(0.1)
        assert mem.store.overview().unindexed == 0
        assert leases(mem) == []


@pytest.mark.parametrize("named", ["everything", "index,nothing", "index scrub"])
def test_a_server_that_is_told_of_no_such_upkeep_does_not_start(named: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        load_server_settings({"upkeep": named}, {})
    assert (refused.value.path, bool(refused.value.hint)) == ("$.upkeep", True)
