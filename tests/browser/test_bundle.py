"""`muniment run view`: one file that shows a run with no server, holds nothing else, and lets nothing stored act."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from browser_room import Reader
from click.testing import CliRunner

import muniment
from muniment.surfaces.cli.main import cli
from muniment.surfaces.inspector.pages import is_built


def _bundle(story: Path, out: Path, run_id: str, *more: str) -> Path:
    if not is_built():
        pytest.skip("BROWSER TESTS SKIPPED: the inspector is not built (make inspector)")
    arguments = ["run", "view", str(out), "--run", run_id, "--db", str(story), "--json", *more]
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


@pytest.mark.soak
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_bundle_has_the_conversation_its_evidence_and_the_view_it_was_made_of(
    browser: Any, url: str, story: Path, tmp_path: Path, scheme: str
) -> None:
    """Opened from the disk, with no server: it begins where the link was, and shows what the server showed there."""
    last = builds_of(story, "run_friday")[-1]
    link = f"{url}/#/default/ana/whatif/{last}?query=where+does+she+live%3F&max_tokens=300&episodes=0&only=1"
    there = Reader(browser, url)
    there.page.goto(link)
    there.page.locator(".beside-row").first.wait_for()
    there.settle()
    path = _bundle(story, tmp_path / "view.html", "run_friday", "--link", link)
    reader = Reader(browser, path.as_uri(), color_scheme=scheme, viewport={"width": 390, "height": 844})
    asked: list[str] = []
    reader.page.on("request", lambda request: asked.append(request.url))
    page = reader.page
    page.goto(path.as_uri())
    page.locator(".beside-row").first.wait_for()
    assert page.locator(".beside-lines").inner_text().count("Removed") > 0
    assert page.locator(".beside-cell").all_text_contents() == there.page.locator(".beside-cell").all_text_contents()
    row = page.locator(".beside-row", has=page.locator("a")).last
    row.get_by_role("link").click()
    row.locator("blockquote").first.wait_for()
    assert reader.axe() == []
    reader.shoot(f"bundle_whatif_{scheme}")

    page.goto(f"{path.as_uri()}#/default/ana/answer/run_friday?at={last}")
    page.get_by_role("heading", name="Why it was chosen").wait_for()
    assert page.locator(".turn .packet-turn").count() == 4
    evidence = page.locator(".shown-evidence")
    evidence.locator("blockquote").nth(1).wait_for()
    assert evidence.get_by_text("What nearly took its place").count() == 1
    assert reader.axe() == []
    reader.shoot(f"bundle_answer_{scheme}")

    page.goto(f"{path.as_uri()}#/default/ana/packet/{last}")
    page.get_by_role("heading", name="Left out").wait_for()
    page.get_by_role("link", name="Compare", exact=True).click()
    page.locator(".beside-row.added", has_text="Alte Mühle").get_by_role("link", name="Why").click()
    page.locator(".beside-more blockquote").wait_for()
    assert page.locator(".trouble").count() == 0
    assert reader.complaints == []
    assert {each.split("#")[0] for each in asked} == {path.as_uri()}
    reader.context.close()
    there.context.close()


def test_a_bundle_of_two_users_holds_one(story: Path, tmp_path: Path) -> None:
    """A link to what is another's is refused, and nothing of the other is in the file, whatever the link says."""
    mine, other = builds_of(story, "run_friday")[-1], builds_of(story, "run_attack", "mallory")[0]
    for link in (
        f"#/default/mallory/diff/{other}/{other}",
        f"#/default/ana/diff/{mine}/{other}",
        f"#/default/ana/whatif/{other}",
        f"#/other/ana/whatif/{mine}",
        f"#/default/ana/whatif/{mine}?max_tokens=x",
        "nothing",
    ):
        out = tmp_path / "no.html"
        arguments = ["run", "view", str(out), "--run", "run_friday", "--db", str(story), "--json", "--link", link]
        result = CliRunner().invoke(cli, arguments)
        assert result.exit_code != 0, link
        assert json.loads(result.stderr)["code"] in ("invalid_input", "not_found"), link
        assert not out.exists()
    link = f"#/default/ana/whatif/{mine}?query=pwned%20Mallory%20secret&basis=now&max_tokens=4096"
    held = _data(_bundle(story, tmp_path / "view.html", "run_friday", "--link", link))
    named = json.dumps(held["answers"], ensure_ascii=False)
    with muniment.open(story) as mem:
        for user in ("mallory", "rosa"):
            for entry in mem.ledger.entries(user_id=user):
                assert entry.id not in named
    assert "users/mallory" not in named
    assert all(key.split(" ")[1].startswith("/v1/tenants/default/users/ana/") for key in held["answers"])


def test_settings_of_a_link_cannot_break_out_of_the_file(browser: Any, story: Path, tmp_path: Path) -> None:
    mine = builds_of(story, "run_attack", "mallory")[0]
    hostile = "</script><script>window.pwned='link'</script><!--\u2028<img src=x onerror=\"window.pwned='img'\">"
    link = f"#/default/mallory/whatif/{mine}?query={quote(hostile, safe='')}&max_tokens=600"
    path = _bundle(story, tmp_path / "attack.html", "run_attack", "--link", link)
    text = path.read_text("utf-8")
    assert len(re.findall("<script", text)) == 2
    policy = re.search('http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert "unsafe" not in policy[1]
    assert "default-src 'none'; script-src 'sha256-" in policy[1]
    reader = Reader(browser, path.as_uri())
    reader.page.goto(path.as_uri())
    reader.page.locator(".beside-row").first.wait_for()
    reader.check_inert()
    for page in (f"answer/run_attack?at={mine}", f"diff/{mine}/{mine}?row=9"):
        reader.page.goto(f"{path.as_uri()}#/default/mallory/{page}")
        reader.page.wait_for_timeout(300)
        reader.check_inert()
    assert [each for each in reader.complaints if "404" not in each] == []
    reader.context.close()


def _data(path: Path) -> Any:
    data = re.search(r'<script type="application/json" id="bundle">(.*?)</script>', path.read_text("utf-8"), re.DOTALL)
    assert data is not None
    return json.loads(data[1])


def builds_of(story: Path, run_id: str, user_id: str = "ana") -> list[str]:
    """The packets of a run, oldest first."""
    from muniment.surfaces.operations.parts import builds

    with muniment.open(story) as mem:
        return [each.build_id for each in builds(mem, user_id=user_id, order="asc") if each.run_id == run_id]


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
