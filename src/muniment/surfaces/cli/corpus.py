"""`muniment corpus`: documents added, listed, searched, shown, retracted, forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from muniment.errors import InvalidInput, MunimentError, NotFound
from muniment.surfaces.cli.asking import one_line, text_given, when
from muniment.surfaces.cli.options import db_option, json_option, now_option, tenant_option
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.cli.search import show_hit
from muniment.surfaces.settings import load_settings, open_store

if TYPE_CHECKING:
    from muniment.memory.corpus import Corpus
    from muniment.memory.documents.records import Chunk, CorpusDocument

__all__ = ["corpus"]

F = TypeVar("F", bound=Callable[..., Any])


def _corpus_options(command: F) -> F:
    """Which corpus: --db, --tenant, --corpus, --user."""
    command = click.option("--user", metavar="ID", help="The user whose own it is (default: shared by the tenant).")(
        command
    )
    command = click.option("--corpus", "corpus_id", required=True, metavar="ID", help="The corpus.")(command)
    return db_option(tenant_option(command))


@contextmanager
def _opened(
    db: str | None, tenant: str | None, corpus_id: str, user: str | None, *, must_exist: bool = True
) -> Iterator[Corpus]:
    settings = load_settings({"db": db, "tenant": tenant})
    with open_store(settings, must_exist=must_exist) as mem:
        yield mem.corpus(corpus_id, tenant_id=settings.tenant, user_id=user)


@click.group()
def corpus() -> None:
    """Documents as evidence: added as chunks that can be searched and pointed to."""


@corpus.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@_corpus_options
@click.option("--id", "document_id", metavar="ID", help="The document's id (default: its path); for one FILE.")
@click.option("--title", metavar="TEXT", help="Its title (default: what it says itself); for one FILE.")
@click.option(
    "--type", "media_type", metavar="TYPE", help="text/plain, text/markdown or text/html (default: by suffix)."
)
@json_option
@handles_errors
def add(
    files: tuple[str, ...],
    db: str | None,
    tenant: str | None,
    corpus_id: str,
    user: str | None,
    document_id: str | None,
    title: str | None,
    media_type: str | None,
    as_json: bool,
) -> None:
    """Add files of UTF-8 text, Markdown or HTML. Running it again adds only what has changed."""
    if len(files) > 1 and (document_id or title):
        raise InvalidInput("--id and --title are for one file", path="$.id", hint="add the files one by one")
    with _opened(db, tenant, corpus_id, user, must_exist=False) as shelf:
        for name in files:
            try:
                added = shelf.add_file(name, document_id=document_id, title=title, media_type=media_type)
            except MunimentError as error:
                if name not in error.message:
                    error.message = f"{name}: {error.message}"
                raise
            if as_json:
                emit_json(added.to_wire())
            else:
                click.echo(_line(added))


@corpus.command("list")
@_corpus_options
@click.option("--all", "include_all", is_flag=True, help="Also revisions that are superseded or retracted.")
@json_option
@handles_errors
def list_(
    db: str | None, tenant: str | None, corpus_id: str, user: str | None, include_all: bool, as_json: bool
) -> None:
    """List the documents of a corpus."""
    with _opened(db, tenant, corpus_id, user) as shelf:
        documents = shelf.documents(include_all=include_all)
    if as_json:
        emit_json({"documents": [document.to_wire() for document in documents]})
        return
    for document in documents:
        click.echo(_line(document))
    if not documents:
        click.echo(f"no documents in the corpus {corpus_id}")


@corpus.command()
@click.argument("query")
@_corpus_options
@click.option("--k", type=int, default=10, show_default=True, metavar="N", help="How many, at most.")
@now_option
@json_option
@handles_errors
def search(
    query: str,
    db: str | None,
    tenant: str | None,
    corpus_id: str,
    user: str | None,
    k: int,
    now: str | None,
    as_json: bool,
) -> None:
    """Find the chunks that answer QUERY (`-` is standard input), best first."""
    with _opened(db, tenant, corpus_id, user) as shelf:
        hits = shelf.search(text_given(query), k=k, now=now)
    if as_json:
        emit_json({"hits": [hit.to_wire() for hit in hits]})
        return
    for number, hit in enumerate(hits, 1):
        show_hit(number, hit)
    if not hits:
        click.echo(f"nothing found in the corpus {corpus_id}")


@corpus.command()
@click.argument("name", metavar="DOCUMENT|CHUNK")
@_corpus_options
@click.option("--revision", type=int, metavar="N", help="A revision of the document (default: the newest).")
@json_option
@handles_errors
def show(
    name: str,
    db: str | None,
    tenant: str | None,
    corpus_id: str,
    user: str | None,
    revision: int | None,
    as_json: bool,
) -> None:
    """Show a chunk, or a document chunk by chunk."""
    with _opened(db, tenant, corpus_id, user) as shelf:
        document = _document(shelf, name, revision)
        chunks = [shelf.chunk(name)] if document is None else [shelf.chunk(id_) for id_ in document.chunk_ids]
    if as_json:
        shown = {} if document is None else {"document": document.to_wire()}
        emit_json(shown | {"chunks": [chunk.to_wire() for chunk in chunks]})
        return
    if document is not None:
        click.echo(_line(document))
    for chunk in chunks:
        _show_chunk(chunk)


def _document(shelf: Corpus, name: str, revision: int | None) -> CorpusDocument | None:
    """The document of this name; None where it is the name of a chunk."""
    try:
        return shelf.get(name, revision=revision)
    except NotFound:
        if not name.startswith("chk_"):
            raise
        return None


@corpus.command()
@click.argument("document_id", metavar="DOCUMENT")
@_corpus_options
@click.option("--reason", required=True, metavar="TEXT", help="Why it no longer counts.")
@json_option
@handles_errors
def retract(
    document_id: str,
    db: str | None,
    tenant: str | None,
    corpus_id: str,
    user: str | None,
    reason: str,
    as_json: bool,
) -> None:
    """Take a document back: it is not found any more, and pointers into it still resolve."""
    with _opened(db, tenant, corpus_id, user) as shelf:
        document = shelf.retract(document_id, reason)
    if as_json:
        emit_json(document.to_wire())
    else:
        click.echo(_line(document))


def _line(document: CorpusDocument) -> str:
    title = f"  {one_line(document.title, 80)}" if document.title else ""
    reason = f": {one_line(document.reason, 80)}" if document.reason else ""
    name = click.style(one_line(document.document_id), bold=True)
    count = len(document.chunk_ids)
    return (
        f"{name}  revision {document.revision}  [{document.status}{reason}]{title}"
        f"  {count} chunk{'' if count == 1 else 's'}, {document.bytes} bytes, {when(document.added_at)}"
    )


def _show_chunk(chunk: Chunk) -> None:
    where = f"  {one_line(' > '.join(chunk.headings), 100)}" if chunk.headings else ""
    flags = f"  [{', '.join(chunk.flags)}]" if chunk.flags else ""
    click.echo(f"\n{chunk.chunk_id}  bytes {chunk.span.start}-{chunk.span.end}{where}{flags}")
    for line in chunk.text.splitlines():
        click.echo("    " + "".join(char if char.isprintable() else " " for char in line))
