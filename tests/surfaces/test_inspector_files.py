"""The inspector's files as they are served, and bundles as they are written: whatever the page itself is."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest

pytest.importorskip("starlette")

from click.testing import CliRunner
from starlette.testclient import TestClient

import muniment
from muniment.errors import MissingDependency
from muniment.surfaces.cli.main import cli
from muniment.surfaces.http.app import create_app
from muniment.surfaces.http.settings import ServerSettings
from muniment.surfaces.inspector import bundle
from muniment.surfaces.inspector.app import inspector
from muniment.surfaces.inspector.bundle import bundle_page, make_bundle
from muniment.surfaces.inspector.pages import HEADERS, is_built, load_files

HOSTILE = "</script><script>alert(1)</script><!-- \u2028"


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    built = tmp_path / "dist"
    (built / "assets").mkdir(parents=True)
    (built / "index.html").write_text("<!doctype html><div id=app></div>", "utf-8")
    (built / "assets" / "index-1.js").write_text("let page = '</script>';", "utf-8")
    (built / "assets" / "style-1.css").write_text("body { margin: 0 }", "utf-8")
    (built / "notes.txt").write_text("not a part of the page", "utf-8")
    return built


@pytest.fixture
def client(dist: Path) -> TestClient:
    app = create_app(
        muniment.open(),
        ServerSettings(auth="on", keys=str(dist / "keys")),
        beside={"/": lambda guard: inspector(guard, dist)},
    )
    return TestClient(app, base_url="http://localhost", follow_redirects=False)


def test_files_are_served_to_whoever_comes_and_data_is_not(client: TestClient) -> None:
    for path, media in (
        ("/", "text/html"),
        ("/assets/index-1.js", "text/javascript"),
        ("/assets/style-1.css", "text/css"),
    ):
        answer = client.get(path)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == f"{media}; charset=utf-8"
        assert {name: answer.headers[name] for name in HEADERS} == dict(HEADERS)
    assert client.get("/v1/tenants").status_code == 401


def test_the_page_is_asked_for_again_and_its_parts_never(client: TestClient) -> None:
    page, script = client.get("/"), client.get("/assets/index-1.js")
    assert page.headers["cache-control"] == "no-cache"
    assert "immutable" in script.headers["cache-control"]
    again = client.get("/", headers={"If-None-Match": page.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path", ["/index.html", "/notes.txt", "/assets", "/assets/../index.html", "/%2e%2e/keys", "/keys", "/v2"]
)
def test_nothing_else_is_served(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.json()["code"] == "unknown_route"


def test_only_reading(client: TestClient) -> None:
    assert client.head("/").status_code == 200
    refused = client.post("/")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")


def test_what_is_not_built_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_built(tmp_path)
    with pytest.raises(MissingDependency, match="not built"):
        load_files(tmp_path)
    monkeypatch.setattr(bundle, "load_files", lambda _dist: load_files(tmp_path))
    path = tmp_path / "agent.db"
    with muniment.open(path) as mem:
        mem.run(user_id="ana", run_id="r").observe("user", "hello")
    result = CliRunner().invoke(cli, ["run", "view", str(tmp_path / "out.html"), "--db", str(path), "--json"])
    assert result.exit_code == 1
    assert json.loads(result.stderr)["code"] == "missing_dependency"
    assert not (tmp_path / "out.html").exists()


# -- bundles ------------------------------------------------------------------------------------------


def _data(page: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="bundle">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    assert re.search("[<>&\u2028]", found[1]) is None
    data: dict[str, object] = json.loads(found[1])
    return data


def test_a_bundle_lets_in_its_own_script_by_hash_and_data_stays_data() -> None:
    page = bundle_page({"run_id": HOSTILE, "answers": {"GET /": HOSTILE}}, "run('</script>')", "p {}").decode()
    assert _data(page) == {"run_id": HOSTILE, "answers": {"GET /": HOSTILE}}
    scripts = re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    assert scripts == ["run('<\\/script>')"]
    digest = b64encode(sha256(scripts[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert "unsafe" not in page
    assert len(re.findall("<script", page)) == 2


def test_a_bundle_answers_what_the_page_asks_of_the_run(dist: Path) -> None:
    with muniment.open() as mem:
        run = mem.run(user_id="ana b/c", session_id="s", run_id="r/1", objective="look")
        said = run.observe("user", "I live in Berlin.", id="my-own-id")
        run.remember("user.city", "Berlin", sources=[said.id])
        run.log.claim("She lives in Berlin.", evidence=[{"event_id": said.id, "quote": "Berlin"}], status="verified")
        run.log.compact()
        builds = [run.compose(purpose, query="Where?").id for purpose in ("planner", "responder")]
        mem.run(user_id="ana b/c", session_id="t", run_id="other").observe("user", "elsewhere")
        page = make_bundle(mem, "r/1", "default", dist).decode()
    data = _data(page)
    answers = data["answers"]
    assert isinstance(answers, dict)
    base = "GET /v1/tenants/default/users/ana%20b%2Fc"
    assert [each["run_id"] for each in answers[f"{base}/runs"]["items"]] == ["r/1"]
    assert answers[f"{base}/events/my-own-id"]["body"]["content"] == "I live in Berlin."
    assert f"{base}/builds/{builds[0]}/diff/{builds[1]}" in answers
    assert answers[f"{base}/runs/r%2F1/snapshot/check?sequence=1"]["status"] == "PASS"
    assert answers[f"{base}/facts?include_all=true"]["items"][0]["value"] == "Berlin"
    assert "elsewhere" not in page


def test_the_newest_run_is_taken_where_none_is_named(
    dist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "load_files", lambda _dist: load_files(dist))
    path, out = tmp_path / "agent.db", tmp_path / "out.html"
    with muniment.open(path) as mem:
        for number in (1, 2):
            mem.run(user_id="ana", run_id=f"r{number}").observe("user", f"number {number}")
    result = CliRunner().invoke(cli, ["run", "view", str(out), "--db", str(path), "--json"])
    assert json.loads(result.stdout) == {"file": str(out), "run_id": "r2", "bytes": out.stat().st_size}
    nobody = CliRunner().invoke(cli, ["run", "view", str(out), "--user", "nobody", "--db", str(path), "--json"])
    assert json.loads(nobody.stderr)["code"] == "not_found"


def test_the_built_script_is_small() -> None:
    """What a reader waits for: at most 60 KB over the wire."""
    if not is_built():
        pytest.skip("SKIPPED: the inspector is not built (make inspector)")
    scripts = [file for path, file in load_files().items() if path.endswith(".js")]
    assert scripts
    assert sum(len(gzip.compress(file.body, mtime=0)) for file in scripts) <= 60_000
