"""What the document says of an argument is what the door takes: bounds, choices and patterns, tried one step beyond.

A third of them in every run, all of them under a soak.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from http_support import ANA
from starlette.testclient import TestClient

from effort import one_in
from muniment.surfaces.operations.openapi import openapi_text

DOCUMENT = json.loads(openapi_text())
NAMES = {
    "tenant_id": "default",
    "owner": "user:ana",
    "user_id": "ana",
    "run_id": "r1",
    "agent_id": "agent",
    "corpus_id": "notes",
    "event_id": "e1",
    "rule_id": "none",
    "document_id": "d1",
    "insight_id": "none",
}
BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
GIVEN = {"sources": ["e1"], "agent": {"answers": []}, "query": "Where?", "event": "ACT_DONE", "role": "user"}
NOT_REACHED = {
    ("run.learn", "level"): "what the verifier said is read first",
    ("run.observe_tool", "trust"): "a tool's word may be lowered only, and most choices would raise it",
}
"""Arguments that are not looked at before another is refused, or not alone, and why."""


class Argument(NamedTuple):
    """An argument at one address."""

    operation: str
    call: str
    method: str
    path: str
    where: str
    name: str
    schema: dict[str, Any]
    others: dict[str, Any]
    """What else has to be given."""

    def send(self, client: TestClient, value: Any) -> Any:
        path = self.path.format(**{**NAMES, **{name: "none" for name in _names(self.path) if name not in NAMES}})
        given = {**self.others, self.name: value}
        if self.where == "query":
            return client.request(self.method, path, params=given)
        return client.request(self.method, path, json=given)

    def is_refused(self, client: TestClient, value: Any) -> bool | None:
        """Whether the door refuses it for this argument; None where there is nothing of that name to ask about."""
        answer = self.send(client, value)
        if answer.status_code < 300:
            return False
        if answer.status_code == 404:
            return None
        told = answer.json()
        issues = [each["path"] for each in told.get("details", {}).get("issues", ())]
        return answer.status_code == 422 and any(
            f"$.{self.name.rstrip('_')}" in str(each) for each in (told.get("path"), *issues)
        )


def _names(path: str) -> list[str]:
    return [part[1:-1] for part in path.split("/") if part.startswith("{")]


def _resolved(node: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        kind, name = node["$ref"].split("/")[-2:]
        node = DOCUMENT["components"][kind][name]
    return node


def _least(name: str, schema: dict[str, Any]) -> Any:
    """Something that fits."""
    if name in GIVEN:
        return GIVEN[name]
    schema = _resolved(schema)
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema or "oneOf" in schema:
        return _least("", (schema.get("anyOf") or schema["oneOf"])[0])
    fits: dict[str, Any] = {"string": "x", "integer": schema.get("minimum", 1), "number": schema.get("minimum", 0.5),
                            "array": [], "boolean": True, "object": {}}  # fmt: skip
    return fits.get(schema.get("type", ""), "x")


def arguments() -> Iterator[Argument]:
    """Every argument that has a bound, a choice or a pattern; at the user's level, where there are several."""
    seen = set()
    for path, item in DOCUMENT["paths"].items():
        for method, told in item.items():
            found: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = []
            given = [_resolved(each) for each in told.get("parameters", ())]
            needed = {each["name"]: _least(each["name"], each["schema"]) for each in given
                      if each["in"] == "query" and each["required"]}  # fmt: skip
            if method == "get":
                found += [("query", each["name"], each["schema"], needed) for each in given if each["in"] == "query"]
            body = told.get("requestBody", {}).get("content", {}).get("application/json")
            schema = _resolved(body["schema"]) if body else {}
            fields = schema.get("properties", {})
            required = {name: _least(name, fields[name]) for name in schema.get("required", ())}
            found += [("body", name, field, required) for name, field in fields.items()]
            for where, name, field, others in found:
                key = (told.get("x-method"), name)
                if key not in seen and field.keys() & {*BOUNDS, "enum", "pattern"}:
                    seen.add(key)
                    yield Argument(
                        told["operationId"], str(told.get("x-method")), method.upper(), path, where, name, field, others
                    )


ARGUMENTS = list(arguments())


@pytest.fixture
def door(client: TestClient) -> TestClient:
    client.post(f"{ANA}/runs/r1/events", json={"role": "user", "content": "I moved to Berlin.", "id": "e1"})
    client.post(f"{ANA}/corpora/notes/documents", json={"text": "A text.", "document_id": "d1"})
    return client


def beyond(schema: dict[str, Any]) -> Iterator[tuple[Any, bool]]:
    """Values at and beyond the bounds, each with whether it is within them."""
    step = 1 if schema.get("type") == "integer" else 0.001
    for name, within in (("minimum", 1), ("maximum", -1)):
        if name in schema:
            yield schema[name], True
            yield schema[name] - within * step, False
    for name, within in (("exclusiveMinimum", 1), ("exclusiveMaximum", -1)):
        if name in schema:
            yield schema[name], False
            yield schema[name] + within * step, True
    if "enum" in schema:
        yield from ((value, True) for value in schema["enum"][:2])
        yield "no_such_choice", False
    elif "pattern" in schema or "maxLength" in schema:
        yield "a\x00b", False
    if "maxLength" in schema:
        yield "x" * schema["maxLength"], True
        yield "x" * (schema["maxLength"] + 1), False
    if schema.get("minLength"):
        yield "", False


def test_a_number_beyond_its_bound_is_refused_and_one_at_it_is_not(door: TestClient) -> None:
    wrong = []
    reached = set()
    for argument in one_in(3, ARGUMENTS):
        if (argument.call, argument.name) in NOT_REACHED:
            continue
        for value, is_within in beyond(argument.schema):
            is_refused = argument.is_refused(door, value)
            if is_refused is None:
                continue
            reached.add((argument.call, argument.name))
            if is_refused == is_within:
                said = argument.send(door, value)
                wrong.append((argument.operation, argument.name, str(value)[:20], is_within, said.text[:150]))
    assert wrong == [], "\n".join(map(str, wrong))
    assert len(reached) > 20


def test_there_is_much_to_try() -> None:
    bounded = {(each.operation, each.name) for each in ARGUMENTS if each.schema.keys() & {*BOUNDS}}
    assert {("compose", "max_tokens"), ("search", "k"), ("search", "min_score"), ("events", "limit"),
            ("remember", "confidence")} <= bounded  # fmt: skip
    chosen = {(each.operation, each.name) for each in ARGUMENTS if "enum" in each.schema}
    assert {("compose", "purpose"), ("observe", "role"), ("finish_run", "stop_reason")} <= chosen
