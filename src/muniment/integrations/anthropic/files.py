"""The commands of the memory tool: view, create, str_replace, insert, delete, rename, on paths below `/memories`.

A directory exists as long as it contains a file. A refused command raises an `InvalidInput` whose message is for the
model. A delete retracts: the file is neither shown nor found, and its revisions stay; `erase=True` erases them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from threading import RLock
from typing import TYPE_CHECKING, Any

from muniment.core.scope import DEFAULT_TENANT
from muniment.core.text.sentences import lines_at
from muniment.errors import InvalidInput
from muniment.integrations.keyed_documents import KeyedDocuments

if TYPE_CHECKING:
    from muniment.handles.memory import Memory

__all__ = ["MemoryFiles"]

ROOT = "/memories"
_LINES_MAX = 999_999
_NUMBER_WIDTH = 6
_DEPTH_MAX = 2
_AROUND = 2
"""Lines shown before and after a change."""
_SIZES = ("B", "K", "M", "G")


class MemoryFiles:
    """The files of one user. Edits through one handle are serialised."""

    def __init__(
        self,
        mem: Memory,
        *,
        user_id: str,
        name: str = "memory-tool",
        erase: bool = False,
        tenant_id: str = DEFAULT_TENANT,
    ) -> None:
        self._documents_of = KeyedDocuments(mem, name, user_id=user_id, tenant_id=tenant_id)
        self._erase = erase
        self._lock = RLock()

    def run(self, command: Mapping[str, Any]) -> str:
        """Run a command as the model gives it: `{"command": "view", "path": "/memories"}`."""
        given = {key: value for key, value in command.items() if key != "command"}
        commands: dict[Any, Callable[..., str]] = {
            "view": self.view,
            "create": self.create,
            "str_replace": self.str_replace,
            "insert": self.insert,
            "delete": self.delete,
            "rename": self.rename,
        }
        name = command.get("command")
        if name not in commands:
            raise InvalidInput(f"Unknown command: {name}", path="$.command", hint=f"one of {', '.join(commands)}")
        try:
            asked = signature(commands[name]).bind(**given)
        except TypeError as error:
            raise InvalidInput(f"The command {name} cannot be run: {error}", path="$") from None
        return commands[name](*asked.args, **asked.kwargs)

    def view(self, path: str, view_range: Sequence[int] | None = None) -> str:
        place = _place(path)
        text = self._text(place)
        if text is not None:
            return f"Here's the content of {path} with line numbers:\n" + _numbered(text, view_range)
        below = self._below(place)
        if not below and place != ROOT:
            raise InvalidInput(f"The path {path} does not exist. Please provide a valid path.", path="$.path")
        header = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
        lines = [f"{_size(sum(below.values()))}\t{path}", *(f"{size}\t{path}/{name}" for size, name in _listing(below))]
        return f"{header}\n" + "\n".join(lines)

    def create(self, path: str, file_text: str) -> str:
        place = _place(path)
        with self._lock:
            if place == ROOT or self._text(place) is not None or self._below(place):
                raise InvalidInput(f"File {path} already exists", path="$.path")
            self._check_above(place)
            self._write(place, file_text)
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old_str: str, new_str: str = "") -> str:
        place = _place(path)
        with self._lock:
            text = self._file(place, path)
            found = _places_of(text, str(old_str))
            if not found:
                raise InvalidInput(
                    f"No replacement was performed, old_str `{old_str}` did not appear verbatim in {path}.",
                    path="$.old_str",
                )
            if len(found) > 1:
                lines = ", ".join(map(str, lines_at(text, found)))
                raise InvalidInput(
                    f"No replacement was performed. Multiple occurrences of old_str `{old_str}` in lines: {lines}. "
                    "Please ensure it is unique",
                    path="$.old_str",
                )
            changed = text[: found[0]] + str(new_str) + text[found[0] + len(old_str) :]
            self._write(place, changed)
        at = text.count("\n", 0, found[0])
        shown = changed.split("\n")[max(0, at - _AROUND) : at + _AROUND + 1]
        return (
            "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
            + "\n".join(_line(number, line) for number, line in enumerate(shown, max(0, at - _AROUND) + 1))
        )

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        place = _place(path)
        with self._lock:
            lines = self._file(place, path).split("\n")
            if lines[-1] == "":
                lines.pop()
            if type(insert_line) is not int or not 0 <= insert_line <= len(lines):
                raise InvalidInput(
                    f"Invalid `insert_line` parameter: {insert_line}. It should be within the range [0, {len(lines)}].",
                    path="$.insert_line",
                )
            lines.insert(insert_line, str(insert_text).rstrip("\n"))
            text = "\n".join(lines)
            self._write(place, text if text.endswith("\n") else text + "\n")
        return f"The file {path} has been edited."

    def delete(self, path: str) -> str:
        place = _place(path)
        if place == ROOT:
            raise InvalidInput("Cannot delete the /memories directory itself", path="$.path")
        with self._lock:
            for each in self._all_at(place, path):
                self._documents_of.take(each, erase=self._erase)
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        """Move a file, or a directory with everything below it. New names are written before old ones are removed."""
        old, new = _place(old_path), _place(new_path)
        if old == ROOT:
            raise InvalidInput("Cannot rename the /memories directory itself", path="$.old_path")
        with self._lock:
            if new == ROOT or self._text(new) is not None or self._below(new):
                raise InvalidInput(f"The destination {new_path} already exists", path="$.new_path")
            moved = self._all_at(old, old_path)
            if f"{new}/".startswith(f"{old}/"):
                raise InvalidInput(f"Cannot move {old_path} into itself", path="$.new_path")
            self._check_above(new)
            for each in moved:
                self._write(new + each.removeprefix(old), self._text(each) or "")
            for each in moved:
                self._documents_of.take(each, erase=self._erase)
        return f"Successfully renamed {old_path} to {new_path}"

    def clear(self) -> str:
        """Erase every file with all its revisions."""
        self._documents_of.clear()
        return "All memory cleared"

    def search(self, query: str, k: int = 10) -> list[tuple[str, str]]:
        """Files that match a query, best first: path and text."""
        return [(kept.key, str(kept.value["text"])) for kept, _ in self._documents_of.find(query, k)]

    def history(self, path: str) -> list[tuple[str, str, str]]:
        """The revisions of a file that were not erased, oldest first: time, state and text."""
        revisions = self._documents_of.history(_place(path))
        return [(kept.written_at, status, str(kept.value["text"])) for kept, status in revisions]

    # -- files ----------------------------------------------------------------------------------------

    def _text(self, place: str) -> str | None:
        kept = self._documents_of.get(place)
        return None if kept is None else str(kept.value["text"])

    def _file(self, place: str, path: str) -> str:
        text = self._text(place)
        if text is None:
            is_directory = place == ROOT or bool(self._below(place))
            said = "is not a file." if is_directory else "does not exist. Please provide a valid path."
            raise InvalidInput(f"The path {path} {said}", path="$.path")
        return text

    def _write(self, place: str, text: str) -> None:
        if not isinstance(text, str):
            raise InvalidInput("The text of a file should be a string", path="$.file_text")
        if text.count("\n") >= _LINES_MAX:
            raise InvalidInput(f"The file would exceed the maximum of {_LINES_MAX:,} lines", path="$.file_text")
        self._documents_of.put(place, {"text": text}, text)

    def _below(self, place: str) -> dict[str, int]:
        """The files below a directory by relative path, each with its size in bytes."""
        inside = f"{place}/"
        return {
            kept.key.removeprefix(inside): len(str(kept.value["text"]).encode())
            for kept in self._documents_of.all()
            if kept.key.startswith(inside)
        }

    def _all_at(self, place: str, path: str) -> list[str]:
        """The file at a place, or all files below it."""
        found = [place] if self._text(place) is not None else [f"{place}/{name}" for name in self._below(place)]
        if not found:
            raise InvalidInput(f"The path {path} does not exist", path="$.path")
        return found

    def _check_above(self, place: str) -> None:
        """Check that no parent of the file is itself a file."""
        above = place.rpartition("/")[0]
        while above != ROOT:
            if self._text(above) is not None:
                raise InvalidInput(f"The path {above} is not a directory", path="$.path")
            above = above.rpartition("/")[0]


def _place(path: Any) -> str:
    """Convert a path to a name in the store. `..`, `.`, backslashes and control characters are refused in every
    spelling.
    """
    if not isinstance(path, str) or not (path == ROOT or path.startswith(f"{ROOT}/")):
        raise InvalidInput(f"Path must start with /memories, got: {path!s:.200}", path="$.path")
    parts = [part for part in path.removeprefix(ROOT).split("/") if part]
    lowered = path.lower()
    is_odd = "\\" in path or not path.isprintable() or any(code in lowered for code in ("%2e", "%2f", "%5c"))
    if is_odd or any(part.strip() in ("", ".", "..") for part in parts):
        raise InvalidInput(f"Path {path!s:.200} would escape /memories directory", path="$.path")
    return "/".join([ROOT, *parts])


def _places_of(text: str, wanted: str) -> list[int]:
    """Positions of a text in another, overlaps included; an empty text has none."""
    found, at = [], text.find(wanted) if wanted else -1
    while at != -1:
        found.append(at)
        at = text.find(wanted, at + 1)
    return found


def _numbered(text: str, view_range: Sequence[int] | None) -> str:
    lines, first = text.split("\n"), 1
    if view_range and len(view_range) == 2:
        first = max(1, view_range[0])
        lines = lines[first - 1 : len(lines) if view_range[1] == -1 else view_range[1]]
    return "\n".join(_line(number, line) for number, line in enumerate(lines, first))


def _line(number: int, line: str) -> str:
    return f"{number:>{_NUMBER_WIDTH}}\t{line}"


def _listing(below: Mapping[str, int]) -> list[tuple[str, str]]:
    """Sizes and names in a directory, two levels deep, hidden items left out, in tree order."""
    sizes: dict[tuple[str, ...], int] = {}
    directories: set[tuple[str, ...]] = set()
    for name, size in below.items():
        parts = tuple(name.split("/"))
        for depth in range(1, len(parts) + 1):
            sizes[parts[:depth]] = sizes.get(parts[:depth], 0) + size
        directories.update(parts[:depth] for depth in range(1, len(parts)))
    shown = [each for each in sizes if len(each) <= _DEPTH_MAX and not any(part.startswith(".") for part in each)]
    return [(_size(sizes[each]), "/".join(each) + ("/" if each in directories else "")) for each in sorted(shown)]


def _size(size_bytes: int) -> str:
    if size_bytes == 0:
        return "0B"
    power = min((size_bytes.bit_length() - 1) // 10, len(_SIZES) - 1)
    size = size_bytes / 1024**power
    return f"{int(size)}{_SIZES[power]}" if size == int(size) else f"{size:.1f}{_SIZES[power]}"
