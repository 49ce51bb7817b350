"""`muniment run view`: one file that shows a run with no server, holds nothing else, and lets nothing stored act."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from browser_room import Reader
from click.testing import CliRunner

from muniment.surfaces.cli.main import cli
from muniment.surfaces.inspector.pages import is_built


def _bundle(story: Path, out: Path, run_id: str) -> Path:
    if not is_built():
        pytest.skip("BROWSER TESTS SKIPPED: the inspector is not built (make inspector)")
    arguments = ["run", "view", str(out), "--run", run_id, "--db", str(story), "--json"]
    result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert json.loads(result.stdout)["run_id"] == run_id
    return out


def test_a_bundle_shows_the_run_from_a_file(browser: Any, story: Path, tmp_path: Path) -> None:
    path = _bundle(story, tmp_path / "audit.html", "run_dinner")
    reader = Reader(browser, path.as_uri())
    asked: list[str] = []
    reader.page.on("request", lambda request: asked.append(request.url))
    reader.page.goto(path.as_uri())
    reader.page.get_by_role("link", name="run_dinner").click()
    reader.page.get_by_text("A table for six at seven, please.").wait_for()
    reader.shoot("bundle")
    assert reader.axe() == []
    reader.page.get_by_role("link", name="Claims").click()
    reader.page.locator("mark").first.wait_for()
    reader.page.get_by_role("link", name="Snapshots").click()
    reader.page.get_by_text("Run narrative").wait_for()
    reader.page.locator(".tabs").get_by_role("link", name="Packets").click()
    reader.page.locator("td a").first.click()
    reader.page.get_by_role("heading", name="Left out").wait_for()
    assert reader.complaints == []
    assert {url.split("#")[0] for url in asked} == {path.as_uri()}
    reader.context.close()


def test_what_was_stored_is_inert_in_a_bundle(browser: Any, story: Path, tmp_path: Path) -> None:
    path = _bundle(story, tmp_path / "attack.html", "run_attack")
    text = path.read_text("utf-8")
    data = re.search(r'<script type="application/json" id="bundle">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    assert "<" not in data[1]
    assert json.loads(data[1])["run_id"] == "run_attack"
    assert len(re.findall("<script", text)) == 2
    reader = Reader(browser, path.as_uri())
    for page in ("runs", "run/run_attack", "run/run_attack/claims", "run/run_attack/snapshots", "packets", "facts"):
        reader.page.goto(f"{path.as_uri()}#/default/mallory/{page}")
        reader.page.wait_for_timeout(300)
        reader.check_inert()
    assert reader.complaints == []
    reader.context.close()


def test_a_bundle_holds_one_run_and_what_its_packets_rest_on(story: Path, tmp_path: Path) -> None:
    text = _bundle(story, tmp_path / "audit.html", "run_dinner").read_text("utf-8")
    assert "Lokal Nord" in text
    assert "zebra crossing secret" not in text
    assert "run_private" not in text
    assert "Mallory" not in text


def test_the_same_run_gives_the_same_answers(story: Path, tmp_path: Path) -> None:
    first, second = (_bundle(story, tmp_path / f"{name}.html", "run_dinner").read_bytes() for name in ("a", "b"))
    without_time = [re.sub(rb'"made_at":"[^"]*"', b"", each) for each in (first, second)]
    assert without_time[0] == without_time[1]
