"""The possible error responses: problems by status, each with the codes of its errors."""

from __future__ import annotations

from typing import Any

from muniment import errors
from muniment.errors import MunimentError
from muniment.surfaces.operations.problems import MEDIA_TYPE, titled
from muniment.surfaces.operations.table import Operation

__all__ = ["problem_responses", "problem_schema", "refusals_of"]

_TEXT: dict[str, Any] = {"type": "string"}
_ELSEWHERE = {412: ("stale_state",), 431: ("too_large",)}
"""Codes sent with another status than their own: a failed If-Match, an oversized head."""
_ALWAYS = (400, 401, 403, 404, 408, 409, 410, 422, 429, 431)
_FAILED = "5XX"


def codes_by_status() -> dict[str, list[str]]:
    """The error codes by response status; those of the server's own failures together."""
    found: dict[str, set[str]] = {str(status): set(codes) for status, codes in _ELSEWHERE.items()}
    for name in errors.__all__:
        each = getattr(errors, name)
        if isinstance(each, type) and issubclass(each, MunimentError):
            status = str(each.status) if each.status < 500 else _FAILED
            found.setdefault(status, set()).add(each.code)
    return {status: sorted(codes) for status, codes in sorted(found.items())}


def refusals_of(operation: Operation) -> list[str]:
    """The errors that an operation may return."""
    statuses = {*_ALWAYS}
    statuses |= {413, 415} if operation.takes_body else set()
    statuses |= {412} if operation.versioned is not None and operation.takes_body else set()
    return [*map(str, sorted(statuses)), _FAILED]


def problem_responses() -> dict[str, Any]:
    """A response for each status, with the codes it may have.

    The codes are listed in words and as `x-codes`, not as an enum of `code`: today's client must accept a new code from
    a later server.
    """
    told = codes_by_status()
    for status in ("405", "499"):  # for an unknown method; for a caller that disconnected
        del told[status]
    return {f"Problem{status}": _answer(status, codes) for status, codes in told.items()}


def _answer(status: str, codes: list[str]) -> dict[str, Any]:
    said = "The server could not" if status == _FAILED else titled(int(status))
    headers = {"X-Request-Id": {"$ref": "#/components/headers/X-Request-Id"}}
    if status in ("429", _FAILED):
        headers["Retry-After"] = {"$ref": "#/components/headers/Retry-After"}
    if status == "401":
        headers["WWW-Authenticate"] = {"$ref": "#/components/headers/WWW-Authenticate"}
    return {
        "description": f"{said}: {', '.join(f'`{code}`' for code in codes)}.",
        "x-codes": codes,
        "headers": headers,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }


def problem_schema() -> dict[str, Any]:
    return {
        "description": "What went wrong (RFC 9457).",
        "type": "object",
        "required": ["type", "title", "status", "detail", "code", "request_id"],
        "properties": {
            "type": {"type": "string", "description": "`urn:muniment:error:` and the code."},
            "title": {"type": "string", "description": "The status in words."},
            "status": {"type": "integer", "minimum": 400, "maximum": 599},
            "detail": {"type": "string", "description": "What went wrong, in words."},
            "code": {
                "type": "string",
                "description": "Stable, the same in the library, the command line and here. There may be new ones.",
                "examples": ["not_found"],
            },
            "path": {"type": "string", "description": "Where in the request, as a JSONPath."},
            "hint": {"type": "string", "description": "What to do."},
            "details": {"type": "object", "description": "More, by code.", "additionalProperties": True},
            "request_id": _TEXT | {"description": "Names the request in the server's log."},
        },
        "examples": [
            {
                "type": "urn:muniment:error:not_found",
                "title": "Not Found",
                "status": 404,
                "detail": "no event 'evt_1' in this scope",
                "code": "not_found",
                "path": "$.event_id",
                "request_id": "req_1",
            }
        ],
    }
