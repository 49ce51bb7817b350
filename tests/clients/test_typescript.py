"""The TypeScript client as it is published: what is packed, that it compiles, and what it does with a real server in
Node."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest
from client_tools import NODE_TOOLS, need, run
from typescript_room import PACKAGE, Installed, installed, serving

import muniment

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent / "typescript"
EXAMPLE = PACKAGE / "examples" / "vercel-ai"
VERSION = muniment.__version__
BUNDLE_BYTES_MAX = 10_000
"""Of the whole client, compressed."""
IN_A_CONTEXT = """
import { readFileSync } from "node:fs";
import vm from "node:vm";
const has = ["fetch", "Response", "AbortController", "AbortSignal", "TextDecoder", "ReadableStream", "URLSearchParams",
             "crypto", "setTimeout", "clearTimeout", "console"];
const context = vm.createContext(Object.fromEntries(has.map((name) => [name, globalThis[name]])));
vm.runInContext(readFileSync("edge.js", "utf-8"), context);
const { MUNIMENT_URL, MUNIMENT_KEY } = process.env;
console.log(await vm.runInContext("walk", context)(MUNIMENT_URL, MUNIMENT_KEY, "edge"));
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    made = installed(tmp_path_factory.mktemp("package"))
    for each in HERE.iterdir():
        shutil.copy(each, made.folder)
    return made


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with serving(tmp_path_factory.mktemp("server")) as told:
        yield told


def test_what_is_made_from_the_library_is_current() -> None:
    run(sys.executable, ROOT / "tools" / "make_typescript.py", "--check")


def test_what_is_packed_is_what_it_takes(program: Installed) -> None:
    """Nothing but the built modules, with their types; no dependency, no address of a registry."""
    told = json.loads((program.package / "package.json").read_text("utf-8"))
    modules = {each.stem for each in (PACKAGE / "src").glob("*.ts") if ".d." not in each.name} | {"operations"}
    built = {f"dist/{each}{ending}" for each in modules for ending in (".js", ".d.ts")}
    assert set(program.files) == built | {"dist/openapi.d.ts", "LICENSE", "README.md", "package.json"}
    assert (told["name"], told["type"], told["license"]) == ("@muniment/client", "module", "Apache-2.0")
    assert told["sideEffects"] is False
    assert not {"dependencies", "peerDependencies", "private", "bundledDependencies"} & told.keys()
    assert told["version"] == VERSION
    for target in (*told["exports"]["."].values(), told["types"]):
        assert (program.package / target).is_file()
    assert not list(PACKAGE.glob("*lock*"))
    for each in program.package.rglob("*.js"):
        said = each.read_text("utf-8")
        assert not re.search(r"""from ["'](?!\./)|\brequire\(|\bprocess\.|\bBuffer\.""", said), each.name


def test_programs_compile_under_every_strict_rule(program: Installed) -> None:
    """A consumer, in which what is wrong has to be found, and the example: with the packed types, which hold too."""
    need(PACKAGE / "node_modules" / "ai")
    (program.folder / "example").mkdir(exist_ok=True)
    for each in EXAMPLE.glob("*.ts"):
        shutil.copy(each, program.folder / "example")
    run(NODE_TOOLS / "tsc", "--project", ".", cwd=program.folder)


@pytest.mark.parametrize("name", ["client", "faults", "example"])
def test_it_does_what_it_says_with_a_real_server(program: Installed, server: dict[str, str], name: str) -> None:
    if name == "example" and not (program.folder / "example" / "main.js").exists():
        test_programs_compile_under_every_strict_rule(program)
    program.node("--test", f"{name}.test.mjs", **server)


@pytest.mark.parametrize("page", [PACKAGE / "README.md", ROOT / "docs" / "guides" / "other-languages.md"])
def test_what_the_pages_show_runs(program: Installed, server: dict[str, str], page: Path) -> None:
    """With the address and key of the server here, and a model that cites the first line."""
    shown = next(
        each for each in re.findall(r"```ts\n(.+?)```", page.read_text("utf-8"), re.DOTALL) if "new Muni" in each
    )
    here = f'apiKey: "{server["MUNIMENT_KEY"]}", baseUrl: "{server["MUNIMENT_URL"]}"'
    model = 'const askYourModel = async (messages) => (messages[1] ? "Berlin [1]." : "");'
    asked = shown.replace('baseUrl: "http://127.0.0.1:8765"', here).replace('user("ana")', f'user("{page.stem}")')
    said = program.node(
        "--input-type=module",
        "--eval",
        f"{model}\n{asked}\nconsole.log(sentences[0].evidence_ids[0] === said.id)",
        **server,
    )
    assert said.strip() == "true"


@pytest.fixture(scope="module")
def bundle(program: Installed) -> str:
    """All of it in one script for a browser or an edge runtime, which has the walk behind it."""
    need(NODE_TOOLS / "esbuild")
    made = program.folder / "bundle.js"
    run(NODE_TOOLS / "esbuild", program.package / "dist" / "index.js", "--bundle", "--minify", "--format=iife",
        "--global-name=client", "--platform=browser", "--target=es2022", f"--outfile={made}",
        "--log-level=warning")  # fmt: skip
    script = made.read_text("utf-8")
    assert "node:" not in script
    assert len(gzip.compress(script.encode())) < BUNDLE_BYTES_MAX
    return f"{script}\n{(HERE / 'edge.mjs').read_text('utf-8')}"


def test_it_runs_where_there_is_no_node(program: Installed, server: dict[str, str], bundle: str) -> None:
    """In a context that has what edge runtimes agree on: no process, no Buffer, no require."""
    (program.folder / "edge.js").write_text(bundle, "utf-8")
    said = program.node("--input-type=module", "--eval", IN_A_CONTEXT, **server)
    assert said.strip() == "walked"


def test_it_runs_in_a_browser(server: dict[str, str], bundle: str) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="CLIENT TESTS SKIPPED: playwright is not installed")
    chromium = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := which(name))), "")
    if not chromium:
        pytest.skip("CLIENT TESTS SKIPPED: no Chromium on this machine")
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.goto(f"{server['MUNIMENT_URL']}/v1/health")
        asked = json.dumps([server["MUNIMENT_URL"], server["MUNIMENT_KEY"], "browser"])
        assert page.evaluate(f"(async () => {{ {bundle}\nreturn walk(...{asked}); }})()") == "walked"
        browser.close()
