"""The search of the site lists the page that answers a question first, for the words that people type."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
ASKED = {
    "back-up-and-restore": ("back up", "backup", "restore"),
    "can-a-web-page-inject-instructions": ("prompt injection", "untrusted web page"),
    "can-i-use-await": ("async", "asyncio", "await"),
    "can-several-agents-share-a-memory": ("several agents one memory", "multi-agent"),
    "can-two-processes-share-one-file": ("two processes on one file", "concurrency", "database is locked"),
    "delete-one-message": ("delete a message", "remove one event"),
    "do-allergies-always-come-first": ("allergies", "allergy"),
    "does-it-break-my-prompt-cache": ("prompt cache", "prompt caching"),
    "does-it-work-offline": ("offline", "telemetry", "air-gapped"),
    "fix-a-wrong-fact": ("fix a wrong fact", "correct a fact", "edit memory"),
    "forget-a-user": ("forget a user", "GDPR", "delete user data"),
    "how-big-does-the-file-get": ("how big does the file get", "disk usage", "database size"),
    "how-do-dates-and-time-zones-work": ("time zone", "yesterday"),
    "how-do-i-check-an-answer": ("hallucination", "check an answer"),
    "how-do-i-export-a-users-data": ("export user data", "data portability"),
    "how-do-i-extract-facts-with-a-model": ("extract facts with a model", "background extraction"),
    "how-do-i-import-existing-chats": ("import chats", "import existing history"),
    "how-do-i-move-from-mem0": ("move from mem0", "mem0 replacement"),
    "how-do-i-resume-an-agent": ("resume an agent", "interrupted run"),
    "how-do-i-separate-tenants": ("multi-tenant", "keep customers apart"),
    "how-do-i-set-a-token-budget": ("token budget", "max_tokens"),
    "how-do-i-show-sources": ("citations", "show sources"),
    "how-do-i-test-my-memory-in-ci": ("evaluation", "memory got worse", "eval in CI"),
    "how-do-i-use-it-without-python": ("without python", "typescript", "curl"),
    "how-fast-is-it": ("how fast", "latency", "performance"),
    "is-it-encrypted": ("encryption", "is it encrypted"),
    "keep-only-90-days": ("retention", "90 days", "expire old messages"),
    "replay-an-old-prompt": ("replay", "reproduce a prompt", "audit"),
    "search-by-meaning": ("embeddings", "search by meaning", "semantic search"),
    "what-did-the-tool-do": ("tool calls", "search tool results"),
    "what-does-it-cost": ("cost", "price", "what does it cost"),
    "what-does-muniment-know-about-my-user": ("profile", "what do you know about the user"),
    "what-does-score-mean": ("what does score mean", "min_score", "relevance threshold"),
    "what-happens-to-passwords-and-api-keys": ("passwords", "API keys", "redaction of secrets"),
    "what-happens-when-my-process-crashes": ("crash", "data loss", "durability"),
    "what-if-the-user-changes-their-mind": ("change of mind", "contradiction", "outdated facts"),
    "what-is-stored-on-disk": ("what is stored on disk", "sqlite schema"),
    "what-may-a-responder-see": ("planner and responder", "purpose"),
    "which-languages-work": ("languages", "chinese", "which languages"),
    "why-does-search-find-nothing": ("search finds nothing", "no results"),
    "why-was-the-model-told-this": ("why was the model told this", "why", "debug prompt"),
}


def test_every_question_is_asked() -> None:
    pages = {page.stem for page in (ROOT / "docs" / "questions").glob("*.md")} - {"index"}
    assert pages == set(ASKED)


@pytest.mark.slow
def test_a_question_is_found_at_the_first_try(tmp_path: Path) -> None:
    """The site is built, and its own search worker is asked, in Node.js as in a browser."""
    pytest.importorskip("mkdocs", reason="optional: the site is not built here")
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no Node.js to run the search of the site in")
    built = subprocess.run(
        [sys.executable, ROOT / "tools" / "docs_site.py", tmp_path / "site"],
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (site,) = (each.parent for each in (tmp_path / "site").glob("*/index.html"))
    wanted = [(query, f"questions/{page}.html") for page, queries in ASKED.items() for query in queries]
    (tmp_path / "queries.json").write_text(json.dumps([query for query, _ in wanted]), "utf-8")
    asked = subprocess.run(
        [node, Path(__file__).parent / "site_search.cjs", site, tmp_path / "queries.json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode == 0, asked.stderr
    found = json.loads(asked.stdout)
    missed = [
        f"{query}: {pages[:2]}" for (query, page), pages in zip(wanted, found, strict=True) if pages[:1] != [page]
    ]
    assert not missed, "\n".join(missed)
