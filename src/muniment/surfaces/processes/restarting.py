"""Long works that another process can restart, and the data needed for that.

These need only the store: verify, extract, scrub, rebuild, reembed, gate. Each finds its earlier progress, or repeats
it without harm. An import reads a file that was spooled to its process's disk, and the pack and the check of a study
read files of that server: they are reported as interrupted, and have to be sent again.
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
    """True if it needs only the store."""
    return operation.is_long and operation.takes != "lines" and operation.handle != "study"


def restartable(asked: AdmittedRequest) -> JsonObject | None:
    """The request as plain data; None if another process could not restart it."""
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
    """Rebuild the admitted request of a work."""
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
