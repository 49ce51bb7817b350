"""Requests to an S3 server, signed by AWS Signature Version 4 with the standard library alone. Asks nobody anything."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from hmac import digest as hmac_digest
from typing import NamedTuple
from urllib.parse import quote

from muniment.errors import ObjectsRefused

__all__ = ["Credentials", "credentials_in", "encoded", "query_of", "signed"]

_KEY_ID, _SECRET, _TOKEN = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"


class Credentials(NamedTuple):
    key_id: str
    secret: str
    token: str | None = None

    def __repr__(self) -> str:
        return "Credentials(…)"


def credentials_in(environ: Mapping[str, str] | None = None) -> Credentials:
    """Those of the environment, as they are now: whoever rotates them need not open the store again."""
    env = os.environ if environ is None else environ
    key_id, secret = env.get(_KEY_ID, ""), env.get(_SECRET, "")
    if not key_id or not secret:
        raise ObjectsRefused(
            "no credentials for the object store",
            path="$.objects",
            hint=f"set {_KEY_ID} and {_SECRET} in the environment ({_TOKEN} where there is one)",
        )
    return Credentials(key_id, secret, env.get(_TOKEN) or None)


def encoded(text: str, safe: str = "") -> str:
    """As the signature wants it: everything but unreserved characters, in upper-case hex."""
    return quote(text, safe=f"-_.~{safe}")


def query_of(asked: Mapping[str, str]) -> str:
    """In the order of the encoded names, which is not that of the names themselves."""
    pairs = sorted((encoded(name), encoded(value)) for name, value in asked.items())
    return "&".join(f"{name}={value}" for name, value in pairs)


def signed(
    method: str,
    host: str,
    path: str,
    query: str,
    headers: Mapping[str, str],
    body: bytes,
    given: Credentials,
    region: str,
    now: datetime,
) -> dict[str, str]:
    """The headers with which the request is sent; `path` and `query` are encoded already, `now` is in UTC."""
    stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    digest = sha256(body).hexdigest()
    sent = {**headers, "x-amz-date": stamp, "x-amz-content-sha256": digest}
    if given.token is not None:
        sent["x-amz-security-token"] = given.token
    named = {"host": host} | {name.lower(): " ".join(value.split()) for name, value in sent.items()}
    names = ";".join(sorted(named))
    lines = "".join(f"{name}:{named[name]}\n" for name in sorted(named))
    request = "\n".join((method, path, query, lines, names, digest))
    scope = f"{day}/{region}/s3/aws4_request"
    text = "\n".join(("AWS4-HMAC-SHA256", stamp, scope, sha256(request.encode()).hexdigest()))
    key = f"AWS4{given.secret}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac_digest(key, part.encode(), sha256)
    signature = hmac_digest(key, text.encode(), sha256).hex()
    said = f"AWS4-HMAC-SHA256 Credential={given.key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**sent, "Authorization": said}
