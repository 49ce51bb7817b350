"""The OpenAPI document as others read it: a strict linter has nothing to say of it, and clients in two languages are
generated from it, compiled and used against a real server."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from client_tools import CLIENTS, DOCUMENTS, GENERATOR, NODE_TOOLS, need, run, served

HERE = Path(__file__).parent
TSC = ["--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--target", "es2022",
       "--module", "nodenext", "--skipLibCheck"]  # fmt: skip


@pytest.mark.parametrize("name", ["openapi.json", "openapi-core.json"])
def test_a_strict_linter_finds_nothing(name: str) -> None:
    """Every rule of the strict set is an error, and there is no list of exceptions."""
    redocly = NODE_TOOLS / "redocly"
    need(redocly)
    said = run(redocly, "lint", "--extends", "recommended-strict", DOCUMENTS / name)
    assert "Your API description is valid" in said
    assert "warning" not in said.lower().replace("deprecation warning", ""), said


def test_a_linter_would_find_something(tmp_path: Path) -> None:
    redocly = NODE_TOOLS / "redocly"
    need(redocly)
    document = json.loads((DOCUMENTS / "openapi-core.json").read_bytes())
    del document["servers"]
    (tmp_path / "openapi.json").write_text(json.dumps(document), "utf-8")
    with pytest.raises(AssertionError, match="no-empty-servers"):
        run(redocly, "lint", "--extends", "recommended-strict", tmp_path / "openapi.json")


@pytest.mark.parametrize("name", ["openapi-core.json", pytest.param("openapi.json", marks=pytest.mark.soak)])
def test_a_python_client_is_generated_and_used(name: str, tmp_path: Path) -> None:
    """Without a warning, with every operation of the document. Generating the whole takes half a minute."""
    generate = GENERATOR / "openapi-python-client"
    need(generate)
    out = tmp_path / "client"
    config = CLIENTS / "openapi-python-client.yaml"
    document = DOCUMENTS / name
    said = run(generate, "generate", "--path", document, "--output-path", out, "--config", config,
               PATH=f"{GENERATOR}:/usr/bin:/bin")  # fmt: skip
    assert said.strip() == f"Generating {out}", said
    api = out / "muniment_client" / "api"
    made = {(each.parent.name, each.stem) for each in api.glob("*/*.py") if each.stem != "__init__"}
    paths = json.loads(document.read_bytes())["paths"]
    assert made == {(told["tags"][0], told["operationId"]) for item in paths.values() for told in item.values()}
    with served(tmp_path) as url:
        assert run(GENERATOR / "python", HERE / "walk.py", url, PYTHONPATH=str(out)).strip() == "walked"


def test_typescript_types_are_generated_and_used(tmp_path: Path) -> None:
    """A program with fetch alone compiles under every strict rule, and runs."""
    generate, compiler = NODE_TOOLS / "openapi-typescript", NODE_TOOLS / "tsc"
    need(generate, compiler)
    (tmp_path / "package.json").write_text('{"type": "module"}', "utf-8")
    shutil.copy(HERE / "walk.ts", tmp_path)
    run(generate, DOCUMENTS / "openapi-core.json", "--output", tmp_path / "openapi.ts")
    run(compiler, *TSC, "--outDir", tmp_path / "out", tmp_path / "walk.ts", cwd=tmp_path)
    shutil.copy(tmp_path / "package.json", tmp_path / "out")
    with served(tmp_path) as url:
        assert run("node", tmp_path / "out" / "walk.js", url).strip() == "walked"
