"""What a client of an earlier version relies on is still there: addresses, what they take, what they answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from http_support import ANA
from http_surface import Surface, read_lines, surface_of
from starlette.testclient import TestClient

from muniment.surfaces.operations.openapi import openapi_text

GOLDEN = Path(__file__).parents[1] / "golden" / "http_surface.txt"
NAMED = {f"schema {name}": "namespace" for name in ("EventSpan", "ChunkSpan", "UrlCitation")}
"""What tells pointers apart: the document has it given since; the door takes one without it as it did."""


@pytest.fixture(scope="module")
def now() -> Surface:
    return surface_of(json.loads(openapi_text()))


@pytest.fixture(scope="module")
def before() -> Surface:
    return read_lines(GOLDEN.read_text("utf-8"))


@pytest.mark.req("X-02")
def test_the_http_surface_only_grew(before: Surface, now: Surface) -> None:
    """Every address and every schema that there was is there, with every field and parameter, of the same type.

    What had to be given may be left out since. The settings of the policy are not in it: they go with their mechanism.
    """
    assert before.keys() <= now.keys()
    for name, fields in before.items():
        told = {f"{field}!" if NAMED.get(name) == field else field: kind for field, kind in fields.items()}
        taken = now[name]
        if not name.startswith("schema "):
            told, taken = ({field.rstrip("!"): kind for field, kind in each.items()} for each in (told, taken))
        assert told.items() <= taken.items(), name


def test_nothing_more_has_to_be_given(before: Surface, now: Surface) -> None:
    for name, fields in before.items():
        if not name.startswith("schema "):
            assert {each for each in now[name] if each.endswith("!")} <= fields.keys(), name


def test_what_is_compared_tells_surfaces_apart(now: Surface, before: Surface) -> None:
    """Else the rest of this page would show little."""
    document = json.loads(openapi_text())
    del document["components"]["schemas"]["Fact"]["properties"]["value"]
    changed = surface_of(document)
    assert not before["schema Fact"].items() <= changed["schema Fact"].items()
    assert len(before) > 400
    assert sum(map(len, before.values())) > 2500
    assert surface_of(json.loads(openapi_text())) == now


def test_a_pointer_without_its_namespace_is_still_one_into_an_event(client: TestClient) -> None:
    said = client.post(f"{ANA}/runs/r1/events", json={"role": "user", "content": "I moved to Berlin."}).json()["id"]
    found = client.post(f"{ANA}/resolve", json={"pointer": {"event_id": said}})
    assert found.json()["text"] == "I moved to Berlin."
