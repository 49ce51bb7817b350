"""docs/reference/mcp.md: tools, resources, prompts and settings as the MCP surface declares them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from muniment.surfaces.mcp.answers import ANSWER_CHARS_MAX
from muniment.surfaces.mcp.arguments import ARGUMENTS_BYTES_MAX
from muniment.surfaces.mcp.prompts import PROMPTS
from muniment.surfaces.mcp.schemas import schema_of
from muniment.surfaces.mcp.server import INSTRUCTIONS
from muniment.surfaces.mcp.settings import CHOICES, McpSettings
from muniment.surfaces.mcp.streamable import HEADERS, PATH
from muniment.surfaces.mcp.tools import TOOLS, Tool
from muniment.surfaces.mcp.uris import TEMPLATES
from reference.prose import cell, form_of, headed, member_fields

ABOUT = f"""
How to connect an agent is in [the guide](../guides/mcp.md). Over stdio: `muniment mcp`. Over streamable HTTP: `{PATH}`
of `muniment serve`, `POST` alone, each request by itself. The schemas themselves come with `tools/list`. The arguments
of one call are at most {ARGUMENTS_BYTES_MAX >> 20} MiB of JSON.

What the server tells a model of itself:

> {INSTRUCTIONS}

Each form of an answer, text and structured content, is at most {ANSWER_CHARS_MAX:,} characters; a context is as long as
its `max_tokens`."""


def page() -> str:
    parts = [*headed("MCP reference", ABOUT), *_tools(), *_resources(), *_prompts(), *_settings(), ERRORS]
    return "\n".join(parts)


def _tools() -> Iterator[str]:
    yield "## Tools\n"
    yield "| tool | in the lean profile | reads only | destroys | again is the same | open world |"
    yield "|---|---|---|---|---|---|"
    for tool in TOOLS.values():
        marks = (bool(tool.shown), tool.access == "read", tool.destroys, tool.is_idempotent, False)
        yield f"| [`{tool.name}`](#{tool.name}) | {' | '.join('yes' if mark else 'no' for mark in marks)} |"
    yield ""
    for tool in TOOLS.values():
        yield from _tool(tool)


def _tool(tool: Tool) -> Iterator[str]:
    yield f"### {tool.name}\n"
    yield f"{tool.description}\n"
    if tool.shown:
        yield f"The lean profile describes {', '.join(f'`{name}`' for name in tool.shown)}; all are taken there too.\n"
    yield from _table("argument", schema_of(tool.takes))
    yield f"\nAnswers `{tool.answers.__name__}`:\n"
    yield from _table("field", schema_of(tool.answers))
    yield ""


def _table(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f"| {name} | form | |"
    yield "|---|---|---|"
    for each, part in schema["properties"].items():
        needed = "**needed** " if name == "argument" and each in schema.get("required", ()) else ""
        form = form_of(part, schema.get("$defs", {}))
        yield f"| `{each}` | {form} | {needed}{cell(part.get('description', ''))} |"


def _resources() -> Iterator[str]:
    yield "## Resources\n"
    yield "| address | media type | |"
    yield "|---|---|---|"
    for uri, media, said in TEMPLATES.values():
        yield f"| `{uri}` | `{media}` | {said} |"
    yield "\n`resources/list` has builds and narratives, newest first, in pages; the rest is found by `search_memory`,"
    yield "and its ids are completed (`completion/complete`).\n"


def _prompts() -> Iterator[str]:
    yield "## Prompts\n"
    yield "| prompt | takes | |"
    yield "|---|---|---|"
    for name, prompt in PROMPTS.items():
        yield f"| `{name}` | {', '.join(f'`{each}`' for each in prompt.arguments)} | {prompt.description} |"
    yield ""


def _settings() -> Iterator[str]:
    yield "## Settings\n"
    yield "Flag of `muniment mcp`, environment, key of `[mcp]` in `muniment.toml`; beside those of every command"
    yield "(`--db`, `--tenant`, `--user`, `--agent`).\n"
    yield "| flag | environment | default | |"
    yield "|---|---|---|---|"
    said = member_fields(McpSettings)
    for each in fields(McpSettings):
        flag, name = each.name.replace("_", "-"), each.name.upper()
        choices = (
            f" One of {', '.join(f'`{choice}`' for choice in CHOICES[each.name])}." if each.name in CHOICES else ""
        )
        default = f"`{each.default}`" if each.default else ""
        yield f"| `--{flag}` | `MUNIMENT_MCP_{name}` | {default} | {said[each.name].said}{choices} |"
    yield "\nOver HTTP a client says in headers where it sits, within what its key is for:"
    yield f"{', '.join(f'`{header.title()}`' for header in HEADERS.values())}.\n"


ERRORS = """## Errors

A tool that refuses answers `isError` and one text: the JSON of the error every surface shows, `code`, `message`, `hint`
and, where they help, `path` and `details`. Anything else that is refused (an unknown tool, a resource that is not
there, a cursor that was not answered) is a JSON-RPC error, -32602 or -32603, with the same shape as its `data`.
"""
