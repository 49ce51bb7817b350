"""Nothing that was stored can act in the inspector: it is shown as it was said, under a policy that would stop it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browser_story
import pytest
from browser_room import Reader, serve

import muniment
from muniment.core.outside.system import system_clock

MALLORY = "default/mallory"
PAGES = {
    "runs": f"{MALLORY}/runs",
    "ledger": f"{MALLORY}/run/run_attack",
    "claims": f"{MALLORY}/run/run_attack/claims",
    "snapshots": f"{MALLORY}/run/run_attack/snapshots",
    "packets": f"{MALLORY}/packets",
    "packet": f"{MALLORY}/packet/{{build}}",
    "prompt": f"{MALLORY}/packet/{{build}}/prompt_text",
    "raw": f"{MALLORY}/packet/{{build}}/raw",
    "purposes": f"{MALLORY}/purposes/{{build}}",
    "diff": f"{MALLORY}/diff/{{build}}/{{build}}?row=8",
    "whatif": f"{MALLORY}/whatif/{{build}}?query=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&row=8&purpose=planner",
    "search": f"{MALLORY}/search/hits?q=window.pwned%20click%20me%20img",
    "why": f"{MALLORY}/search/why?q=%3Cimg%20src%3Dx%20onerror%3D",
    "facts": f"{MALLORY}/facts",
    "episodes": f"{MALLORY}/episodes",
    "hash": "%3Cscript%3Ealert(1)%3C%2Fscript%3E/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E/runs",
    "nowhere": f"{MALLORY}/__proto__/constructor",
}


@pytest.fixture(scope="module")
def build(story: Path) -> str:
    from muniment.surfaces.operations.parts import builds

    with muniment.open(story) as mem:
        return builds(mem, user_id="mallory")[0].build_id


@pytest.mark.parametrize("name", PAGES)
def test_stored_content_is_inert(reader: Reader, build: str, name: str) -> None:
    reader.page.goto(f"{reader.url}/#/{PAGES[name].replace('{build}', build)}")
    reader.settle()
    reader.page.wait_for_timeout(300)
    reader.check_inert()
    assert [each for each in reader.complaints if "404" not in each] == []
    reader.shoot(f"attack_{name}")


def test_it_is_shown_as_it_was_said(reader: Reader) -> None:
    page = reader.go(f"{MALLORY}/run/run_attack", "<b>Mallory</b>")
    shown = page.locator(".ledger .said").all_inner_texts()
    for text in browser_story.HOSTILE:
        assert text in shown


def test_every_file_comes_with_a_policy_that_lets_in_nothing_else(reader: Reader) -> None:
    answers: list[Any] = []
    reader.page.on("response", lambda answer: answers.append(answer))
    reader.go(f"{MALLORY}/runs", "run_attack")
    files = [each for each in answers if "/v1/" not in each.url]
    assert len(files) >= 3
    for each in files:
        policy = each.headers["content-security-policy"]
        for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for"):
            assert part in policy
        assert "unsafe" not in policy
        assert each.headers["x-content-type-options"] == "nosniff"
    assert "<script>" not in files[0].text()


def test_the_policy_holds_where_a_page_would_write_html(reader: Reader) -> None:
    page = reader.go(f"{MALLORY}/runs", "run_attack")
    written = """'<img src=x onerror="window.pwned=1">'"""
    outcome = page.evaluate(
        f"() => {{ try {{ document.body.insertAdjacentHTML('beforeend', {written}); return 'let in' }}"
        " catch (error) { return error.name } }"
    )
    assert outcome == "TypeError"
    assert page.evaluate("window.pwned") is None


def test_unknown_addresses_and_methods_are_refused_in_the_one_shape(reader: Reader) -> None:
    request = reader.context.request
    for path in ("/assets/../pages.py", "/%2e%2e/pages.py", "/index.htm", "/assets/", "/etc/passwd"):
        answer = request.get(reader.url + path)
        assert answer.status == 404, path
        assert answer.json()["code"] == "unknown_route"
    assert request.post(reader.url + "/").status == 405


# -- keys ---------------------------------------------------------------------------------------------


@pytest.fixture
def locked(story: Path, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A server that asks for keys, and the key of one user."""
    from muniment.surfaces.http._keys import KeyFile

    keys = KeyFile(tmp_path / "keys.json", system_clock)
    made = keys.create("reader", tenant="default", user="ana", access="read")
    with muniment.open(story) as memory:
        for url in serve(memory, auth="on", keys=str(tmp_path / "keys.json")):
            yield url, made.token


def test_a_server_with_keys_shows_nothing_without_one(browser: Any, url: str, locked: tuple[str, str]) -> None:
    address, token = locked
    reader = Reader(browser, address)
    page = reader.go("default/ana/runs", "This server asks for a key")
    assert "run_dinner" not in page.content()
    assert reader.axe() == []
    page.get_by_label("API key").fill("mun_wrong")
    page.get_by_role("button", name="Use this key").click()
    page.get_by_text("This server asks for a key").wait_for()
    page.get_by_label("API key").fill(token)
    page.get_by_role("button", name="Use this key").click()
    page.get_by_role("link", name="run_dinner").wait_for()
    assert page.get_by_label("User").locator("option").all_inner_texts() == ["ana"]
    page.locator("[data-pulse=stream]").wait_for()  # under the key, too
    reader.shoot("locked")
    reader.context.close()
