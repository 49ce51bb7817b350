"""Write what the TypeScript client takes from the library: its classes of errors, and the words that stand around a
question. Its types are made of the OpenAPI document when it is built."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from muniment import errors
from muniment.errors import MunimentError
from muniment.packets.render import DIVIDER, REMINDER

SOURCES = Path(__file__).parent.parent / "clients" / "typescript" / "src"
TITLE = "/** Made from the library by tools/make_typescript.py: do not edit. */\n\n"


def classes_text() -> str:
    """The tree as classes: what they extend, and their codes."""
    made = [
        f"/** {meaning[0].upper()}{meaning[1:].removesuffix('.')}. */\n"
        f"export class {cls.__name__} extends {cls.__base__.__name__} {{\n"
        f"  static override readonly code: string = {json.dumps(cls.code)};\n}}\n"
        for cls, meaning in _tree()
    ]
    return f'{TITLE}import {{ MunimentError }} from "./errors.js";\n\n' + "\n".join(made)


def words_text() -> str:
    """What `toOpenAI` and `toAnthropic` put around a question, word for word as the library does."""
    told = {"REMINDER": REMINDER, "DIVIDER": DIVIDER}
    return TITLE + "".join(f"export const {name} =\n  {json.dumps(text)};\n" for name, text in told.items())


def _tree() -> Iterator[tuple[type[MunimentError], str]]:
    """Every class below the root, each behind the one it extends, with its meaning."""
    for name, meaning in re.findall(r"[├└]── (\w+) +(.+)", errors.__doc__ or ""):
        yield getattr(errors, name), meaning


FILES = {SOURCES / "error_classes.ts": classes_text, SOURCES / "words.ts": words_text}

if __name__ == "__main__":
    if "--check" in sys.argv:
        stale = [file.name for file, text in FILES.items() if not file.exists() or file.read_text("utf-8") != text()]
        sys.exit(f"{' and '.join(stale)} out of date: make generate" if stale else 0)
    for file, text in FILES.items():
        file.write_text(text(), "utf-8")
