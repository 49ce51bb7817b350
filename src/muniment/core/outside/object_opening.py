"""Which object store an address names: `file:folder`, or `s3://bucket/prefix` with its options.

    endpoint=https://…    a server of your own; without one, AWS
    region=eu-central-1   else AWS_REGION, AWS_DEFAULT_REGION, us-east-1
    timeout_s=20          how long one attempt may take
    attempts=3            how often what may pass is tried

Nothing is contacted before something is read or written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from muniment.core.outside.object_folder import FolderObjects
from muniment.core.ports.objects import ObjectStore
from muniment.errors import InvalidInput

__all__ = ["open_objects"]

_HINT = "give file:folder, file:///whole/folder or s3://bucket/prefix?endpoint=https://host"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_REGION = re.compile(r"[a-z0-9-]{1,40}")
_OPTIONS = ("endpoint", "region", "timeout_s", "attempts")


def open_objects(given: Any, environ: Mapping[str, str] | None = None) -> ObjectStore | None:
    """The object store of an address, or one that was made by the caller; None where there is none."""
    if given is None or given == "none":
        return None
    if not isinstance(given, str):
        lacks = [need for need in ("location", "put", "get", "remove", "listed") if not hasattr(given, need)]
        if lacks:
            raise InvalidInput(f"objects lacks {', '.join(lacks)}", path="$.objects", hint=_HINT)
        made: ObjectStore = given
        return made
    try:
        parts = urlsplit(given)
        host, has_user = parts.netloc, parts.username is not None or parts.password is not None
    except ValueError:
        raise _wrong("that is no address") from None
    if has_user:
        raise _wrong("an address of objects carries no password: credentials are in the environment")
    if parts.scheme == "file" and not host and not parts.query and not parts.fragment:
        return FolderObjects(unquote(parts.path))
    if parts.scheme == "file" and host and not parts.query and not parts.fragment:
        raise _wrong("what follows file:// is the name of a machine, and objects lie on this one")
    if parts.scheme == "s3" and not parts.fragment:
        return _s3(host, unquote(parts.path), parts.query, os.environ if environ is None else environ)
    raise _wrong("objects lie in a folder or in a bucket")


def _s3(bucket: str, path: str, query: str, env: Mapping[str, str]) -> ObjectStore:
    from muniment.core.outside.object_s3 import S3Objects
    from muniment.core.outside.s3_server import Place, S3Server
    from muniment.core.outside.s3_signing import credentials_in

    if not _BUCKET.fullmatch(bucket):
        raise _wrong("that is no name of a bucket")
    options = dict(parse_qsl(query, keep_blank_values=True))
    unknown = sorted(options.keys() - set(_OPTIONS))
    if unknown:
        raise _wrong(f"no option {unknown[0]!r:.40}; known are {', '.join(_OPTIONS)}")
    region = options.get("region") or env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION") or "us-east-1"
    if not _REGION.fullmatch(region):
        raise _wrong("that is no name of a region")
    prefix = path.strip("/")
    place = Place(
        bucket,
        f"{prefix}/" if prefix else "",
        _endpoint(options.get("endpoint")),
        region,
        _number(options, "timeout_s", 20.0, 0.1, 600.0),
        int(_number(options, "attempts", 3, 1, 10)),
    )
    return S3Objects(S3Server(place, lambda: credentials_in(env)))


def _endpoint(given: str | None) -> str | None:
    if given is None:
        return None
    try:
        parts = urlsplit(given)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound or parts.username or parts.query or parts.fragment:
        raise _wrong("endpoint should be an http or https address without password and query")
    return given.rstrip("/")


def _number(options: Mapping[str, str], name: str, usual: float, least: float, most: float) -> float:
    try:
        number = float(options.get(name, usual))
    except ValueError:
        number = -1.0
    if not least <= number <= most or (name == "attempts" and number != int(number)):
        raise _wrong(f"{name} is a number from {least:g} to {most:g}")
    return number


def _wrong(why: str) -> InvalidInput:
    return InvalidInput(why, path="$.objects", hint=_HINT)
