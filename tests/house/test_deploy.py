"""What `deploy/` holds is true of the server, and is taken by the tools that read it, where those are installed.

No container engine is asked for: the image is looked at as text, and docs/guides/running.md says what was run by hand.
"""

from __future__ import annotations

import json
import re
import shutil
import stat
import subprocess
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from muniment.surfaces.http._metrics import FAMILIES, family
from muniment.surfaces.http.settings import ServerSettings, networks_of
from muniment.surfaces.settings import NAMES
from products import for_each

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
BOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "board.json").read_text("utf-8"))
RULES = [
    rule
    for group in yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text("utf-8"))["groups"]
    for rule in group["rules"]
]
EXPRESSIONS = [rule["expr"] for rule in RULES] + [
    target["expr"] for panel in BOARD["panels"] for target in panel["targets"]
]
SETTINGS = {f"MUNIMENT_{name.upper()}" for name in (*NAMES, *(each.name for each in fields(ServerSettings)))}
_STAGE = re.compile(r"^FROM ", re.MULTILINE)


def dockerfile() -> str:
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    return re.sub(r"\\\n\s*", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))


def run(name: str, *arguments: str, cwd: Path = ROOT) -> str:
    """A tool over these files; where it is not installed, the test says so."""
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"optional: {name} is not installed: what it would say of deploy/ is not known here")
    done = subprocess.run([program, *arguments], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# -- the image ----------------------------------------------------------------------------------------


def test_the_image_ends_without_root_and_without_what_built_it() -> None:
    *built, last = _STAGE.split(dockerfile())
    assert len(built) >= 3
    assert re.search(r"^USER 10001:10001$", last, re.MULTILINE)
    assert last.index("USER ") < last.index("ENTRYPOINT")
    for word in ("pip", "npm", "apt", "curl", "wget", "sudo", "ADD ", "chmod 777"):
        assert word not in last, word
    assert re.search(r'^HEALTHCHECK .* CMD \["python", "-c", ', last, re.MULTILINE)
    assert "/v1/ready" in last
    compile(json.loads(last.split(" CMD ", 1)[1].split("\n")[0])[2], "the health check", "exec")


def test_what_the_image_copies_is_there_and_nothing_else_is_sent() -> None:
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    sent = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    assert "*" in ignored
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", dockerfile(), re.MULTILINE)
    assert {name for line in copied for name in line.split()} == sent
    for name in sent:
        assert (ROOT / name).exists(), name


def test_the_wheel_takes_the_inspector_along_although_git_does_not() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert project["tool"]["hatch"]["build"]["artifacts"] == ["/src/muniment/surfaces/inspector/dist/"]
    assert all(name in dockerfile() for name in project["project"]["license-files"])
    (extras,) = re.findall(r"muniment-\*\.whl\)\[([a-z,]+)\]", dockerfile())
    assert set(extras.split(",")) <= set(project["project"]["optional-dependencies"])


def test_settings_that_files_name_exist() -> None:
    for name in ("Dockerfile", "compose.yaml", "muniment.service"):
        found = set(re.findall(r"\bMUNIMENT_[A-Z_]+\b", (DEPLOY / name).read_text("utf-8")))
        assert found, name
        assert found <= SETTINGS | {"MUNIMENT_DB_FILE"}, name


# -- compose ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_has_its_walls(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert set(service.get("secrets", ())) <= set(COMPOSE["secrets"])
    assert set(service["networks"]) <= set(COMPOSE["networks"])
    for port in service.get("ports", ()):
        assert port.startswith("127.0.0.1:"), "to this machine alone"
    for volume in service.get("volumes", ()):
        place = volume.split(":")[0]
        assert place in COMPOSE["volumes"] or (DEPLOY / place).exists(), volume
    for value in service.get("environment", {}).values():
        assert "password" not in value.lower() or value.startswith("/run/secrets/"), "passwords come from files"


def test_what_is_asked_first_is_healthy_and_the_watchers_network_is_let_in() -> None:
    assert "pg_isready" in SERVICES["database"]["healthcheck"]["test"]
    assert SERVICES["server"]["depends_on"]["database"] == {"condition": "service_healthy"}
    subnet = COMPOSE["networks"]["watching"]["ipam"]["config"][0]["subnet"]
    assert subnet in map(str, networks_of(SERVICES["server"]["environment"]["MUNIMENT_METRICS"]))
    assert COMPOSE["networks"]["inside"] == {"internal": True}, "the database is reached by the server alone"
    assert SERVICES["database"]["networks"] == ["inside"]
    targets = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text("utf-8"))["scrape_configs"]
    assert targets[0]["static_configs"] == [{"targets": ["server:8765"]}]


def test_secrets_are_made_once_and_for_their_owner(tmp_path: Path) -> None:
    script = tmp_path / "make_secrets.sh"
    shutil.copy(DEPLOY / "make_secrets.sh", script)
    folder = tmp_path / "secrets"
    run("sh", str(script))
    made = {path.name: path.read_text() for path in folder.iterdir()}
    assert {f"./secrets/{name}" for name in made} == {each["file"] for each in COMPOSE["secrets"].values()}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert made["muniment_db"] == f"postgresql://muniment:{made['muniment_password']}@database:5432/muniment"
    assert all(re.fullmatch(r"[0-9a-f]{48}", text) for name, text in made.items() if name != "muniment_db")
    run("sh", str(script))
    assert {path.name: path.read_text() for path in folder.iterdir()} == made
    ignored = (ROOT / ".gitignore").read_text("utf-8").splitlines()
    assert "/deploy/secrets/" in ignored


# -- what is watched ----------------------------------------------------------------------------------


@for_each("expression", EXPRESSIONS, ids=lambda text: re.sub(r"\W+", " ", text)[:40])
def test_figures_that_are_asked_for_are_told_with_these_labels(expression: str) -> None:
    names = {each.name: each for each in FAMILIES}
    found = re.findall(r"\b((?:muniment|process)_[a-z_]+)(?:\{(.*?)\})?", expression)
    assert found or expression.startswith("up{")
    for name, inner in found:
        told = re.sub(r"_(bucket|sum|count)$", "", name) if name not in names else name
        assert told in names, name
        asked = set(re.findall(r'(\w+)\s*[!=]~?"', inner)) - {"instance", "job"}
        assert asked <= set(family(told).labels), f"{name} has no {asked}"
    named = {label for by in re.findall(r"by \(([^)]*)\)", expression) for label in by.split(", ")}
    assert named <= {"instance", "le", *(label for each in FAMILIES for label in each.labels)}


def test_the_board_is_whole() -> None:
    assert BOARD["uid"] == "muniment"
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
    places: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not places & cells, f"{panel['title']} lies over another"
        assert at["x"] + at["w"] <= 24
        places |= cells
        assert panel["datasource"]["uid"] == "${source}"
    shown = " ".join(EXPRESSIONS)
    for each in FAMILIES:
        if each.name not in ("muniment_build_info", "muniment_metrics_dropped_total", "process_start_time_seconds"):
            assert each.name in shown, f"nobody looks at {each.name}"


def test_every_alert_says_what_to_do() -> None:
    assert len(RULES) >= 8
    for rule in RULES:
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["summary"].endswith(".")
        assert rule["annotations"]["action"].endswith(".")


# -- the tools that read them -------------------------------------------------------------------------


def test_promtool_takes_the_rules_and_they_fire() -> None:
    folder = DEPLOY / "prometheus"
    run("promtool", "check", "config", "prometheus.yml", cwd=folder)
    run("promtool", "test", "rules", "alerts_test.yml", cwd=folder)


def test_hadolint_finds_nothing() -> None:
    assert run("hadolint", "deploy/Dockerfile") == ""


def test_systemd_takes_the_unit_and_finds_it_walled_off(tmp_path: Path) -> None:
    unit = tmp_path / "muniment.service"
    text = (DEPLOY / "muniment.service").read_text("utf-8")
    unit.write_text(text.replace("/opt/muniment/bin/muniment", "/bin/true"))
    run("systemd-analyze", "verify", "--man=no", str(unit))
    said = run("systemd-analyze", "security", "--offline=true", "--threshold=20", str(unit))
    (level,) = re.findall(r"exposure level for \S+: ([\d.]+)", said)
    assert float(level) < 2


@pytest.mark.parametrize("name", ["make_secrets.sh", "postgres/make_database.sh"])
def test_scripts_can_be_run(name: str) -> None:
    assert (DEPLOY / name).stat().st_mode & stat.S_IXUSR
    run("sh", "-n", str(DEPLOY / name))
