"""The OTLP receiver: `POST /v1/traces`, `/v1/logs` and `/v1/metrics`, the addresses used by exporters.

The operation `ingest_otel` of a tenant or of a user reads the data; this module chooses which, decodes the OTLP body
(protobuf or JSON, compressed or not), and answers in OTLP's form. The data alone never decides the owner: the key
decides the tenant, and a key for one user writes for that user.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from muniment.core.canonical import canonical_bytes, parse_json
from muniment.core.scope import DEFAULT_TENANT
from muniment.errors import Forbidden, InvalidInput, TooLarge, UnsupportedMedia, WrongMethod
from muniment.surfaces.http._guard import Caller, Guard
from muniment.surfaces.http.settings import ServerSettings

__all__ = ["OtlpSignal", "accepted", "address_of", "arguments_of", "is_address", "read_body", "refused", "signal_of"]

OtlpSignal = Literal["traces", "logs", "metrics"]
_SIGNALS: Mapping[str, OtlpSignal] = {"traces": "traces", "logs": "logs", "metrics": "metrics"}
_PROTOBUF = "application/x-protobuf"
_JSON = "application/json"
_CODINGS = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
_REJECTED = {
    "traces": ("rejected_spans", "rejectedSpans"),
    "logs": ("rejected_logs", "rejectedLogRecords"),
    "metrics": ("", "rejectedDataPoints"),
}
_WHY = {
    "no_user": "nobody says whose they are: name the user in the header muniment-user or in the attribute user.id",
    "another_user": "they name another user than the one that the key or the header is for",
    "no_such_user": "they name a user that can be none",
    "no_trace": "they belong to no trace and no conversation",
    "refused": "they hold what the ledger does not take",
}
_RPC_CODES = {400: 3, 401: 16, 403: 7, 404: 5, 409: 10, 413: 8, 415: 3, 429: 8, 503: 14, 504: 4}


class _Kept(NamedTuple):
    """The response to an exporter."""

    rejected: int = 0
    message: str = ""


def signal_of(method: str, segments: tuple[str, ...]) -> OtlpSignal | None:
    """The signal of this address; None if it is not an OTLP address."""
    signal = _SIGNALS.get(segments[1]) if len(segments) == 2 and segments[0] == "v1" else None
    if signal is not None and method != "POST":
        raise WrongMethod(f"{method:.20} is not taken there", details={"allowed": ["POST"]})
    return signal


def is_address(path: str) -> bool:
    """True if exporters use this path, and expect OTLP responses."""
    return path.removeprefix("/v1/") in _SIGNALS


def address_of(request: Request, caller: Caller) -> tuple[str, ...]:
    """The address of the operation that takes the data: of the user that the key or a header names, else of the
    tenant.
    """
    tenant, user = request.headers.get("muniment-tenant", ""), request.headers.get("muniment-user", "")
    if caller.tenant not in ("*", tenant) and tenant:
        raise Forbidden("the key is for another tenant", path="$.headers.muniment-tenant")
    if caller.user is not None and user not in ("", caller.user):
        raise Forbidden("the key is for another user", path="$.headers.muniment-user")
    tenant = tenant or (DEFAULT_TENANT if caller.tenant == "*" else caller.tenant)
    user = caller.user or user
    return ("v1", "tenants", tenant, *(("users", user) if user else ()), "traces")


def arguments_of(data: bytes, signal: OtlpSignal, address: tuple[str, ...], settings: ServerSettings) -> dict[str, Any]:
    """The operation's arguments; the attributes in the settings identify a span's user."""
    names = [name.strip() for name in settings.trace_user_attributes.split(",") if name.strip()]
    default = settings.trace_user if "users" not in address else ""
    return {"data": data, "signal": signal, "user_attributes": names, "default_user_id": default or None}


async def read_body(request: Request, guard: Guard, bytes_max: int) -> bytes:
    """Read and decompress the body; neither size may exceed the limit."""
    if _kind(request) not in (_PROTOBUF, _JSON):
        raise UnsupportedMedia(f"OTLP is sent as {_PROTOBUF} or {_JSON}")
    coding = request.headers.get("content-encoding", "identity").strip().lower() or "identity"
    if coding != "identity" and coding not in _CODINGS:
        raise UnsupportedMedia(f"a body is sent as it is, or as {' or '.join(_CODINGS)}")
    body = await guard.read_body(request, may_be_encoded=True)
    return body if coding == "identity" else await asyncio.to_thread(_unpacked, body, _CODINGS[coding], bytes_max)


def _unpacked(body: bytes, window_bits: int, bytes_max: int) -> bytes:
    unpacking = zlib.decompressobj(window_bits)
    try:
        data = unpacking.decompress(body, bytes_max + 1)
    except zlib.error:
        raise InvalidInput("the body is not packed as it says", path="$") from None
    if len(data) > bytes_max:
        raise TooLarge(f"unpacked, a body over the limit of {bytes_max} bytes", details={"bytes_max": bytes_max})
    if not unpacking.eof:
        raise InvalidInput("the packed body ends too early", path="$")
    return data


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


# -- answers --------------------------------------------------------------------------------------------------


def accepted(request: Request, signal: OtlpSignal, report: bytes | None, headers: Mapping[str, str]) -> Response:
    """The response for accepted data; a partial success if some was rejected."""
    kept = _Kept(0, "metrics are not kept here") if report is None else _kept(signal, parse_json(report))
    name = _REJECTED[signal][1]
    if _kind(request) == _JSON:
        told = {name: str(kept.rejected), "errorMessage": kept.message} if kept.message else None
        body = canonical_bytes({} if told is None else {"partialSuccess": told})
        return Response(body, 200, dict(headers), _JSON)
    told_bytes = (_varint(1, kept.rejected) if kept.rejected else b"") + _text(2, kept.message)
    return Response(_field(1, told_bytes) if kept.message else b"", 200, dict(headers), _PROTOBUF)


def _kept(signal: OtlpSignal, report: Mapping[str, Any]) -> _Kept:
    rejected = int(report[_REJECTED[signal][0]])
    why = [words for name, words in _WHY.items() if report["left_out"].get(name)]
    return _Kept(rejected, f"{rejected} were not kept: {'; '.join(why)}") if rejected else _Kept()


def refused(request: Request, response: Response) -> Response:
    """A refusal in OTLP's form: the same status and headers, with the error as a `google.rpc.Status`."""
    problem = parse_json(bytes(response.body))
    said = problem.get("message") or problem.get("detail") or problem.get("title") or ""
    words = [str(problem.get("code", "")), str(said), str(problem.get("path") or ""), str(problem.get("hint") or "")]
    message = " | ".join(word for word in words if word)
    status = 400 if response.status_code == 422 else response.status_code  # OTLP's status for malformed data
    code = _RPC_CODES.get(status, 13 if status >= 500 else 3)
    headers = {
        name: value for name, value in response.headers.items() if name not in ("content-length", "content-type")
    }
    if _kind(request) == _PROTOBUF:
        body = _varint(1, code) + _text(2, message)
        return Response(body, status, headers, _PROTOBUF)
    details = [{"@type": "type.googleapis.com/google.protobuf.Struct", "value": problem}]
    body = canonical_bytes({"code": code, "message": message, "details": details})
    return Response(body, status, headers, _JSON)


def _text(number: int, text: str) -> bytes:
    return _field(number, text.encode()) if text else b""


def _field(number: int, data: bytes) -> bytes:
    return _number(number << 3 | 2) + _number(len(data)) + data


def _varint(number: int, value: int) -> bytes:
    return _number(number << 3) + _number(value)


def _number(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
