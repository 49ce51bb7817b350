"""What a tool of a host was asked and answered, in the few words that are kept: pure reading of their shapes.

Hosts wrap what a command printed: Codex puts lines about the process before it, Gemini CLI lines before and behind.
What the command printed is kept, and whether it failed is told beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["read_result", "short_arguments"]

_EXIT_CODE = re.compile(r"Exit code \d{1,3}")
_OF_CODEX = re.compile(
    r"(?:(?:Chunk ID|Wall time|Original token count|Total output lines): [^\n]*\n"
    r"|(?:Process exited with code|Exit code:) (?P<code>-?\d{1,10})\n"
    r"|Process running with session ID [^\n]*\n)+Output:\n"
)
_OF_GEMINI = re.compile(r"<untrusted_context>\n(?P<told>.*)\n</untrusted_context>", re.DOTALL)
_GEMINI_HEAD = re.compile(r"(?:Command: [^\n]*\n)?(?:Directory: [^\n]*\n)?(?:Output|Stdout): ")
_GEMINI_TAIL = re.compile(
    r"(?:\nError: \(none\))?(?:\nExit Code: (?P<code>[^\n]*))?(?:\nSignal: (?P<signal>[^\n]*))?"
    r"(?:\nBackground PIDs: [^\n]*)?(?:\nProcess Group PGID: [^\n]*)?\Z"
)
_NOTHING = ("(none)", "(empty)", "0", None)
_ARGUMENT_CHARS_MAX = 400
"""What a written file or a patch holds stands in the repository: of an argument its beginning is kept."""
_LINES_OF_PATCH_MAX = 40
_TOLD_ELSEWHERE = ("old_string", "new_string", "edits", "content", "description", "run_in_background", "timeout")


# -- what it was asked --------------------------------------------------------------------------------


def short_arguments(given: Mapping[str, Any], directory: str = "") -> dict[str, Any]:
    """A tool's arguments: of long texts their beginning, of paths what stands below the directory. What a changed file
    held and holds is told by the result, and what a command is for by the command.
    """
    below = f"{directory.rstrip('/')}/" if directory else ""
    kept = {str(name): value for name, value in given.items() if name not in _TOLD_ELSEWHERE}
    plain = {name: value.removeprefix(below) if isinstance(value, str) else value for name, value in kept.items()}
    return {name: _short(value) for name, value in plain.items()}


def _short(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _ARGUMENT_CHARS_MAX:
        return f"{value[:_ARGUMENT_CHARS_MAX]}… ({len(value)} characters)"
    if isinstance(value, list | Mapping):
        text = json.dumps(value, ensure_ascii=False, default=str)
        return value if len(text) <= _ARGUMENT_CHARS_MAX else _short(text)
    return value


# -- what it answered ---------------------------------------------------------------------------------


def read_result(answer: Any) -> tuple[str, bool]:
    """What a tool answered, as its reader sees it (output of a command, text of a file, lines of a patch), and whether
    it worked, as far as the answer tells.
    """
    failed = isinstance(answer, Mapping) and (answer.get("is_error") is True or bool(answer.get("error")))
    text = _text(answer).rstrip("\n")
    if (of_codex := _OF_CODEX.match(text)) is not None:
        return text[of_codex.end() :], not failed and of_codex["code"] in (None, "0")
    if (of_gemini := _OF_GEMINI.fullmatch(text.strip())) is not None:
        told, ok = _without_process(of_gemini["told"])
        return told, ok and not failed
    return text, not failed


def _without_process(told: str) -> tuple[str, bool]:
    """What a command printed, without the lines about its process; and whether it worked."""
    about = _GEMINI_TAIL.search(told)
    assert about is not None, "the end of a text is always found"
    printed = _GEMINI_HEAD.sub("", told[: about.start()], count=1)
    ok = about["code"] in _NOTHING and about["signal"] in _NOTHING
    return "" if printed in _NOTHING[:2] else printed, ok


def _text(answer: Any) -> str:
    """That a command failed is told beside it, so a first line that says so is left out where there is more."""
    if isinstance(answer, str):
        first, _, rest = answer.partition("\n")
        return rest if rest.strip() and _EXIT_CODE.fullmatch(first) else answer
    if isinstance(answer, list):
        return "\n".join(filter(None, map(_text, answer)))
    if not isinstance(answer, Mapping):
        return "" if answer is None else json.dumps(answer)
    if "stdout" in answer or "stderr" in answer:
        return "\n".join(str(part) for key in ("stdout", "stderr") if (part := answer.get(key)))
    file = answer.get("file")
    if isinstance(file, Mapping) and isinstance(file.get("content"), str):
        return str(file["content"])
    if isinstance(answer.get("structuredPatch"), list):
        return _patch_text(answer)
    for key in ("text", "llmContent", "output", "content"):
        if isinstance(answer.get(key), str | list):
            return _text(answer[key])
    return json.dumps(answer, ensure_ascii=False, sort_keys=True, default=str)


def _patch_text(answer: Mapping[str, Any]) -> str:
    hunks = [hunk for hunk in answer["structuredPatch"] if isinstance(hunk, Mapping)]
    lines = [str(line) for hunk in hunks for line in hunk.get("lines", ()) if str(line)[:1] in ("+", "-")]
    more = [f"… and {len(lines) - _LINES_OF_PATCH_MAX} lines"] if len(lines) > _LINES_OF_PATCH_MAX else []
    if not lines:
        return "created" if answer.get("type") == "create" else "changed"
    return "\n".join([*lines[:_LINES_OF_PATCH_MAX], *more])
