"""The pages: what there is, an operation with its arguments, answer and example, a schema, what a search found.

Pure: each is a function of the document. Links are relative, so that a proxy may serve them under a prefix.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from html import escape
from typing import Any, NamedTuple
from urllib.parse import urlencode

from muniment.surfaces.docs.markup import code_block, inline, json_block, prose, table
from muniment.surfaces.operations.examples import example_of
from muniment.surfaces.operations.openapi import openapi_text

__all__ = ["page_at"]

_HOST = "http://127.0.0.1:8765"


class Told(NamedTuple):
    """An operation of the document."""

    name: str
    method: str
    path: str
    part: str
    what: Mapping[str, Any]

    @property
    def words(self) -> str:
        """What a search looks at."""
        return " ".join((self.name, self.what.get("x-method", ""), self.path, self.what["description"])).lower()


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(openapi_text())
    return document


@cache
def _operations() -> tuple[Told, ...]:
    paths = _document()["paths"]
    return tuple(
        Told(what["operationId"], method.upper(), path, what["tags"][0], what)
        for path, item in paths.items()
        for method, what in item.items()
    )


def _parts() -> dict[str, str]:
    return {each["name"]: each["description"] for each in _document()["tags"]}


def page_at(segments: tuple[str, ...], query: str) -> str | None:
    """The page at an address below `/docs`; None where there is none."""
    match segments:
        case () if query.strip():
            return _found(query)
        case ():
            return _start()
        case (part,) if part in _parts():
            return _part(part)
        case ("schemas", name) if name in _document()["components"]["schemas"]:
            return _schema(name)
    return None


# -- pages --------------------------------------------------------------------------------------------


def _start() -> str:
    root = "docs"
    body = [prose(_document()["info"]["description"].split("\n\n", 1)[1])]
    body.append('<p>The document itself: <a href="v1/openapi.json">all of it</a>, or ')
    body.append('<a href="v1/openapi-core.json">the core alone</a>, for generators of clients.</p>')
    body += _section("core", root, is_whole=True)
    for part in _parts():
        if part != "core":
            body += _section(part, root, is_whole=False)
    return _framed("muniment: the HTTP API", "The HTTP API", root, "".join(body))


def _part(part: str) -> str:
    root = "../docs"
    return _framed(f"{part}: muniment's HTTP API", part, root, "".join(_section(part, root, is_whole=True)))


def _section(part: str, root: str, *, is_whole: bool) -> Iterator[str]:
    held = [each for each in _operations() if each.part == part]
    if part == "core":
        order = ["start_run", "observe", "observe_tool", "record", "remember", "search", "compose"]
        held.sort(key=lambda each: order.index(each.name) if each.name in order else len(order))
    yield f'<section aria-labelledby="part-{part}"><h2 id="part-{part}">{part}</h2>{prose(_parts()[part])}'
    if is_whole:
        for each in held:
            yield _operation(each, root)
    else:
        yield _lines(held, root, f"The operations of {part}")
    yield "</section>"


def _lines(held: list[Told], root: str, caption: str) -> str:
    rows = (
        (
            f'<a href="{root}/{each.part}#{each.name}">{escape(each.name)}</a>',
            f'<span class="verb">{each.method}</span> <code>{_breakable(each.path)}</code>',
            inline(each.what["summary"]),
        )
        for each in held
    )
    return table(caption, ("operation", "address", "what it does"), rows)


def _found(query: str) -> str:
    root = "docs"
    words = query.lower().split()
    held = [each for each in _operations() if all(word in each.words for word in words)]
    held.sort(key=lambda each: (each.part != "core", sum(word in each.name for word in words) == 0))
    schemas = [name for name in _document()["components"]["schemas"] if all(word in name.lower() for word in words)]
    said = f"{len(held)} operations and {len(schemas)} schemas" if held or schemas else "Nothing"
    body = [f"<p>{said} with “{escape(query)}”.</p>"]
    if held:
        body.append(_lines(held, root, "Operations"))
    if schemas:
        links = "".join(f"<li>{_schema_link(name, root)}</li>" for name in schemas)
        body.append(f'<h2>Schemas</h2><ul class="names">{links}</ul>')
    return _framed(f"{query}: muniment's HTTP API", "Search", root, "".join(body), query)


def _schema(name: str) -> str:
    root = "../../docs"
    schema = _document()["components"]["schemas"][name]
    used = [each for each in _operations() if f'"#/components/schemas/{name}"' in json.dumps(each.what)]
    body = [prose(schema.get("description", "")), _fields(schema, root, f"The fields of {name}")]
    if used:
        body.append(f"<h2>Where it is used</h2>{_lines(used, root, 'Operations')}")
    body.append(f"<h2>As JSON Schema</h2>{json_block(schema, f'The schema of {name}')}")
    return _framed(f"{name}: muniment's HTTP API", name, root, "".join(body))


def _framed(title: str, heading: str, root: str, body: str, query: str = "") -> str:
    """A page around its body: where to go, a search, and what it is called."""
    links = "".join(f'<li><a href="{root}/{part}">{part}</a></li>' for part in _parts())
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="stylesheet" href="{root}/style.css"></head><body>'
        f'<a class="skip" href="#main">To the text</a>'
        f'<header><p class="name"><a href="{root}">muniment</a></p>'
        f'<form action="{root}" method="get" role="search"><label for="q">Search</label>'
        f'<input id="q" name="q" type="search" value="{escape(query)}"><button>Find</button></form>'
        f'<nav aria-label="Parts"><ul>{links}</ul></nav></header>'
        f'<main id="main"><h1>{escape(heading)}</h1>{body}</main></body></html>'
    )


# -- one operation ------------------------------------------------------------------------------------


def _operation(told: Told, root: str) -> str:
    what = told.what
    made = [
        f'<article id="{told.name}"><h3><a href="#{told.name}">{escape(told.name)}</a></h3>',
        f'<p class="address"><span class="verb">{told.method}</span> <code>{_breakable(told.path)}</code></p>',
        prose(what["description"]),
    ]
    if "x-access" in what:
        method = f", and is <code>{escape(what['x-method'])}</code> of the library" if "x-method" in what else ""
        made.append(f"<p>It takes a key for <code>{what['x-access']}</code>{method}.</p>")
    made.append(_example(told))
    made.append(_body(told, root))
    made.append(_parameters(told))
    made.append(_answer(told, root))
    return "".join(made) + "</article>"


def _resolved(node: Any) -> Any:
    while isinstance(node, dict) and "$ref" in node:
        kind, name = node["$ref"].split("/")[-2:]
        node = _document()["components"][kind][name]
    return node


def _parameters(told: Told) -> str:
    given = [_resolved(each) for each in told.what.get("parameters", ())]
    rows = [
        (
            f"<code>{escape(each['name'])}</code>",
            f"{each['in']}{', required' if each['required'] and each['in'] != 'path' else ''}",
            _type(each["schema"], ""),
            inline(each.get("description", "")),
        )
        for each in given
        if each["in"] != "path"
    ]
    if not rows:
        return ""
    shown = table(f"Parameters of {told.name}", ("name", "in", "type", "what it is"), rows)
    return f"<details><summary>{len(rows)} parameters</summary>{shown}</details>"


def _body(told: Told, root: str) -> str:
    content = told.what.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return ""
    schema = _resolved(content["schema"])
    if not schema.get("properties"):
        return "" if schema.get("additionalProperties") is False else f"<p>The body: {_type(schema, root)}.</p>"
    return _fields(schema, root, f"The body of {told.name}")


def _fields(schema: Mapping[str, Any], root: str, caption: str) -> str:
    required = schema.get("required", ())
    rows = [
        (
            f"<code>{escape(name)}</code>{' <span class=must>required</span>' if name in required else ''}",
            _type(field, root),
            inline(_resolved(field).get("description", "") if isinstance(field, dict) else ""),
        )
        for name, field in schema.get("properties", {}).items()
    ]
    return table(caption, ("name", "type", "what it is"), rows) if rows else ""


def _answer(told: Told, root: str) -> str:
    made = []
    for status, answer in told.what["responses"].items():
        if not status.startswith("2"):
            continue
        kinds = [f"{escape(media)}: {_type(held['schema'], root)}" for media, held in answer.get("content", {}).items()]
        made.append(f"<p>Answers <strong>{status}</strong>{', ' if kinds else ''}{'; or '.join(kinds)}.</p>")
    refused = [
        _resolved(each) | {"status": status} for status, each in told.what["responses"].items() if status[0] in "45"
    ]
    rows = [(each["status"], inline(each["description"])) for each in refused if "x-codes" in each]
    if rows:
        shown = table(f"What {told.name} may answer instead", ("status", "codes"), rows)
        made.append(f"<details><summary>{len(rows)} statuses of problems</summary>{shown}</details>")
    return "".join(made)


def _example(told: Told) -> str:
    example = example_of(told.name)
    if example is None:
        return ""
    query = f"?{urlencode(example.params)}" if example.params else ""
    lines = [f"curl -X {example.method} {shlex.quote(_HOST + example.path + query)}"]
    lines += [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in example.headers.items()]
    if example.body is not None:
        lines += [
            "-H 'Content-Type: application/json'",
            f"-d {shlex.quote(json.dumps(example.body, ensure_ascii=False))}",
        ]
    asked = code_block(" \\\n  ".join(lines), f"How to ask for {told.name}")
    answered = json_block(example.answer, f"An answer of {told.name}")
    return f"{asked}<details><summary>What it answers: {example.status}</summary>{answered}</details>"


# -- types --------------------------------------------------------------------------------------------


def _breakable(path: str) -> str:
    """A path that may go on in the next line behind a slash."""
    return escape(path).replace("/", "/<wbr>")


def _schema_link(name: str, root: str) -> str:
    return f'<a href="{root}/schemas/{escape(name)}">{escape(name)}</a>' if root else f"<code>{escape(name)}</code>"


def _type(schema: Any, root: str) -> str:
    """The type of a value, with what bounds it."""
    if not isinstance(schema, dict) or not schema:
        return "anything"
    if "$ref" in schema:
        return _schema_link(schema["$ref"].rpartition("/")[2], root)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(_type(each, root) for each in schema[key]))
    if "enum" in schema or "const" in schema:
        values = schema.get("enum") or [schema["const"]]
        return " or ".join(f"<code>{escape(json.dumps(each))}</code>" for each in values)
    kinds = schema.get("type", "anything")
    if kinds == "array":
        return f"list of {_type(schema.get('items', {}), root)}"
    if kinds == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties'], root)}"
    named = kinds if isinstance(kinds, str) else " or ".join(kinds)
    return ", ".join([schema.get("format", named), *_bounds(schema)])


def _bounds(schema: Mapping[str, Any]) -> Iterator[str]:
    words = {
        "minimum": "from {}",
        "maximum": "to {}",
        "exclusiveMinimum": "more than {}",
        "exclusiveMaximum": "less than {}",
        "maxLength": f"{schema.get('minLength', 0)} to {{}} characters",
    }
    for key, said in words.items():
        if key in schema:
            yield said.format(schema[key])
