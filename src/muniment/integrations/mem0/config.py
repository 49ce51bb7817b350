"""mem0's configuration as a muniment store: its location, its embedder, and the model that proposes facts.

Each key either has an equivalent, or is ignored with a single warning that names all such keys, or is refused because
ignoring it would change the meaning. docs/guides/from-mem0.md has the list.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from muniment.core.scope import DEFAULT_TENANT
from muniment.integrations.mem0.environment import variable
from muniment.integrations.mem0.exceptions import ConfigurationError, UnsupportedError
from muniment.integrations.mem0.providers import embedder_of, model_of

if TYPE_CHECKING:
    from muniment.handles import memory as runtime

__all__ = ["ConfigWarning", "Opened", "open_config", "read_config"]

FILE = "muniment.db"
"""The store's file, in the configured folder: mem0's own files there are left alone."""
_DEFAULT_COLLECTION = "mem0"
_EMBEDDED = ("qdrant", "chroma", "faiss", "muniment")
_VECTOR_STORES = frozenset(
    ("qdrant", "chroma", "pgvector", "pinecone", "mongodb", "milvus", "baidu", "cassandra", "neptune",
     "upstash_vector", "azure_ai_search", "azure_mysql", "redis", "valkey", "databricks", "elasticsearch",
     "vertex_ai_vector_search", "opensearch", "supabase", "weaviate", "faiss", "langchain", "s3_vectors",
     "turbopuffer", "oracledb", "muniment")
)  # fmt: skip
_NEEDLESS = frozenset(("embedding_model_dims", "on_disk", "collection_name", "path", "distance_strategy", "hnsw"))
"""Keys of a vector store that have no effect here: text is indexed whatever its vectors are, and always on disk."""
_REFUSED = {
    "custom_instructions": "what to extract, and what never to keep",
    "custom_fact_extraction_prompt": "what to extract, and what never to keep",
    "custom_update_memory_prompt": "when a memory replaces another",
}
_PASSED = {
    "graph_store": "there is no graph memory",
    "reranker": "what is found is ranked already",
}
_KNOWN = frozenset(("vector_store", "llm", "embedder", "history_db_path", "version", *_REFUSED, *_PASSED))


class ConfigWarning(UserWarning):
    """Warns that part of a mem0 configuration is not used."""


class Opened(NamedTuple):
    """The objects made from a configuration."""

    mem: runtime.Memory
    model: Any
    tenant_id: str
    is_own: bool
    """True if the store was opened here, and is to be closed with the memory."""


class Place(NamedTuple):
    """The location of the store (a file, `:memory:`, a database's or a server's address) and its tenant."""

    target: str
    tenant_id: str
    key: str | None = None


class Read(NamedTuple):
    """A parsed configuration, with nothing opened."""

    place: Place
    embedder: Any
    model: Any
    passed: tuple[str, ...]


def open_config(config: Any) -> Opened:
    """Open a configuration; warn once about ignored keys."""
    import muniment

    read = read_config(config)
    if read.passed:
        warnings.warn(f"not used of the configuration: {'; '.join(read.passed)}", ConfigWarning, stacklevel=4)
    target, tenant_id, key = read.place
    if target.startswith(("http://", "https://")):
        return Opened(muniment.connect(target, key=key), read.model, tenant_id, True)
    if not target.startswith(("postgresql://", "postgres://")) and target != ":memory:":
        Path(target).parent.mkdir(parents=True, exist_ok=True)
    return Opened(muniment.open(target, embedder=read.embedder), read.model, tenant_id, True)


def read_config(config: Any) -> Read:
    """Parse a configuration; raise `ConfigurationError` or `UnsupportedError`. Nothing is contacted."""
    given = _plain(config)
    for name, meant in _REFUSED.items():
        if given.get(name):
            raise UnsupportedError(
                f"{name} tells a model {meant}, and nothing here is asked with it: without it other things are kept",
                suggestion="leave it out, and give Memory(mem, model=…) a model of yours that heeds it; "
                "what must never be kept belongs into the policy's redaction",
                path=f"$.{name}",
            )
    passed = [f"{name} ({why})" for name, why in _PASSED.items() if given.get(name)]
    passed += [f"{name} (unknown)" for name in sorted(set(given) - _KNOWN)]
    if given.get("version") not in (None, "v1.1"):
        passed.append("version (answers have the form of v1.1)")
    place = _place(given, passed)
    embedder = _section(given, "embedder")
    llm = _section(given, "llm")
    return Read(
        place,
        None if embedder is None else embedder_of(*embedder, passed),
        None if llm is None else model_of(*llm, passed),
        tuple(passed),
    )


def _plain(config: Any) -> dict[str, Any]:
    if config is None:
        return {}
    if hasattr(config, "model_dump"):  # mem0's own MemoryConfig: values left at their defaults were not requested
        config = config.model_dump(exclude_unset=True)
    if not isinstance(config, Mapping):
        raise ConfigurationError(
            f"a configuration is a dict or an open store, not {type(config).__name__}",
            suggestion='Memory(muniment.open("agent.db")), or Memory.from_config({…})',
            path="$.config",
        )
    return dict(config)


def _section(given: Mapping[str, Any], name: str) -> tuple[str, dict[str, Any]] | None:
    """Provider and settings of a section; None if it is missing."""
    section = given.get(name)
    if section is None:
        return None
    if not isinstance(section, Mapping):
        raise ConfigurationError(f"{name} should be a dict with provider and config", path=f"$.{name}")
    provider, settings = section.get("provider"), section.get("config")
    if settings is not None and hasattr(settings, "model_dump"):
        settings = settings.model_dump(exclude_unset=True)
    if settings is not None and not isinstance(settings, Mapping):
        raise ConfigurationError(f"{name}.config should be a dict", path=f"$.{name}.config")
    chosen = ("qdrant" if name == "vector_store" else "openai") if provider is None else str(provider)
    return chosen, dict(settings or {})


# -- where it lies ------------------------------------------------------------------------------------


def _place(given: Mapping[str, Any], passed: list[str]) -> Place:
    provider, settings = _section(given, "vector_store") or ("qdrant", {})
    if provider not in _VECTOR_STORES:
        raise ConfigurationError(f"Unsupported vector store provider: {provider}", path="$.vector_store.provider")
    collection = settings.get("collection_name")
    tenant_id = DEFAULT_TENANT if collection in (None, _DEFAULT_COLLECTION) else str(collection)
    if provider == "pgvector":
        return Place(_postgres(settings, passed), tenant_id)
    if provider == "muniment" and settings.get("url"):
        return Place(str(settings["url"]), tenant_id, settings.get("api_key") or settings.get("key"))
    remote = next((name for name in ("url", "host", "client", "api_key") if settings.get(name)), None)
    if provider not in _EMBEDDED or remote is not None:
        raise UnsupportedError(
            f"memories do not lie in {provider}" + ("" if remote is None else f" ({remote})"),
            suggestion="a file: vector_store.config.path, or history_db_path; for several machines PostgreSQL "
            "(provider pgvector), or a server: provider muniment with url and api_key",
            path="$.vector_store" if remote is None else f"$.vector_store.config.{remote}",
        )
    unused = sorted(set(settings) - _NEEDLESS - {"url", "host", "client", "api_key", "key", "port", "https"})
    passed += [f"vector_store.config.{name}" for name in unused]
    path, history = settings.get("path"), given.get("history_db_path")
    if path:
        return Place(_file(Path(str(path)), is_folder=True), tenant_id)
    if history:
        return Place(_file(Path(str(history)), is_folder=False), tenant_id)
    home = variable("MEM0_DIR") or Path.home() / ".mem0"
    return Place(_file(Path(home), is_folder=True), tenant_id)


def _file(path: Path, *, is_folder: bool) -> str:
    if str(path) == ":memory:":
        return ":memory:"
    if path.name == FILE:
        return str(path)
    return str((path if is_folder else path.parent) / FILE)


def _postgres(settings: Mapping[str, Any], passed: list[str]) -> str:
    """Address of the database with mem0's vectors; our tables have different names."""
    taken = {"connection_string", "host", "port", "user", "password", "dbname", "sslmode", *_NEEDLESS}
    passed += [f"vector_store.config.{name}" for name in sorted(set(settings) - taken)]
    if settings.get("connection_string"):
        return str(settings["connection_string"])
    missing = [name for name in ("host", "user", "dbname") if not settings.get(name)]
    if missing and missing != ["dbname"]:
        raise ConfigurationError(
            f"pgvector needs a connection_string, or {', '.join(missing)}", path="$.vector_store.config"
        )
    who = quote(str(settings["user"]), safe="")
    word = f":{quote(str(settings['password']), safe='')}" if settings.get("password") else ""
    where = f"{settings['host']}:{settings.get('port') or 5432}"
    mode = f"?sslmode={quote(str(settings['sslmode']))}" if settings.get("sslmode") else ""
    return f"postgresql://{who}{word}@{where}/{quote(str(settings.get('dbname') or 'postgres'))}{mode}"
