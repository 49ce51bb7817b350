"""The searchable texts of a value, and their comparison by LangGraph's index or by the store itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.canonical import digest_of
from muniment.memory.kept.search import Features, VectorFeatures, given_name, own_features

if TYPE_CHECKING:
    from langgraph.store.base import IndexConfig

    from muniment.core.ports.models import Embedder

__all__ = ["IndexEmbedder", "ItemTexts", "embedder_of", "features_of", "index_fields"]


class ItemTexts:
    """The texts of a value. Without fields all of it is one text; with LangGraph's index it is its JSON."""

    def __init__(self, fields: Sequence[str] | None, *, joined: bool) -> None:
        self._fields = None if fields is None else tuple(fields)
        self._joined = joined

    @property
    def mark(self) -> str:
        """Identifies the fields that are read."""
        return digest_of([self._fields, self._joined])[:8]

    def of(self, value: Mapping[str, Any], index: Any) -> list[str]:
        if index is False:
            return []
        fields = self._fields if index is None else index
        if fields is None:
            texts = ["\n".join(_leaves(value))]
        else:
            texts = [text for field in fields for text in _at(value, field)]
        texts = [text for text in texts if text.strip()]
        return ["\n".join(texts)] if self._joined and texts else texts


class IndexEmbedder(NamedTuple):
    """The embedder of a LangGraph index, under a name that changes with its vectors."""

    name: str
    of_texts: Callable[[Sequence[str]], Sequence[Sequence[float]]]
    of_query: Callable[[str], Sequence[float]]


def index_fields(index: Mapping[str, Any]) -> list[str]:
    """The fields an index reads: `fields` or, in LangGraph's SQLite store, `text_fields`."""
    named = index.get("fields") or index.get("text_fields") or ["$"]
    return [named] if isinstance(named, str) else list(named)


def embedder_of(index: IndexConfig | None) -> IndexEmbedder | None:
    if index is None:
        return None
    from langgraph.store.base import ensure_embeddings

    embeddings = ensure_embeddings(index.get("embed"))
    texts = ItemTexts(index_fields(index), joined=False)
    made_by = getattr(embeddings, "model", None) or type(embeddings).__qualname__
    name = f"langgraph@{digest_of([str(made_by), index.get('dims')])[:12]}-{texts.mark}"
    return IndexEmbedder(name, lambda said: embeddings.embed_documents(list(said)), embeddings.embed_query)


def features_of(
    index: IndexConfig | None, embedder: Embedder | None, fields: Sequence[str] | None
) -> tuple[Features, ItemTexts]:
    """The features by which a store's values are compared with a query."""
    given = embedder_of(index)
    if given is not None and index is not None:
        texts = ItemTexts(index_fields(index), joined=False)
        return VectorFeatures(given_name(given.name), given.of_texts, given.of_query), texts
    features, joined = own_features(embedder, fields)
    return features, ItemTexts(fields, joined=joined)


def _at(value: Mapping[str, Any], field: str) -> list[str]:
    from langgraph.store.base import get_text_at_path, tokenize_path

    return get_text_at_path(value, "$" if field == "$" else tokenize_path(field))


def _leaves(value: Any, name: str = "") -> Iterator[str]:
    """Texts and numbers with their names, in order."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _leaves(each, str(key))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _leaves(each, name)
    elif value is not None:
        yield f"{name}: {value}" if name else str(value)
