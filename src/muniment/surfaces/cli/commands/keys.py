"""`store keys …`: make, list, rotate and revoke the API keys of a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from muniment.errors import InvalidInput
from muniment.surfaces.cli.calling import Call, Command
from muniment.surfaces.cli.parameters import Word
from muniment.surfaces.cli.terminal import echo, table

if TYPE_CHECKING:
    from muniment.surfaces.http._keys import KeyRing

__all__ = ["create", "list_", "revoke", "rotate"]

_MANY = click.IntRange(1)
_File = Annotated[str | None, Word("The file of keys (default: muniment.keys.json), or `store`.", "keys", "FILE")]
_KEY = {"key_id": "KEY_ID"}


@contextmanager
def _opened(call: Call, file: str | None) -> Iterator[KeyRing]:
    """The keys that the settings name; the store is opened where they lie in it."""
    from muniment.core.outside.system import system_clock
    from muniment.surfaces.http._keys import KeyFile, are_stored, open_keys
    from muniment.surfaces.http.settings import load_server_settings
    from muniment.surfaces.settings import open_store

    named = load_server_settings({"keys": file}).keys
    if not are_stored(named, is_shared=call.settings.db.startswith(("postgresql://", "postgres://"))):
        yield KeyFile(named, system_clock)
        return
    with open_store(call.settings) as memory:
        yield open_keys(named, memory._ctx.engine, system_clock)


def _create(
    call: Call,
    name: str,
    *,
    tenant: Annotated[str, Word("The tenant it is for; '*' for all.", metavar="ID")],
    user: Annotated[str | None, Word("The one user it is for.", metavar="ID")] = None,
    access: Annotated[
        Literal["read", "write", "admin"], Word("What it may do; each includes the one before.")
    ] = "write",
    expires: Annotated[str | None, Word("How long it holds, such as 90d or 12h.", metavar="TIME")] = None,
    rate: Annotated[int | None, Word("Requests a minute.", metavar="N", type=_MANY)] = None,
    body_max: Annotated[int | None, Word("The largest body it may send.", metavar="BYTES", type=_MANY)] = None,
    seconds_max: Annotated[
        int | None, Word("How long one of its requests may take.", metavar="SECONDS", type=_MANY)
    ] = None,
    file: _File = None,
) -> Any:
    from muniment.surfaces.http._keys import lifetime

    if tenant == "*" and user is not None:
        raise InvalidInput("a user is one of a tenant's", path="$.user", hint="name the tenant too")
    with _opened(call, file) as keys:
        return keys.create(
            name,
            tenant=tenant,
            user=user,
            access=access,
            lasts=None if expires is None else lifetime(expires, "$.expires"),
            requests_per_minute=rate,
            body_bytes_max=body_max,
            request_seconds_max=seconds_max,
        )


def _list(call: Call, *, file: _File = None) -> list[Any]:
    with _opened(call, file) as keys:
        return list(keys.list())


def _rotate(
    call: Call,
    key_id: str,
    *,
    overlap: Annotated[str, Word("How long the old token still holds.", metavar="TIME")] = "24h",
    file: _File = None,
) -> Any:
    from muniment.surfaces.http._keys import lifetime

    with _opened(call, file) as keys:
        return keys.rotate(key_id, lifetime(overlap, "$.overlap"))


def _revoke(call: Call, key_id: str, *, file: _File = None) -> Any:
    with _opened(call, file) as keys:
        return keys.revoke(key_id)


def _show_made(call: Call) -> Iterator[str]:
    yield call.answer.token
    echo(f"key {call.answer.key.key_id}: keep the token, it is not shown again", err=True)


def _made_document(call: Call) -> dict[str, Any]:
    return {"key": call.answer.key.public_fields(), "token": call.answer.token}


def _show_keys(call: Call) -> Iterator[str]:
    rows = [
        (key.key_id, key.tenant, key.user or "-", key.access, key.expires_at or "-", _standing(key), key.name)
        for key in call.answer
    ]
    return table(("key", "tenant", "user", "access", "expires", "standing", "name"), rows)


def _standing(key: Any) -> tuple[str, str]:
    return ("revoked", "red") if key.revoked_at is not None else ("holds", "green")


create = Command("", _show_made, function=_create, on="settings", document=_made_document)
list_ = Command(
    "", _show_keys, function=_list, on="settings", document=lambda call: (key.public_fields() for key in call.answer)
)
rotate = Command("", _show_made, function=_rotate, on="settings", arguments=_KEY, document=_made_document)
revoke = Command(
    "",
    lambda call: [f"the key {call.answer.key_id} ({call.answer.name}) holds no longer"],
    function=_revoke,
    on="settings",
    arguments=_KEY,
    document=lambda call: call.answer.public_fields(),
)
