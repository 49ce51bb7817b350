"""Structured logs with the standard library alone: one JSON object a line. They hold no content: no bodies, queries or
user names, but the template of the address, the key's id, and the result.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.requests import Request

    from muniment.surfaces.http._guard import Admitted

__all__ = ["LOGGER", "JsonFormatter", "configure_logs", "level_of", "line_of", "log_request"]

LOGGER = logging.getLogger("muniment.http")
_written = json.JSONEncoder(ensure_ascii=False, default=str).encode


class JsonFormatter(logging.Formatter):
    """Formats a log record as one JSON object, including `extra={"said": {…}}`."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "said", {}),
        }
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return _written(fields)


def configure_logs(level: str = "INFO") -> None:
    """Send the logs of the server, of uvicorn and of PostgreSQL connections to stderr as JSON lines."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    for name in ("muniment", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler] if name != "uvicorn.error" else []
        logger.setLevel(level)
        logger.propagate = name == "uvicorn.error"
    connections = logging.getLogger("psycopg.pool")  # its own lines contain line breaks
    connections.handlers, connections.propagate = [handler], False
    connections.setLevel(logging.WARNING)
    access = logging.getLogger("uvicorn.access")
    access.handlers, access.propagate = [], False  # it would log queries


def log_request(request: Request, admitted: Admitted, code: str | None, seconds: float) -> None:
    """Log a finished request."""
    LOGGER.log(level_of(admitted), "request", extra={"said": line_of(request, admitted, code, seconds)})


def level_of(admitted: Admitted) -> int:
    is_bad = admitted.status >= 500 or admitted.log.get("end", "whole") != "whole"
    return logging.WARNING if is_bad else logging.INFO


def line_of(request: Request, admitted: Admitted, code: str | None, seconds: float) -> dict[str, Any]:
    """The fields of a request's line: no content, no query, no user name."""
    return {
        "request_id": admitted.request_id,
        "method": request.method,
        "route": admitted.route,
        "status": admitted.status,
        "key_id": admitted.caller.key_id if admitted.caller else "-",
        "ms": round(seconds * 1000, 2),
        **admitted.log,
    } | ({} if code is None else {"code": code})
