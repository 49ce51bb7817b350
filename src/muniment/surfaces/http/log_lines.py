"""Every line that a server logs: its meaning, its fields, and the operator's response.

A test compares this with the calls in the source, and `docs/reference/logs.md` is made from it.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["COMMON", "ERROR", "LINES", "LogLine"]

COMMON = {
    "ts": "when, in UTC, to the millisecond",
    "level": "`debug`, `info`, `warning` or `error`",
    "logger": "`muniment.http`, `muniment.mcp`, `muniment.proxy`; `uvicorn.error` for what the web server itself says, "
    "`psycopg.pool` for connections to PostgreSQL that were not made",
    "message": "one of the messages below, word for word, or what the web server or the driver says",
}
"""The fields of every line."""
ERROR = ("code", "message", "hint", "path", "details")
"""The fields of an error of muniment's, if it has them."""


class LogLine(NamedTuple):
    message: str
    level: str
    means: str
    fields: tuple[str, ...] = ()
    logger: str = "muniment.http"


LINES: tuple[LogLine, ...] = (
    LogLine(
        "request",
        "info, warning from status 500 on",
        "A request was answered. `route` is the template of its address, `-` where it has none; `key_id` who asked, "
        "`-` without a key; `code` that of the error, where there was one. No query, no body, no name of a user.",
        ("request_id", "method", "route", "status", "key_id", "ms", "code"),
    ),
    LogLine(
        "defect",
        "error",
        "Something that nobody foresaw; whoever asked was told 500 and no more. Please report it: the traceback names "
        "places in the source. It can hold what was said, so read it before you pass it on.",
        ("request_id", "traceback"),
    ),
    LogLine(
        "defect",
        "error",
        "The same, of a tool that was called over MCP.",
        ("traceback",),
        "muniment.mcp",
    ),
    LogLine(
        "the store cannot be looked at",
        "warning",
        "The figures of the store for `/metrics` could not be taken; `muniment_store_up` is 0 until they can.",
        ERROR,
    ),
    LogLine("changes cannot be seen", "warning", "Streams of changes wait for the store to answer again.", ERROR),
    LogLine("a stream cannot go on", "warning", "A stream was ended; its client comes back by itself.", ERROR),
    LogLine(
        "a stream was broken off: what it was sent was not taken",
        "info",
        "A client was gone, or did not read.",
    ),
    LogLine("the certificate was read again", "info", "After SIGHUP: new connections are shown the new one."),
    LogLine(
        "the certificate was not read again",
        "error",
        "After SIGHUP: the file is missing, or no certificate of this key. The old one is still shown. `reason` is the "
        "kind of error.",
        ("reason",),
    ),
    LogLine("told to read again: there is no certificate", "info", "SIGHUP came, and the server speaks no TLS."),
    LogLine(
        "signals are not heard here: the certificate is read once",
        "debug",
        "The server was started by another program, beside its main thread.",
    ),
    LogLine("worker started", "info", "One of the processes of a server began.", ("worker", "pid")),
    LogLine("worker stopped", "info", "One of them ended because it was told to.", ("worker", "pid", "code")),
    LogLine(
        "worker ended",
        "error",
        "One of them ended by itself, or was killed. It is started again; the others answer meanwhile.",
        ("worker", "pid", "code", "starts_again_in_s"),
    ),
    LogLine(
        "a worker ended at once", "error", "One of them ended before it was told what to serve.", ("worker", "pid")
    ),
    LogLine(
        "the workers cannot start",
        "error",
        "None of them got as far as serving; a line before it says why. The server ends.",
        ("code",),
    ),
    LogLine(
        "request",
        "info, warning from status 500 on",
        "A request passed through `muniment proxy`. `route` is the API by which a model was asked, or `passed`; `end` "
        "is `whole`, or says who was lost on the way; `code` that of the error, where it was refused. No content.",
        ("request_id", "method", "route", "status", "key_id", "end", "code", "ms"),
        "muniment.proxy",
    ),
    LogLine(
        "defect",
        "error",
        "An answer passed and its record failed for a reason that nobody foresaw. Please report it.",
        ("traceback",),
        "muniment.proxy",
    ),
    LogLine(
        "an answer was not recorded",
        "warning",
        "An answer passed through `muniment proxy` and could not be read beside: `reason` says why. The caller's next "
        "list brings it again.",
        ("reason",),
        "muniment.proxy",
    ),
    LogLine("a worker cannot serve", "error", "The store could not be opened, or a setting is wrong.", ERROR),
)
