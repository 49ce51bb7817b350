"""Pages and snippets from files, as a research run takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from muniment.errors import InvalidInput, MunimentError

__all__ = ["page_from", "page_named", "pages_in", "snippet_from"]


def page_named(given: str) -> dict[str, Any]:
    """`URL=FILE`: an address may hold an equals sign, so the last one counts."""
    url, _, file = given.rpartition("=")
    if not url or not file:
        raise InvalidInput(
            f"{given!r:.120} is not an address and a file", path="$.source", hint="write --source https://…=page.html"
        )
    return page_from(url, file, None)


def page_from(url: str, file: str, title: str | None) -> dict[str, Any]:
    """A page as a file of text, Markdown or HTML; which of them, its suffix says."""
    from muniment.core.policy.documents import CorpusPolicy
    from muniment.memory.corpus import read_text_file
    from muniment.memory.documents.document import media_type_of

    text = read_text_file(Path(file), CorpusPolicy().document_bytes_max, "corpus.document_bytes_max")
    return _source(url, text, title, media_type=media_type_of(file))


def snippet_from(url: str, text: str, title: str | None) -> dict[str, Any]:
    return _source(url, text, title, kind="snippet")


def _source(url: str, text: str, title: str | None, **more: str) -> dict[str, Any]:
    return {"url": url, "text": text, **({} if title is None else {"title": title}), **more}


def pages_in(name: str) -> list[dict[str, Any]]:
    """A file of JSON, one source a line: url and text, or as `SuppliedSource` has it."""
    from muniment.surfaces.cli.documents import read_documents

    found: list[dict[str, Any]] = []
    for document in read_documents(name):
        if document.error is not None:
            raise _at(document.error, f"{name}:{document.line}")
        if not isinstance(document.data, dict):
            raise InvalidInput(
                f"{name}:{document.line} is not a source", hint='write {"url": "https://…", "text": "…"}'
            )
        found.append(document.data)
    if not found:
        raise InvalidInput(f"there is no source in {name}", path="$.lines", hint="one JSON object a line: url and text")
    return found


def _at(error: MunimentError, where: str) -> MunimentError:
    error.message = f"{where}: {error.message}"
    return error
