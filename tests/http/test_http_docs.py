"""The pages at `/docs`: every operation has its place, links lead somewhere, and nothing is fetched elsewhere."""

from __future__ import annotations

import json
import re
import shlex
from html import unescape
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from http_support import Serve
from starlette.testclient import TestClient

from effort import one_in
from muniment.surfaces.operations.openapi import openapi_text

DOCUMENT = json.loads(openapi_text())
TAGS = [each["name"] for each in DOCUMENT["tags"]]
OPERATIONS = [(what["operationId"], what["tags"][0]) for item in DOCUMENT["paths"].values() for what in item.values()]


class Page(HTMLParser):
    """What a page holds: its ids, its links, and its elements, each closed in its turn."""

    def __init__(self, url: str, text: str) -> None:
        super().__init__()
        self.url, self.text = url, text
        self.ids: list[str] = []
        self.links: set[str] = set()
        self.names: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == [], self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        held = dict(attrs)
        self.names.append(tag)
        assert not any(name.startswith("on") or name == "style" for name in held), held
        if "id" in held:
            self.ids.append(held["id"])
        for name in ("href", "src", "action"):
            if name in held:
                self.links.add(urljoin(self.url, held[name]))
        if tag not in ("meta", "link", "input", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def looked_at(client: TestClient, url: str) -> Page:
    answer = client.get(url)
    assert answer.status_code == 200, url
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src" not in policy, "none is what is left"
    assert "require-trusted-types-for 'script'" in policy
    return Page(f"http://localhost{url}", answer.text)


@pytest.mark.soak
def test_every_operation_has_its_place_and_every_link_leads_somewhere(client: TestClient) -> None:
    pages = {url: looked_at(client, url) for url in ("/docs", *(f"/docs/{tag}" for tag in TAGS))}
    for name, tag in OPERATIONS:
        assert pages[f"/docs/{tag}"].ids.count(name) == 1, name
    linked = set().union(*(page.links for page in pages.values()))
    schemas = sorted({urlsplit(link).path for link in linked if "/docs/schemas/" in link})
    assert len(schemas) > 100
    for url in one_in(12, schemas):
        pages[url] = looked_at(client, url)
    for url, page in pages.items():
        assert len(page.ids) == len(set(page.ids)), url
        assert not {"script", "style", "img", "iframe", "object"} & set(page.names)
        for link in page.links:
            parts = urlsplit(link)
            assert parts.hostname == "localhost", "no other host is asked"
            if parts.path in pages and parts.fragment:
                assert parts.fragment in pages[parts.path].ids, link
            elif not parts.path.startswith("/docs/schemas/"):
                assert client.get(parts.path).status_code == 200, link


def test_the_core_comes_first_and_its_examples_can_be_typed(client: TestClient) -> None:
    text = looked_at(client, "/docs").text
    order = [text.index(f'id="part-{tag}"') for tag in TAGS]
    assert order == sorted(order)
    core = [name for name, tag in OPERATIONS if tag == "core"]
    commands = [unescape(each) for each in re.findall(r"<code>(curl .*?)</code>", text, re.DOTALL)]
    assert len(commands) == len(core)
    for command in commands:
        _, _, method, address, *more = shlex.split(command.replace("\\\n", " "))
        given = dict(zip(more[::2], more[1::2], strict=True))
        assert (method, urlsplit(address).path.split("/")[1]) in (("POST", "v1"), ("GET", "v1"))
        assert json.loads(given.get("-d", "{}")) is not None


def test_a_first_command_of_the_page_does_what_it_says(client: TestClient) -> None:
    text = looked_at(client, "/docs").text
    command = next(unescape(each) for each in re.findall(r"<code>(curl .*?)</code>", text, re.DOTALL) if "role" in each)
    words = shlex.split(command.replace("\\\n", " "))
    path = urlsplit(words[3]).path
    answer = client.post(path, json=json.loads(words[words.index("-d") + 1]))
    assert answer.status_code == 201


def test_it_is_searched(client: TestClient) -> None:
    page = looked_at(client, "/docs?q=forget")
    assert "http://localhost/docs/core#forget" in page.links
    assert "Nothing with" in looked_at(client, "/docs?q=xyzzy").text
    hostile = looked_at(client, "/docs?q=%3Cscript%3Ealert(1)%3C/script%3E%22%20onload%3D1")
    assert "script" not in hostile.names
    assert len(looked_at(client, "/docs?q=" + "a" * 5000).text) < 20_000
    assert "LedgerEntry" in looked_at(client, "/docs?q=ledgerentry").text


def test_it_is_for_whoever_comes_and_only_read(serve: Serve) -> None:
    client = serve(auth="on")
    first = client.get("/docs")
    assert first.status_code == 200
    assert client.get("/docs", headers={"If-None-Match": first.headers["etag"]}).status_code == 304
    assert client.get("/docs/style.css").headers["content-type"] == "text/css; charset=utf-8"
    assert client.post("/docs").status_code == 405
    assert client.get("/docs/nowhere").json()["code"] == "unknown_route"
    assert client.get("/docs/schemas/Nothing").status_code == 404
    assert client.get("/docs/").headers["location"] == "../docs"
    assert client.head("/docs").status_code == 200
    core = client.get("/v1/openapi-core.json").json()
    assert {what["tags"][0] for item in core["paths"].values() for what in item.values()} == {"core"}
