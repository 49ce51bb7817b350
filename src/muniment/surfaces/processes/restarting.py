"""Which long works another process can begin again, and what it needs for that.

Those can that need nothing but the store: verify, extract, scrub, rebuild, reembed, gate. Each finds what it
had done, or does it once more without harm. An import reads a file that was spooled to the disk of its process, and the
pack and the check of a study read files of that server's: they are told to be interrupted, and are sent again.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from muniment.core.record import JsonObject
from muniment.errors import Interrupted
from muniment.surfaces.http._calls import AdmittedRequest, MatchedRoute, Route, routes_of
from muniment.surfaces.operations.rows import OPERATIONS
from muniment.surfaces.operations.table import Operation

__all__ = ["asked_again", "is_restartable", "restartable"]


def is_restartable(operation: Operation) -> bool:
    """Does it need nothing but the store?"""
    return operation.is_long and operation.takes != "lines" and operation.handle != "study"


def restartable(asked: AdmittedRequest) -> JsonObject | None:
    """What was asked, in plain data; None where another process could not begin it."""
    route = asked.found.route
    if not is_restartable(route.operation):
        return None
    return {
        "operation": route.operation.id,
        "template": route.template,
        "names": dict(asked.found.names),
        "own": dict(asked.own),
        "run": dict(asked.run),
    }


def asked_again(plain: JsonObject, research_dir: Path) -> AdmittedRequest:
    """The request that was let in when the work was begun."""
    route = _routes().get((str(plain["operation"]), str(plain["template"])))
    names, own, run = plain["names"], plain["own"], plain["run"]
    if route is None or not isinstance(names, dict) or not isinstance(own, dict) or not isinstance(run, dict):
        raise Interrupted("it was begun by another version of the server, which ended", hint="start it again")
    return AdmittedRequest(
        found=MatchedRoute(route, {name: str(value) for name, value in names.items()}),
        own=own,
        run=run,
        wants_lines=False,
        request=None,
        version=None,
        research_dir=research_dir,
    )


@cache
def _routes() -> dict[tuple[str, str], Route]:
    return {(route.operation.id, route.template): route for route in routes_of(OPERATIONS)}
