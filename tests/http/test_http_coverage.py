"""Every public method of every handle has a row or a reason; rows and document agree with the code."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from http_support import owner_at

from muniment.errors import Forbidden, InvalidInput
from muniment.surfaces.client import proxies, remote
from muniment.surfaces.http._calls import Router, routes_of
from muniment.surfaces.operations.naming import CORE
from muniment.surfaces.operations.openapi import core_text, openapi, openapi_bytes, openapi_text
from muniment.surfaces.operations.rows import LOCAL, OPERATIONS
from muniment.surfaces.operations.shapes import shape_of
from muniment.surfaces.operations.signatures import public_members
from muniment.surfaces.operations.table import HANDLES, SUBHANDLES, class_at
from products import for_each

ROOT = Path(__file__).parents[2]
REMOTE = {
    "memory": remote.RemoteMemory,
    "run": remote.RemoteRun,
    "corpus": remote.RemoteCorpus,
    "study": remote.RemoteStudy,
    "bank": remote.RemoteBank,
    "rulebook": remote.RemoteRulebook,
    **{place: proxies.proxy_class(place) for place in ("values", "threads", *SUBHANDLES)},
}
INHERITED = {"memory.runner", "corpus.add_file", "study.collect", "run.scope", "run.run_id",
             "corpus.corpus_id", "study.run_id", "study.run", "bank.name", "rulebook.name",
             "rulebook.level"}  # fmt: skip
"""What remote handles take over from the library as it is: made of other methods, or of what they hold themselves."""
PLACES = (*HANDLES, *SUBHANDLES)
MEMBERS = [(place, name) for place in PLACES for name in public_members(class_at(place))]


@for_each("place", PLACES)
def test_each_public_method_has_a_route_or_a_reason(place: str) -> None:
    for name in public_members(class_at(place)):
        rows = [each for each in OPERATIONS if (each.place, each.call) == (place, name)]
        assert bool(rows) != (f"{place}.{name}" in LOCAL), f"{name}: a row in operations.rows, or a reason in LOCAL"


def test_no_reason_is_given_for_what_does_not_exist() -> None:
    known = {f"{place}.{name}" for place, name in MEMBERS}
    assert set(LOCAL) <= known
    for operation in OPERATIONS:
        assert operation.function is not None or f"{operation.place}.{operation.call}" in known
        taken = {each.name for each in operation.signature.parameters}
        for name, why in operation.left_out.items():
            assert why
            assert name in taken or operation.signature.extra is not None, (operation.id, name)


@for_each("place", [each for each in PLACES if each in REMOTE])
def test_remote_handles_ask_and_never_touch_a_store(place: str) -> None:
    """A method that is neither derived nor made of others would look for a store that is not there."""
    for name in public_members(class_at(place)):
        ours = inspect.getattr_static(REMOTE[place], name)
        theirs = inspect.getattr_static(class_at(place), name)
        is_inherited = f"{place}.{name}" in INHERITED
        assert (ours is theirs) == is_inherited, f"{name}: either derived from a row, or said to be inherited"
        if not is_inherited and inspect.isfunction(ours) and inspect.isfunction(theirs):
            assert not hasattr(ours, "__wrapped__") or inspect.signature(ours) == inspect.signature(theirs), name


def test_over_the_wire_an_operation_is_named_as_if_its_handle_had_no_others_on_it() -> None:
    """Where the library keeps a method is its own affair: names that clients know stay."""
    for operation in OPERATIONS:
        assert operation.id == f"{operation.handle}.{operation.wire_name or operation.call}"
    assert {each.id: each.wire_name for each in OPERATIONS if each.wire_name} == {"run.log": "log"}


def test_addresses_are_unique_and_found() -> None:
    routes = list(routes_of(OPERATIONS))
    named = {(each.operation.method, each.template, "{owner}" in each.template and each.level) for each in routes}
    assert len(named) == len(routes)
    router = Router(routes)
    for route in routes:
        names = route.operation.named_in(route.template)
        wanted = {name: f"a/{name}" for name in names}
        if "owner" in names:
            wanted["owner"] = owner_at(route.level, "a/user", "a/agent")
        asked = tuple(wanted[part[1:-1]] if part.startswith("{") else part for part in route.template.split("/")[1:])
        found = router.find(route.operation.method, asked)
        assert found.route == route
        ids = {"user": {"user_id": "a/user"}, "agent": {"agent_id": "a/agent"}}
        assert found.names == wanted | (ids.get(route.level, {}) if "owner" in names else {})
    for wrong in ("", "ana", "user:", "agent:", "tenant:x", "User:ana"):
        with pytest.raises(InvalidInput):
            router.find("GET", ("v1", "tenants", "t", "banks", wrong or "-", "lessons"))


@for_each("place", PLACES)
def test_each_row_can_be_described(place: str) -> None:
    for operation in (each for each in OPERATIONS if each.place == place):
        for template in operation.routes.values():
            in_path = set(operation.named_in(template))
            given = {each.name for each in operation.parameters(template)}
            assert not in_path & given, operation.id
            required = {each.name for each in operation.signature.parameters if each.is_required}
            assert required <= in_path | given | {"tenant_id", "user_id"} | set(operation.left_out), operation.id
        if operation.media == "application/json" and operation.signature.returns is not bytes:
            shape_of(operation.signature.returns).schema({})


def test_every_row_has_a_place_that_is_described() -> None:
    assert {each.place for each in OPERATIONS} <= set(PLACES)


@pytest.mark.soak
def test_the_committed_document_is_current() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "make_openapi.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.soak
def test_the_document_is_the_same_in_another_process() -> None:
    code = (
        "import hashlib, muniment.surfaces.operations.openapi as made;"
        "print(hashlib.sha256(made.openapi_bytes()).hexdigest())"
    )
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    there = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
    )
    assert there.stdout.strip() == hashlib.sha256(openapi_bytes()).hexdigest()


def test_every_reference_of_the_document_leads_somewhere() -> None:
    document = openapi()
    parts = {f"#/components/{kind}/{name}" for kind, names in document["components"].items() for name in names}
    ids = [each["operationId"] for item in document["paths"].values() for each in item.values()]
    assert len(ids) == len(set(ids))

    def walk(node: object) -> None:
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                assert node["$ref"] in parts
            for each in node.values():
                walk(each)
        elif isinstance(node, list):
            for each in node:
                walk(each)

    walk(document)


def test_every_operation_stands_in_a_part_of_the_document() -> None:
    """The core first, about a dozen; the rest by room; names that make good functions."""
    document = json.loads(openapi_text())
    tags = [each["name"] for each in document["tags"]]
    told = [each for item in document["paths"].values() for each in item.values()]
    assert tags[0] == "core"
    assert {each["tags"][0] for each in told} == set(tags)
    assert all(len(each["tags"]) == 1 for each in told)
    core = [each["operationId"] for each in told if each["tags"] == ["core"]]
    assert sorted(core) == sorted(CORE.values())
    assert len(core) <= 15
    has_core = [any(each["tags"] == ["core"] for each in item.values()) for item in document["paths"].values()]
    assert has_core == sorted(has_core, reverse=True), "addresses of the core come first"
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*[a-z0-9]", each["operationId"]) for each in told)
    assert {each["tags"][0] for each in json.loads(core_text())["paths"].popitem()[1].values()} == {"core"}


@pytest.mark.soak
def test_the_core_has_examples_and_they_are_what_a_server_answers() -> None:
    document = json.loads(core_text())
    for item in document["paths"].values():
        for each in item.values():
            answers = [answer for status, answer in each["responses"].items() if status in ("200", "201")]
            shown = [part["content"]["application/json"] for part in (*answers, each.get("requestBody")) if part]
            assert all("examples" in part for part in shown), each["operationId"]
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "make_examples.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_nothing_in_the_document_stops_a_generator() -> None:
    """No schema is `true` or `false`, every array says of what, every choice of texts is one of texts, and every part
    that stands there is used."""

    def walk(node: object, path: str) -> None:
        if isinstance(node, list):
            for index, each in enumerate(node):
                walk(each, f"{path}[{index}]")
        if not isinstance(node, dict):
            return
        if node.get("type") == "array":
            assert "items" in node, path
        if isinstance(node.get("enum"), list):
            assert "type" in node, path
        for key in ("items", "schema", "not", "contains"):
            assert not isinstance(node.get(key), bool), path
        for key, each in node.items():
            if key == "properties" and isinstance(each, dict):
                assert not any(isinstance(field, bool) for field in each.values()), path
            if key not in ("examples", "example"):
                walk(each, f"{path}.{key}")

    document = json.loads(openapi_text())
    walk(document, "$")
    text = openapi_text()
    for kind, parts in document["components"].items():
        if kind != "securitySchemes":
            assert [name for name in parts if f'"#/components/{kind}/{name}"' not in text] == []


@pytest.mark.parametrize("name", ["replay", "advance"])
def test_a_connection_says_where_rules_are_tried_on_earlier_tasks(name: str) -> None:
    book = object.__new__(remote.RemoteRulebook)
    with pytest.raises(Forbidden, match="where the store is") as refused:
        getattr(book, name)(lambda task: "", lambda output, task: True)
    assert refused.value.hint == LOCAL[f"rulebook.{name}"]
