"""An integration without its package says which extra brings it; those that need none import without any."""

from __future__ import annotations

import subprocess
import sys

import pytest

_WITHOUT = """
import sys
names = ("langgraph", "langchain_core", "agents", "pydantic_ai", "llama_index", "anthropic", "mem0", "openai")
frameworks = ("google.adk", "google.genai", "agent_framework", "haystack", "smolagents", "autogen_core")
for name in (*names, "claude_agent_sdk", *frameworks):
    sys.modules[name] = None
from muniment.errors import MissingDependency
import importlib
try:
    importlib.import_module({module!r})
except MissingDependency as error:
    print(error.hint)
else:
    print("imported")
"""


def imported(module: str) -> str:
    script = _WITHOUT.format(module=module)
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.soak
@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("langgraph", "langgraph"),
        ("openai_agents", "openai-agents"),
        ("pydantic_ai", "pydantic-ai"),
        ("llama_index", "llama-index"),
        ("anthropic.tool", "anthropic"),
        ("claude_agent_sdk", "claude-agent-sdk"),
        ("google_adk", "google-adk"),
        ("agent_framework", "agent-framework"),
        ("autogen", "autogen"),
        ("haystack", "haystack"),
        ("smolagents", "smolagents"),
        ("crewai", "crewai"),
        ("strands", "strands"),
        ("dspy", "dspy"),
    ],
)
def test_a_missing_package_names_its_extra(module: str, extra: str) -> None:
    assert imported(f"muniment.integrations.{module}") == f'pip install "muniment[{extra}]"'


@pytest.mark.soak
@pytest.mark.parametrize("module", ["mem0", "anthropic", "hooks", "keyed_documents", "transcript", "session"])
def test_what_needs_no_package_imports_without_any(module: str) -> None:
    assert imported(f"muniment.integrations.{module}") == "imported"
