"""What a call changed in a file, as features: the file, the lines that were put there, the names that they call.

edit:src/cart.py                               the file was changed
edit:src/cart.py+return item.get("discount")   a line was put there
edit:src/cart.py~get                           what is called there now and was not in what it took the place of

It reads arguments alone and no file. Comments are left out: what runs is code, and what advises stands in comments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from muniment.core.text.patterns import lazy_pattern

__all__ = ["EDIT", "TEXTS", "edit_parts", "edits_in"]

EDIT = "edit:"
_PATHS = frozenset(("path", "file", "filename", "file_name", "file_path", "filepath", "target_file", "relative_path"))
_NEW = (
    "new_str",
    "new_string",
    "new_text",
    "new",
    "replacement",
    "replace",
    "insert_text",
    "content",
    "text",
    "code",
    "file_text",
    "patch",
    "diff",
    "edit",
)
_OLD = ("old_str", "old_string", "old_text", "old", "search", "find")
TEXTS = frozenset((*_NEW, *_OLD))
"""Arguments that hold what a file says, or said."""
_PATCHES = frozenset(("patch", "diff"))
_IN_PATCH = lazy_pattern(r"(?m)^(?:\+\+\+ (?:b/)?|\*\*\* (?:Update|Add) File: )(\S+)")
_FILE = lazy_pattern(r"[\w./\\-]{1,120}\.\w{1,8}")
_CALLED = lazy_pattern(r"(?<!\w)([A-Za-z_]\w{1,30})(?=\()")
_TELLING = lazy_pattern(r"[=(\[.]|\b(?:return|import|raise|if|not|in)\b")
_SPACE = lazy_pattern(r"\s+")
_COMMENT = lazy_pattern(
    r"(?:^|\s)(?:#(?!include|define|if|endif|\[)(?:\s|[A-Za-z]+\s)|//\s*[A-Za-z]+\s+[A-Za-z]+\s|/\*|<!--).*"
    r"|^(?:\"{3}|'{3}|//|\* ).*"
)
"""A comment to the end of its line, or a line that is nothing else."""
_PROSE = lazy_pattern(r"[\"'`][^\"'`]*\w\s+\w+\s+\w+\s+\w[^\"'`]*[\"'`]")
"""A text in quotes with four words and more: a message, which may say anything."""
_CUT = " … "
_PATH_CHARS = 48
_LINE_CHARS = 64
_LINES_MAX = 4
_NAMES_MAX = 6


def edits_in(arguments: Mapping[str, Any]) -> Iterator[str]:
    """The features of one call that changes a file; nothing for any other."""
    name = next((name for name in _NEW if isinstance(arguments.get(name), str)), None)
    if name is None:
        return
    new = arguments[name]
    named = next((arguments[key] for key in sorted(arguments) if key.casefold() in _PATHS), None)
    if not isinstance(named, str):
        found = _IN_PATCH.search(new)
        named = found[1] if found is not None else ""
    path = "/".join(part for part in named.replace("\\", "/").split("/") if part not in ("", "."))[-_PATH_CHARS:]
    if _FILE.fullmatch(path) is None:
        return
    old = "\n".join(arguments[key] for key in _OLD if isinstance(arguments.get(key), str))
    put, taken = _put(new, is_patch=name in _PATCHES or _IN_PATCH.search(new) is not None), _lines(old)
    fresh = [line for line in put if line not in taken]
    yield f"{EDIT}{path}"
    telling = [line for line in fresh if len(line) <= _LINE_CHARS and _TELLING.search(line) and not _PROSE.search(line)]
    yield from (f"{EDIT}{path}+{line}" for line in telling[:_LINES_MAX])
    called = dict.fromkeys(name for line in fresh for name in _CALLED.findall(line) if name not in old)
    yield from (f"{EDIT}{path}~{name}" for name in list(called)[:_NAMES_MAX])


def edit_parts(rest: str) -> tuple[str, str, str]:
    """Of what stands behind `edit:`: the file, the line that was put there, the name that is called there."""
    path, has_line, line = rest.partition("+")
    path, _, name = (path, "", "") if has_line else rest.partition("~")
    return path, line, name


def _put(text: str, *, is_patch: bool) -> list[str]:
    """The lines that a text puts there: of a patch those that it adds."""
    if not is_patch:
        return _lines(text)
    added = [line[1:] for line in text.splitlines() if line.startswith("+") and not line.startswith("+++")]
    return _lines("\n".join(added))


def _lines(text: str) -> list[str]:
    """Its lines, each with single spaces and without comments; the one in which a long text was cut is left out."""
    whole = (_COMMENT.sub("", _SPACE.sub(" ", line)).strip() for line in text.splitlines() if _CUT not in line)
    return [line for line in whole if line]
