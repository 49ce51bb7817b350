"""`store backup`, `store restore` and `store upgrade`: the store as files that can be put back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Annotated, NamedTuple

from muniment.errors import InvalidInput, SchemaMismatch
from muniment.store.engines.opening import file_named, open_engine
from muniment.surfaces.cli.calling import Call, Command
from muniment.surfaces.cli.commands.store import YES, agree
from muniment.surfaces.cli.parameters import Word
from muniment.surfaces.settings import open_store

__all__ = ["backup", "restore", "upgrade"]

_PG_DUMP = "use pg_dump and pg_restore: docs/guides/backup.md has the commands"


def _file(call: Call, verb: str) -> str:
    """The file of the store; an error where it has none."""
    path = file_named(call.settings.db)
    if path is None:
        raise InvalidInput(f"a store without a file of its own cannot be {verb} so", path="$.db", hint=_PG_DUMP)
    return path


# -- backup and restore -------------------------------------------------------------------------------


class _Copied(NamedTuple):
    file: str
    schema: int
    size_bytes: int


def _backup(call: Call, file: str) -> _Copied:
    from muniment.store.engines.sqlite.copying import copy_file

    number = copy_file(_file(call, "copied"), file)
    return _Copied(file, number, os.path.getsize(file))


backup = Command(
    view=lambda call: [f"{call.answer.file}: {call.answer.size_bytes} bytes, schema {call.answer.schema}"],
    function=_backup,
    on="settings",
    words={"file": Word(metavar="FILE")},
    about="A copy of a SQLite store as it is at one moment, while a server goes on with it. FILE is new, and appears "
    "under its name only when it is complete. The file of keys and the keys for proofs and seals lie elsewhere: keep "
    "them apart. For PostgreSQL, use pg_dump.",
)


class _Restored(NamedTuple):
    db: str
    schema: int
    kept: str | None


def _restore(call: Call, file: str) -> _Restored:
    from muniment.store.engines.sqlite.copying import replace_file, schema_number

    path, number = _file(call, "restored"), schema_number(file)
    if os.path.exists(path):
        agree(call, f"Put {file} in the place of {path}?")
    return _Restored(path, number, replace_file(file, path))


def _check_restore(call: Call) -> None:
    if call.as_json and not call.typed.get("yes"):
        raise InvalidInput("with --json nobody can be asked", path="$.yes", hint="add --yes to restore")


def _show_restored(call: Call) -> Iterator[str]:
    done: _Restored = call.answer
    yield f"{done.db} is the copy now, schema {done.schema}"
    if done.kept is not None:
        yield f"what stood there is kept as {done.kept}"


restore = Command(
    view=_show_restored,
    function=_restore,
    on="settings",
    words={"file": Word(metavar="FILE")},
    more=YES,
    check=_check_restore,
    about="Stop the server first: a store that is in use is not replaced. What stood there is kept beside it. What was "
    "forgotten after the copy was made is back: forget it again.",
)


# -- upgrade ------------------------------------------------------------------------------------------


class _Upgraded(NamedTuple):
    schema_before: int | None
    schema: int
    backup: str | None


def _upgrade(
    call: Call,
    *,
    backup: Annotated[str | None, Word("Where the copy goes (default: beside the store).", metavar="FILE")] = None,
    no_backup: Annotated[bool, Word("Make no copy.", flag=True)] = False,
) -> _Upgraded:
    if backup is not None and no_backup:
        raise InvalidInput("either a copy or none", path="$.backup", hint="give --backup or --no-backup")
    path = file_named(call.settings.db)
    before, copy = (None, None) if path is None else _before(path)
    if path is None and not _is_current(call.settings.db) and not no_backup:
        raise InvalidInput(
            "no copy of this store can be made from here", path="$.backup", hint=f"{_PG_DUMP}; then --no-backup"
        )
    if path is not None and copy is not None and not no_backup:
        from muniment.store.engines.sqlite.copying import copy_file

        copy = backup or copy
        copy_file(path, copy)
    else:
        copy = None
    with open_store(call.settings, must_exist=True) as memory:
        return _Upgraded(before, memory.info.schema_number, copy)


def _before(path: str) -> tuple[int, str | None]:
    """The schema number of a file, and what its copy is called where it is older than this muniment."""
    from muniment.store.engines.migrations import load
    from muniment.store.engines.sqlite.copying import schema_number

    number = schema_number(path)
    is_older = number < len(load("muniment.store.engines.sqlite"))
    return number, f"{path}.schema-{number}" if is_older else None


def _is_current(db: str) -> bool:
    try:
        open_engine(db, read_only=True).close()
    except SchemaMismatch as mismatch:
        if "number" in mismatch.details:  # newer, or altered: nothing that an upgrade mends
            raise
        return False
    return True


def _show_upgraded(call: Call) -> Iterator[str]:
    done: _Upgraded = call.answer
    if done.schema_before == done.schema:
        yield f"schema {done.schema} already: nothing to do"
        return
    yield f"schema {done.schema}" if done.schema_before is None else f"schema {done.schema_before} → {done.schema}"
    if done.backup is not None:
        yield f"the store as it was: {done.backup} (`muniment store restore` puts it back)"


upgrade = Command(
    view=_show_upgraded,
    function=_upgrade,
    on="settings",
    about="Opening a store brings it to the schema of this muniment too; this makes a copy of it before. An older "
    "muniment refuses a newer store: to go back, restore the copy. Of a PostgreSQL store take a pg_dump first, and say "
    "--no-backup.",
)
