"""A host's configuration file: read whole, edited, and written atomically.

The previous content is kept with a note of what was written, in a folder that only its owner can read. While the file
is unchanged, uninstalling restores the previous content byte for byte; if it was changed meanwhile, only our entries
are removed.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from muniment.errors import InvalidInput
from muniment.surfaces.hosts import json_text
from muniment.surfaces.hosts.hosts import Edit, is_our_hook, is_our_server

__all__ = [
    "Notes",
    "apply_edit",
    "holds",
    "parse_toml",
    "read_config",
    "stripped",
    "with_table",
    "without_table",
    "write_config",
]

_BYTES_MAX = 64 * 1024 * 1024


# -- files --------------------------------------------------------------------------------------------


def read_config(path: Path) -> str | None:
    """Read a file's text; None if it does not exist. Raises unless it is a file of UTF-8 text."""
    real = Path(os.path.realpath(path))
    try:
        about = real.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}", path="$") from None
    if not stat.S_ISREG(about.st_mode) or about.st_size > _BYTES_MAX:
        raise InvalidInput(f"{path} is no configuration file", hint="it should be a plain file")
    try:
        return real.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not text in UTF-8", hint="nothing was changed") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}", path="$") from None


def write_config(path: Path, before: str | None, after: str | None, new_mode: int) -> None:
    """Replace one text by another, or delete the file. Links and file modes are preserved."""
    if read_config(path) != before:
        raise InvalidInput(f"{path} was changed meanwhile", hint="nothing was written to it; run it again")
    real = Path(os.path.realpath(path))
    if after is None:
        real.unlink()
        return
    mode = stat.S_IMODE(real.stat().st_mode) if before is not None else new_mode
    write_whole(real, after.encode("utf-8"), mode)


def write_whole(path: Path, data: bytes, mode: int) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, mode)
        os.replace(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


# -- edits --------------------------------------------------------------------------------------------


def _parsed(path: Path, text: str) -> Any:
    try:
        return parse_toml(text) if path.suffix == ".toml" else json_text.parse(text).value
    except InvalidInput as error:
        raise _refused(path, error) from None


def _refused(path: Path, error: InvalidInput) -> InvalidInput:
    return InvalidInput(f"{path}: {error.message}", hint=error.hint or "nothing was changed; mend the file first")


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def holds(edit: Edit, text: str | None) -> bool:
    """True if a file has the entries of an edit, of any version."""
    if text is None:
        return False
    whole = _parsed(edit.path, text)
    server = not edit.server_at or is_our_server(_at(whole, edit.server_at))
    found = _at(whole, edit.hooks_at) if edit.hooks_at else None
    lists = [found.get(name) for name in edit.hooks or ()] if isinstance(found, dict) else []
    hooks = edit.hooks is None or any(is_our_hook(each) for each_list in lists for each in each_list or ())
    return server and hooks


def apply_edit(edit: Edit, text: str | None) -> str:
    """Apply an edit to a text that has nothing of ours yet."""
    made = text or ""
    try:
        whole = _parsed(edit.path, made)
        _check(edit, whole)
        if edit.path.suffix == ".toml":
            return with_table(made, edit.server_at, edit.server or {})
        for name, value in edit.needs:
            if name not in whole:
                made = json_text.with_member(made, (name,), value)
        for event, entry in (edit.hooks or {}).items():
            made = json_text.with_element(made, (*edit.hooks_at, event), dict(entry))
        if edit.server is not None:
            made = json_text.with_member(made, edit.server_at, dict(edit.server))
    except InvalidInput as error:
        if str(edit.path) in error.message:
            raise
        raise _refused(edit.path, error) from None
    return made


def _check(edit: Edit, whole: Any) -> None:
    """Raise if the file has another shape than its host reads: it is not ours to change."""
    if not isinstance(whole, dict):
        raise InvalidInput("an object is expected", path="$")
    for path in filter(None, (edit.server_at[:-1], edit.hooks_at)):
        held = _at(whole, path)
        if held is not None and not isinstance(held, dict):
            raise InvalidInput(f"an object is expected at {'.'.join(path)}", path="$")
    for event, entries in (_at(whole, edit.hooks_at) or {}).items() if edit.hooks_at else ():
        if event in (edit.hooks or {}) and not isinstance(entries, list):
            raise InvalidInput(f"a list is expected at {'.'.join(edit.hooks_at)}.{event}", path="$")
    if edit.server_at and _at(whole, edit.server_at) is not None:
        raise InvalidInput(
            f"it has a server named {edit.server_at[-1]} that is not ours", hint="give that one another name first"
        )


def stripped(edit: Edit, text: str, before: str | None) -> str | None:
    """Remove our entries from a text. `before` is the text from before they were added: what it held stays, even if
    empty; None if there was no file, and then none is left unless other content was added.
    """
    whole = _parsed(edit.path, text)
    was = _parsed(edit.path, before) if before is not None else {}
    if edit.path.suffix == ".toml":
        made = without_table(text, edit.server_at) if is_our_server(_at(whole, edit.server_at)) else text
        return made if before is not None or made.strip() else None
    made = text
    if edit.server_at and is_our_server(_at(whole, edit.server_at)):
        made = json_text.without_member(made, edit.server_at)
        made = _pruned(made, edit.server_at[:-1], was)
    for event in edit.hooks or ():
        shorter = json_text.without_elements(made, (*edit.hooks_at, event), is_our_hook)
        made = _pruned(shorter, (*edit.hooks_at, event), was) if shorter != made else made
    if edit.hooks_at and made != text:
        made = _pruned(made, edit.hooks_at, was)
    left = json_text.parse(made).value
    made_by_us = all(name in dict(edit.needs) for name in left)
    return None if before is None and made_by_us and made != text else made


def _pruned(text: str, path: tuple[str, ...], was: Any) -> str:
    """Remove a list or object that is now empty and did not exist before."""
    held = _at(json_text.parse(text).value, path)
    return json_text.without_member(text, path) if held in ([], {}) and _at(was, path) is None else text


# -- previous content ---------------------------------------------------------------------------------


class Notes:
    """The written and previous content of files: one note for each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _place(self, path: Path) -> Path:
        return self.folder / sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()[:16]

    def backup(self, path: Path) -> Path:
        return self._place(path).with_suffix(".before")

    def read(self, path: Path) -> dict[str, Any] | None:
        try:
            said = json.loads(self._place(path).with_suffix(".json").read_bytes())
        except (OSError, ValueError):
            return None
        return said if isinstance(said, dict) and said.get("path") == str(path) else None

    def before(self, path: Path) -> str | None:
        """The previous content; None if there was no file."""
        note = self.read(path)
        if note is None or note.get("created"):
            return None
        try:
            text = self.backup(path).read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError):
            return None
        return text if _digest(text) == note.get("before") else None

    def is_as_written(self, path: Path, text: str) -> bool:
        note = self.read(path)
        intact = note is not None and (note.get("created") or self.before(path) is not None)
        return bool(intact and note is not None and note.get("after") == _digest(text))

    def write(self, path: Path, before: str | None, after: str, folders: list[str]) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        note = {"path": str(path), "created": before is None, "after": _digest(after), "folders": folders}
        if before is not None:
            note["before"] = _digest(before)
            write_whole(self.backup(path), before.encode("utf-8"), 0o600)
        write_whole(self._place(path).with_suffix(".json"), json.dumps(note).encode(), 0o600)

    def drop(self, path: Path) -> None:
        for each in (self._place(path).with_suffix(".json"), self.backup(path)):
            each.unlink(missing_ok=True)


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8")).hexdigest()


# -- TOML ---------------------------------------------------------------------------------------------
# A table is appended, and taken out again; no other byte changes. The result is parsed and compared with what it
# should be; if they differ, nothing is changed.

_HEADER = re.compile(r"[ \t]*\[{1,2}([^\[\]\n]*)\]")
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")


def parse_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInput(f"it is not TOML: {error}", path="$") from None


def with_table(text: str, path: Sequence[str], table: Mapping[str, Any]) -> str:
    """Append a table to the text. Raises if the path is no table and cannot become one there."""
    before = parse_toml(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text.strip() else newline if text.endswith("\n") else newline * 2
    made = text + gap + newline.join(_toml_lines(path, table)) + newline
    try:
        after = tomllib.loads(made)
    except tomllib.TOMLDecodeError:
        after = {}
    wanted: dict[str, Any] = before
    for name in path[:-1]:
        below = wanted.setdefault(name, {})
        if not isinstance(below, dict):
            raise InvalidInput("a table is expected there", path=f"$.{name}")
        wanted = below
    if path[-1] in wanted:
        raise InvalidInput("something stands there already", path="$." + ".".join(path))
    wanted[path[-1]] = dict(table)
    if after != before:
        where = ".".join(path[:-1])
        raise InvalidInput(f"[{where}] is written as a value in braces", hint=f"write it as tables: [{where}.NAME]")
    return made


def _toml_lines(path: Sequence[str], table: Mapping[str, Any]) -> list[str]:
    plain = {name: value for name, value in table.items() if not isinstance(value, Mapping)}
    lines = [
        f"[{'.'.join(map(_toml_key, path))}]",
        *(f"{_toml_key(name)} = {_toml_value(value)}" for name, value in plain.items()),
    ]
    for name, value in table.items():
        if isinstance(value, Mapping):
            lines += ["", *_toml_lines([*path, name], value)]
    return lines


def _toml_key(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else _toml_value(name)


def _toml_value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return "true" if value is True else "false" if value is False else str(value)


def without_table(text: str, path: Sequence[str]) -> str:
    """Remove a table and those below it; unchanged if there is none."""
    before = parse_toml(text)
    holder: Any = before
    for name in path[:-1]:
        holder = holder.get(name) if isinstance(holder, dict) else None
    if not isinstance(holder, dict) or path[-1] not in holder:
        return text
    del holder[path[-1]]
    lines = text.splitlines(keepends=True)
    kept: list[str] = []
    is_inside = False
    for line in lines:
        header = _HEADER.match(line)
        if header:
            names = _names(header.group(1))
            is_inside = names[: len(path)] == list(path)
            if is_inside and kept and not kept[-1].strip():
                kept.pop()
        if not is_inside:
            kept.append(line)
    made = "".join(kept)
    if _tidy(parse_toml(made)) != _tidy(before):
        raise InvalidInput(f"[{'.'.join(path)}] cannot be told from what stands around it", hint="take it out by hand")
    return made


def _names(header: str) -> list[str]:
    """The names of a header, with or without quotes."""
    try:
        found: Any = tomllib.loads(f"[{header}]")
    except tomllib.TOMLDecodeError:
        return []
    names = []
    while isinstance(found, dict) and found:
        name, found = next(iter(found.items()))
        names.append(name)
    return names


def _tidy(value: Any) -> Any:
    """Remove empty tables, which exist as long as something below them does."""
    if not isinstance(value, dict):
        return value
    inner = {name: _tidy(each) for name, each in value.items()}
    return {name: each for name, each in inner.items() if each != {}}
