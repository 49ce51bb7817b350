"""`corpus …`: add, list, search, show and forget documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from muniment.errors import InvalidInput, MunimentError, NotFound
from muniment.surfaces.cli._command import Call, Command, OptionSpec
from muniment.surfaces.cli._views import hit_lines
from muniment.surfaces.cli.store import YES, check_yes, confirm, receipt_lines
from muniment.surfaces.cli.terminal import counted, one_line, strong, when

if TYPE_CHECKING:
    from muniment.memory.corpus import Corpus
    from muniment.memory.documents import Chunk, CorpusDocument
    from muniment.store.ledger import Receipt

__all__ = ["add", "forget", "list_", "search", "show"]


def _document_line(document: CorpusDocument) -> str:
    title = f"  {one_line(document.title, 80)}" if document.title else ""
    reason = f": {one_line(document.reason, 80)}" if document.reason else ""
    return (
        f"{strong(one_line(document.document_id))}  revision {document.revision}  [{document.status}{reason}]{title}"
        f"  {counted(len(document.chunk_ids), 'chunk')}, {document.bytes} bytes, {when(document.added_at)}"
    )


# -- add ----------------------------------------------------------------------------------------------


def _check_add(call: Call) -> None:
    if len(call.typed["files"]) > 1 and ("document_id" in call.typed or "title" in call.typed):
        raise InvalidInput("--id and --title are for one file", path="$.id", hint="add the files one by one")


def _add(
    corpus: Corpus,
    files: Annotated[tuple[str, ...], OptionSpec(metavar="FILE…")],
    *,
    document_id: Annotated[
        str | None, OptionSpec("The document's id (default: its path); for one FILE.", "id", metavar="ID")
    ] = None,
    title: Annotated[
        str | None, OptionSpec("Its title (default: what it says itself); for one FILE.", metavar="TEXT")
    ] = None,
    media_type: Annotated[
        str | None, OptionSpec("text/plain, text/markdown or text/html (default: by suffix).", "type", "TYPE")
    ] = None,
) -> Iterator[CorpusDocument]:
    for name in files:
        try:
            yield corpus.add_file(name, document_id=document_id, title=title, media_type=media_type)
        except MunimentError as error:
            if name not in error.message:
                error.message = f"{name}: {error.message}"
            raise


add = Command(
    "corpus.add",
    lambda call: map(_document_line, call.answer),
    function=_add,
    check=_check_add,
    creates=True,
    document=lambda call: (each.to_wire() for each in call.answer),
    about="Running it again adds only what has changed.",
)


# -- list and search ----------------------------------------------------------------------------------


def _show_hits(call: Call) -> Iterator[str]:
    for number, hit in enumerate(call.answer, 1):
        yield from hit_lines(number, hit)
    if not call.answer:
        yield f"nothing found in the corpus {call.typed['corpus_id']}"


list_ = Command(
    "corpus.documents",
    columns="document_id revision status bytes added_at title",
    noun="documents",
    left_out=("document_ids",),
    options={"include_all": OptionSpec("Also revisions that are superseded or retracted.")},
)
search = Command(
    "corpus.search",
    _show_hits,
    arguments={"query": "QUERY"},
    noun="hits",
    about="QUERY may be `-`: standard input.",
)


# -- show ---------------------------------------------------------------------------------------------


class _DocumentView(NamedTuple):
    """A document and its chunks, as `corpus show` prints them."""

    document: CorpusDocument | None
    chunks: list[Chunk]


def _show(
    corpus: Corpus,
    name: Annotated[str, OptionSpec(metavar="DOCUMENT|CHUNK")],
    *,
    revision: Annotated[
        int | None, OptionSpec("A revision of the document (default: the newest).", metavar="N")
    ] = None,
) -> _DocumentView:
    try:
        document = corpus.get(name, revision=revision)
    except NotFound:
        if not name.startswith("chk_"):
            raise
        return _DocumentView(None, [corpus.chunk(name)])
    return _DocumentView(document, [corpus.chunk(id_) for id_ in document.chunk_ids])


def _show_chunks(call: Call) -> Iterator[str]:
    document, chunks = call.answer
    if document is not None:
        yield _document_line(document)
    for chunk in chunks:
        where = f"  {one_line(' > '.join(chunk.headings), 100)}" if chunk.headings else ""
        flags = f"  [{', '.join(chunk.flags)}]" if chunk.flags else ""
        yield f"\n{chunk.chunk_id}  bytes {chunk.span.start}-{chunk.span.end}{where}{flags}"
        for line in chunk.text.splitlines():
            yield "    " + "".join(char if char.isprintable() else " " for char in line)


def _shown_document(call: Call) -> dict[str, Any]:
    document, chunks = call.answer
    shown = {} if document is None else {"document": document.to_wire()}
    return shown | {"chunks": [chunk.to_wire() for chunk in chunks]}


show = Command("corpus.get", _show_chunks, function=_show, document=_shown_document)


# -- forget -------------------------------------------------------------------------------


def _forget(call: Call, ask: Callable[[], Receipt]) -> Receipt:
    document_id = call.typed.get("document_id")
    what = f"the document {document_id} of" if document_id else "the whole of"
    confirm(
        call, f"Forget {what} the corpus {call.typed['corpus_id']} in {call.settings.shown_db}? This cannot be undone."
    )
    return ask()


forget = Command(
    "corpus.forget",
    receipt_lines,
    around=_forget,
    arguments={"document_id": "[DOCUMENT]"},
    check=check_yes,
    options=YES,
    about="A document in all its revisions, or without one the whole corpus, and all that was derived.",
)
