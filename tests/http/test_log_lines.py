"""The page of log lines is what the source writes: no line without its words, no words without a line."""

from __future__ import annotations

import ast
import json
import logging
from pathlib import Path

from http_support import ANA, Serve

import muniment
from muniment.surfaces.http.log_lines import COMMON, LINES
from muniment.surfaces.http.logs import LOGGER, JsonFormatter
from products import for_each

SURFACES = Path(muniment.__file__).parent / "surfaces"
PROXY = Path(muniment.__file__).parent / "integrations" / "proxy"
LEVELS = ("debug", "info", "warning", "error", "critical", "exception")


def written() -> dict[tuple[str, str], set[str]]:
    """By the folder's logger and the message: the levels at which the source writes it."""
    found: dict[tuple[str, str], set[str]] = {}
    for path in sorted((*SURFACES.rglob("*.py"), *PROXY.rglob("*.py"))):
        logger = next((f"muniment.{name}" for name in ("mcp", "proxy") if name in path.parts), "muniment.http")
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if "LOGGER" in text else ():
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if ast.unparse(node.func.value) != "LOGGER" or node.func.attr not in (*LEVELS, "log"):
                continue
            words = node.args[1 if node.func.attr == "log" else 0]
            if isinstance(words, ast.Constant):
                found.setdefault((logger, str(words.value)), set()).add(node.func.attr)
            else:
                assert path.name == "serve.py", f"{path}:{node.lineno}: the page cannot know what is written here"
    return found


def test_every_line_of_the_source_has_its_words_and_the_other_way_round() -> None:
    lines = written()
    assert len(lines) > 8
    assert set(lines) == {(line.logger, line.message) for line in LINES}
    for line in LINES:
        levels = lines[line.logger, line.message]
        assert levels == {"log"} or levels == {line.level}, line.message


def test_a_request_has_the_fields_that_the_page_says(serve: Serve) -> None:
    records: list[logging.LogRecord] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    keep, level = Keep(), LOGGER.level
    LOGGER.addHandler(keep)
    LOGGER.setLevel("INFO")
    try:
        client = serve()
        client.get(f"{ANA}/facts")
        client.get("/nothing/ana")
    finally:
        LOGGER.removeHandler(keep)
        LOGGER.setLevel(level)
    (line,) = [each for each in LINES if each.message == "request" and each.logger == "muniment.http"]
    good, refused = [json.loads(JsonFormatter().format(each)) for each in records if each.getMessage() == "request"]
    assert set(refused) == {*COMMON, *line.fields}
    assert set(good) == set(refused) - {"code"}
    assert "ana" not in json.dumps([good, refused])


@for_each("line", LINES, ids=lambda line: line.message[:20])
def test_words_are_whole_sentences(line: object) -> None:
    assert str(line[2]).rstrip().endswith(".")  # type: ignore[index]
