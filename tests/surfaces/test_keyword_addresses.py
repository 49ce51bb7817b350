"""A store named by keywords (`host=… password=…`) is refused at every door: no file is made, no password told."""

from __future__ import annotations

import os
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.errors import InvalidInput, MunimentError
from muniment.store.engines.opening import file_named, open_engine
from muniment.surfaces.cli.main import cli
from muniment.surfaces.settings import load_settings
from products import for_each

SECRET = "s3cretsauce"
KEYWORDS = [
    f"host=127.0.0.1 port=1 dbname=x user=u password={SECRET}",
    f"password={SECRET} host=db",
    f"  host = db\tpassword = '{SECRET} with blanks'",
    f"HOST=db PASSWORD={SECRET}",
    f"dbname=x\npassword={SECRET}",
    f"'host=db password={SECRET}'",
    f"service=mine password={SECRET}",
    f"sslmode=require host=db sslpassword={SECRET}",
    f"options='-c x=y' password={SECRET} host=db",
    f"Server=db;Database=x;User Id=u;Password={SECRET};",
    f"Data Source=db;Pwd={SECRET}",
    f"tcp_user_timeout=9 password={SECRET}",
    "host=db dbname=x",
    "service=mine",
]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def refused(error: MunimentError) -> None:
    assert isinstance(error, InvalidInput)
    assert "postgresql://" in (error.hint or "")
    assert SECRET not in str(error.to_dict())
    assert os.listdir() == []


@pytest.mark.parametrize("given", KEYWORDS)
def test_the_library_refuses_it(given: str) -> None:
    for read_only in (False, True):
        with pytest.raises(InvalidInput) as caught:
            muniment.open(given, read_only=read_only)
        refused(caught.value)
    for call in (open_engine, file_named):
        with pytest.raises(InvalidInput) as caught:
            call(given)  # type: ignore[operator]
        refused(caught.value)


@pytest.mark.parametrize("given", KEYWORDS)
def test_settings_refuse_it_wherever_it_was_said(given: str, tmp_path: Path) -> None:
    elsewhere = tmp_path.parent / f"{tmp_path.name}-settings"
    elsewhere.mkdir()
    (elsewhere / "db").write_text(given)
    (elsewhere / "muniment.toml").write_text(f"db = {toml(given)}\n")
    said: list[tuple[dict[str, Any], dict[str, str]]] = [
        ({"db": given}, {}),
        ({}, {"MUNIMENT_DB": given}),
        ({}, {"MUNIMENT_DB_FILE": str(elsewhere / "db")}),
        ({}, {"MUNIMENT_CONFIG": str(elsewhere / "muniment.toml")}),
    ]
    for arguments, environ in said:
        with pytest.raises(InvalidInput) as caught:
            load_settings(arguments, environ)
        refused(caught.value)
        assert caught.value.path == "$.db"


def toml(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


COMMANDS = (
    ("store", "users"),
    ("store", "backup", "there.db"),
    ("store", "upkeep"),
    ("serve", "--port", "0"),
    ("verify",),
    ("doctor",),
    ("mcp",),
    ("hook", "--host", "claude-code"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("door", ["argument", "environment"])
def test_a_command_refuses_it(
    command: tuple[str, ...], door: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*command, "--db", KEYWORDS[0]] if door == "argument" else list(command)
    if door == "environment":
        monkeypatch.setenv("MUNIMENT_DB", KEYWORDS[0])
    monkeypatch.setattr("sys.stdin", StringIO(""))
    with suppress(SystemExit):
        cli(words)
    said = "".join(capsys.readouterr())
    assert SECRET not in said
    if command[0] != "hook":  # which never stands in a host's way, and takes no address from there
        assert "postgresql://" in said
    assert not [name for name in os.listdir() if "host" in name]


def test_a_file_with_such_a_name_that_is_there_is_meant() -> None:
    with muniment.open(Path("host=db")) as mem:
        mem.run(user_id="ana").observe("user", "I am a file.")
    with muniment.open("host=db") as mem:
        assert mem.store.overview().events
    assert file_named("host=db") == "host=db"


@for_each("name", ["a=b.db", "year=2026/memory.db", "team=red.db", "notes.db", "x y.db"])
def test_files_are_still_files(name: str) -> None:
    Path(name).parent.mkdir(exist_ok=True)
    muniment.open(name).close()
    assert Path(name).exists()


@pytest.mark.parametrize(
    "given",
    [
        f"jdbc:postgresql://db/x?user=u&password={SECRET}",
        f"mysql://u:{SECRET}/more@db/x",
        f"http://u:{SECRET}@db/x",
        f"postgresql://db/x?replica=host=db2 password={SECRET}",
    ],
)
def test_an_address_that_names_no_store_is_not_repeated(given: str) -> None:
    with pytest.raises(MunimentError) as caught:
        muniment.open(given)
    assert SECRET not in str(caught.value.to_dict())
