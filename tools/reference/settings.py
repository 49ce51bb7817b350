"""docs/reference/settings.md: what can be set where, and every number of the policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from pydantic.fields import FieldInfo

from muniment.contracts.schemas import RecordSchema
from muniment.core.canonical import canonical_text
from muniment.core.policy import Policy
from muniment.core.record import Record
from muniment.integrations.proxy.settings import ProxySettings
from muniment.surfaces.http.settings import ServerSettings
from muniment.surfaces.settings import FOLDER_SETTINGS, NAMES, Settings
from reference.prose import bullet, first_paragraph, form_of, headed, member_fields, paragraphs

ABOUT = (
    "Argument, then `MUNIMENT_*` environment, then `muniment.toml`, then the default: in this order everywhere.",
    """
`muniment.toml` is read in the working directory and, behind it, in `~/.muniment`. The first may have come with a
repository, so it may set only [what is harmless](#in-the-working-directory). `muniment --config FILE` or
`MUNIMENT_CONFIG` names one file in place of both. An unknown name is an error, as is a value of the wrong type.""",
    """```toml
db = "agent.db"
user = "ana"

[policy.compose]
max_tokens = 4096

[server]
port = 8765

[mcp]
writes = "off"

[proxy]
upstream = "https://api.openai.com"
```

Its `[server]` and `[proxy]` belong into `~/.muniment/muniment.toml` or a file that is named.""",
)
SERVER = """Of `muniment serve`: keys of `[server]` in `muniment.toml`, and `MUNIMENT_` with the name in capitals in the
environment (`MUNIMENT_PORT`). Some are flags of the command too."""
PROXY = """Of `muniment proxy`: keys of `[proxy]` in `muniment.toml`, and `MUNIMENT_PROXY_` with the name in capitals in
the environment (`MUNIMENT_PROXY_UPSTREAM`). Some are flags of the command too."""
FOLDER = """
## In the working directory

A `muniment.toml` there may set what follows. Anything else in it is an error that names the setting. Where a coding
agent starts muniment (`MUNIMENT_REPOSITORY` is set, whatever it says) that file is not read at all.
"""
OTHERS = """
## Other environment variables

- `MUNIMENT_DB_FILE`: a file that holds the value of `MUNIMENT_DB`, such as a secret of a container.
- `MUNIMENT_CONFIG`: another file in place of `muniment.toml`; it must be there.
- `XDG_CONFIG_HOME`: the files of research runs lie in `opencode/research-runs` under it (default `~/.config`).
- `TIKTOKEN_CACHE_DIR`, `DATA_GYM_CACHE_DIR`: where `tiktoken`, if it is the token counter, has its tables.
- With `otel = "on"`, the variables of the OpenTelemetry SDK.

What an MCP server is told is in [its own reference](mcp.md#settings).
"""
POLICY = """Every threshold, with its unit at the end of its name. `Policy` is one frozen record, given to
`muniment.open(policy=…)` as a record or a mapping, or as `[policy.SECTION]` tables of `muniment.toml`. What is not said
keeps its default. Its `digest` is what a build refers to, so that a replay uses the policy it was made under. A section
that others cite by itself also has a `policy_id` that names it and a `schema_version`.
"""


def page() -> str:
    return "\n".join([*headed("Settings", *ABOUT), *_general(), *_server(), *_proxy(), *_folder(), OTHERS, *_policy()])


def _general() -> Iterator[str]:
    yield "## Of every command\n"
    said = member_fields(Settings)
    for name, default in NAMES.items():
        notes = (f"`MUNIMENT_{name.upper()}`", f"default `{default}`" if default else "")
        yield bullet(name, notes, said[name].said)
    yield ""


def _server() -> Iterator[str]:
    yield "## The server\n"
    yield f"{SERVER}\n"
    said = member_fields(ServerSettings)
    for each in fields(ServerSettings):
        form = "whole number" if isinstance(each.default, int) else "text"
        default = f"default `{each.default}`" if each.default != "" else ""
        yield bullet(each.name, (form, default), said[each.name].said)


def _proxy() -> Iterator[str]:
    yield "\n## The proxy\n"
    yield f"{PROXY}\n"
    said = member_fields(ProxySettings)
    for each in fields(ProxySettings):
        form = "whole number" if isinstance(each.default, int) else "text"
        default = f"default `{each.default}`" if each.default != "" else ""
        yield bullet(each.name, (form, default), said[each.name].said)


def _folder() -> Iterator[str]:
    yield FOLDER
    for name, allowed in FOLDER_SETTINGS.items():
        yield f"- `{name}`: {allowed.values}"


def _policy() -> Iterator[str]:
    yield "## The policy\n"
    yield POLICY
    parts = Policy.model_json_schema(schema_generator=RecordSchema)["$defs"]
    sections = {name: getattr(Policy(), name) for name in Policy.model_fields}
    for name, section in sections.items():
        if isinstance(section, Record):
            yield from _section(f"policy.{name}", section, parts)


def _section(path: str, record: Record, parts: Mapping[str, Any]) -> Iterator[str]:
    cls = type(record)
    yield f"### {path}\n"
    yield f"{paragraphs(cls.__doc__)}\n"
    said, schema = member_fields(cls), parts[cls.__name__]["properties"]
    inner: list[tuple[str, Record]] = []
    for name, field in cls.model_fields.items():
        value = getattr(record, name)
        if name in ("policy_id", "schema_version"):
            continue
        if isinstance(value, Record):
            inner.append((name, value))
            yield f"- [`{name}`](#{path.replace('.', '')}{name}): {first_paragraph(type(value).__doc__)}"
        else:
            form = form_of(_bounds(field) | schema[name], parts)
            yield bullet(name, (form, _default(value)), said[name].said)
    yield ""
    for name, value in inner:
        yield from _section(f"{path}.{name}", value, parts)


def _bounds(field: FieldInfo) -> dict[str, Any]:
    """The bounds of a number, as JSON Schema has them; what a validator of ours stands around loses them there."""
    words = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
    given = ((words[name], getattr(each, name, None)) for each in field.metadata for name in words)
    return {word: bound for word, bound in given if bound is not None}


def _default(value: Any) -> str:
    if value is None:
        return "unset"
    return f"default `{canonical_text(list(value) if isinstance(value, tuple) else value)}`"
