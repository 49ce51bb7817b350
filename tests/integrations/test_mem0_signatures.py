"""Our classes and mem0's have the same calls with the same parameters: names, kinds, defaults, and what is awaited."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import pytest
from mem0_room import needs_mem0

from muniment.integrations import mem0 as ours
from muniment.integrations.mem0 import exceptions as our_exceptions
from muniment.integrations.mem0 import options as our_options

CLASSES = ("Memory", "AsyncMemory", "MemoryClient", "AsyncMemoryClient")
LEFT = {"entity_store"}
"""Parts of mem0 that are no calls: its store of entities."""


def theirs() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mem0

    return mem0


def public(cls: type) -> dict[str, Any]:
    names = (name for name in dir(cls) if not name.startswith("_") or name in ("__enter__", "__exit__", "__aenter__"))
    return {name: inspect.getattr_static(cls, name) for name in names if name not in LEFT}


def parameters(call: Any) -> list[tuple[str, Any, Any]]:
    found = []
    for each in inspect.signature(call).parameters.values():
        default = "a mark" if type(each.default) is object else each.default
        found.append((each.name, each.kind, default))
    return found


@needs_mem0
@pytest.mark.parametrize("name", CLASSES)
def test_the_same_calls(name: str) -> None:
    for call in public(getattr(theirs(), name)):
        assert hasattr(getattr(ours, name), call) or call == "project", call


@needs_mem0
@pytest.mark.parametrize("name", CLASSES)
def test_the_same_parameters(name: str) -> None:
    compared = 0
    for call, held in public(getattr(theirs(), name)).items():
        if isinstance(held, property) or call == "__exit__":
            continue
        wanted, found = (getattr(getattr(module, name), call) for module in (theirs(), ours))
        assert parameters(found) == parameters(wanted), f"{name}.{call}"
        assert inspect.iscoroutinefunction(found) == inspect.iscoroutinefunction(wanted), f"{name}.{call}"
        compared += 1
    assert compared > 10


@needs_mem0
@pytest.mark.parametrize("name", ["MemoryClient", "AsyncMemoryClient"])
def test_clients_are_made_with_the_same_parameters(name: str) -> None:
    assert parameters(getattr(ours, name).__init__) == parameters(getattr(theirs(), name).__init__)


@needs_mem0
@pytest.mark.parametrize("is_async", [False, True])
def test_the_same_project_calls(is_async: bool) -> None:
    theirs()
    from mem0.client.project import AsyncProject, Project

    from muniment.integrations.mem0.async_client import AsyncHostedProject
    from muniment.integrations.mem0.platform import HostedProject

    wanted, found = (AsyncProject, AsyncHostedProject) if is_async else (Project, HostedProject)
    for name, call in public(wanted).items():
        if isinstance(call, property):
            assert hasattr(found, name), name
        else:
            assert parameters(getattr(found, name)) == parameters(call), name
            assert inspect.iscoroutinefunction(getattr(found, name)) == is_async, name


@needs_mem0
def test_the_same_options() -> None:
    theirs()
    from mem0.client import types

    for name in [each for each in our_options.__all__ if each.endswith("Options")]:
        assert set(getattr(our_options, name).model_fields) == set(getattr(types, name).model_fields), name


@needs_mem0
def test_exceptions_have_mem0_s_names_and_attributes() -> None:
    theirs()
    from mem0 import exceptions

    for name in our_exceptions.__all__:
        if name in ("UnsupportedError", "translated"):
            continue
        wanted = getattr(exceptions, name)("said", "CODE", {"a": 1}, "do this", {"b": 2})
        found = getattr(our_exceptions, name)("said", "CODE", {"a": 1}, "do this", {"b": 2})
        for attribute in ("message", "error_code", "details", "suggestion", "debug_info"):
            assert getattr(found, attribute) == getattr(wanted, attribute), (name, attribute)
        assert str(found) == str(wanted) == "said"


def test_the_awaited_calls_are_those_of_the_others() -> None:
    """Without mem0: the async classes are derived, and lose nothing."""
    for plain, awaited in ((ours.Memory, ours.AsyncMemory), (ours.MemoryClient, ours.AsyncMemoryClient)):
        for name, call in public(plain).items():
            if name in ("__enter__", "__exit__", "memories", "project", "config"):
                continue
            found = getattr(awaited, name)
            if name not in ("close", "from_config"):
                assert inspect.iscoroutinefunction(found), name
            if (plain, name) != (ours.Memory, "add"):  # which takes an llm with await
                assert parameters(found) == parameters(getattr(plain, name)), (name, call)
