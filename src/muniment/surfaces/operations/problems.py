"""The one shape of an error over HTTP: RFC 9457 `application/problem+json`, with our own code, path and hint."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from muniment import errors
from muniment.errors import MunimentError

__all__ = ["MEDIA_TYPE", "error_of", "problem_of", "titled"]

MEDIA_TYPE = "application/problem+json"
_URN = "urn:muniment:error:"
_TITLES = {413: "Content Too Large", 422: "Unprocessable Content", 499: "Client Closed Request"}
"""RFC 9110's titles, in Python since 3.13; 499 is nginx's, for a caller that disconnected."""

_CLASSES: dict[str, type[MunimentError]] = {
    each.code: each
    for name in errors.__all__
    if isinstance(each := getattr(errors, name), type) and issubclass(each, MunimentError)
}


def problem_of(error: MunimentError, request_id: str, status: int | None = None) -> dict[str, Any]:
    """The problem sent for an error; `status` if the request changes it from the error's own."""
    shape = error.to_dict()
    sent = error.status if status is None else status
    return {
        "type": f"{_URN}{shape.pop('code')}",
        "title": titled(sent),
        "status": sent,
        "detail": shape.pop("message"),
        "code": error.code,
        **shape,
        "request_id": request_id,
    }


def titled(status: int) -> str:
    return _TITLES.get(status) or HTTPStatus(status).phrase


def _are_issues(told: Any) -> bool:
    """True for a list of issues in this library's form."""
    wanted = set(errors.Issue._fields)
    return isinstance(told, list) and all(
        isinstance(each, dict) and each.keys() == wanted and all(isinstance(said, str) for said in each.values())
        for each in told
    )


def error_of(problem: dict[str, Any]) -> MunimentError:
    """The typed error for a problem; the root of the tree if the code is unknown here."""
    cls = _CLASSES.get(str(problem.get("code")), MunimentError)
    error = cls.__new__(cls)  # an InvalidRecord is made of issues; they are in its details
    details = dict(problem.get("details") or {})
    if cls is MunimentError:
        details.setdefault("code", problem.get("code"))
    if cls is errors.InvalidRecord and not _are_issues(details.get("issues", [])):
        del details["issues"]
    message = str(problem.get("detail") or "the server failed")
    MunimentError.__init__(error, message, path=problem.get("path"), hint=problem.get("hint"), details=details)
    return error
