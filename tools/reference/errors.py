"""docs/reference/errors.md: the tree of errors, with the code, status and exit code of each."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator

from muniment import errors
from muniment.errors import InvalidRecord, MunimentError
from muniment.surfaces.cli._command import report_error
from reference.prose import first_paragraph, headed

ABOUT = (
    """
Everything that muniment raises on purpose is a `muniment.MunimentError` and has a stable `code`, the same in the
library, on the command line (`error[code]` on stderr, or the JSON of the error with `--json`), over HTTP (RFC 9457,
`application/problem+json`) and over MCP.""",
    """
An error has a `message`, a `hint` that says what to do and, where they help, a JSON `path` and `details`; `to_dict()`
is the one shape that every surface shows. To catch a branch, catch the class that heads it. The hint that stands here
in italics is that of the usual case; an instance may know better.""",
)


def page() -> str:
    return "\n".join([*headed("Errors", *ABOUT), *_branches()])


def classes() -> list[type[MunimentError]]:
    """Every class of the tree, as the module lists them."""
    named = (getattr(errors, name) for name in errors.__all__)
    return [each for each in named if isinstance(each, type) and issubclass(each, MunimentError)]


def exit_code(cls: type[MunimentError]) -> int:
    """What the command line ends with, as its own function says."""
    error = InvalidRecord("", []) if cls is InvalidRecord else cls("")
    with contextlib.redirect_stderr(io.StringIO()):
        return report_error(error, as_json=True)


def _branches() -> Iterator[str]:
    meanings = dict(re.findall(r"[├└]── (\w+) +(.+)", errors.__doc__ or ""))
    known = {each.__name__: each for each in classes()}
    yield "## In general\n"
    yield _entry(MunimentError, first_paragraph(MunimentError.__doc__))
    for name, meaning in meanings.items():
        cls = known[name]
        if cls.__base__ is MunimentError:
            yield f"\n## {name}\n"
        yield _entry(cls, meaning)
    yield ""


def _entry(cls: type[MunimentError], meaning: str) -> str:
    sentence = f"{meaning[0].upper()}{meaning[1:].removesuffix('.')}."
    more = first_paragraph(cls.__doc__) if "details" in (cls.__doc__ or "") else ""
    told = " ".join(each for each in (sentence, more) if each)
    hint = f"{cls.usual_hint[0].upper()}{cls.usual_hint[1:]}."
    return f"- **`{cls.code}`** (`{cls.__name__}`, HTTP {cls.status}, exit {exit_code(cls)}). {told}\n  *{hint}*"
