"""Hints of the library, said for who types commands: `mem.runs()` becomes `muniment run list`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

__all__ = ["in_words_of_commands"]

PHRASES: Mapping[str, Mapping[str, str]] = {
    "research": {
        "resume() (`muniment research resume`) writes": "`resume` writes",
        "resume() writes": "`resume` writes",
        "pivot() first": "`pivot` first",
        "open_research(run_id) takes it up again": "`status` shows how it stands",
        "mem.runs() lists those there are": "`list` names the research runs of this store",
        "leave objective out to take the run up again; start a new run for another objective": (
            "`status` shows how it stands; without --run-id a new run gets an id of its own"
        ),
        "start one with a question": "`list` names the runs of this store, `init` starts one",
        "open_research(run_id, directory=…)": "--dir PATH",
        "none yet: route first": "none yet: `route` first",
        "give it up with a reason": "`give-up` with a reason",
        "start another run, or accept": "`init` starts another run; or accept",
    },
    "rules": {
        "`status` says what comes next": "`muniment rules show RULE` says where it stands",
        "`gates` says what would help": "`muniment rules report RULE` says what is missing",
        "the details hold every reason": "`muniment rules report RULE` has every reason",
        "gate it first": "`muniment rules gate` comes first",
        "test it again": "`muniment rules gate` it again",
    },
    "": {
        "mem.runs() lists those there are": "`muniment run list` names the runs of this store",
        "make a plan that says what should be now": "`muniment learn plan make` a plan that says what should be now",
        "give it another id": "give it another plan_id, or leave it out",
        "documents are added through mem.corpus(…)": "`muniment corpus` and `muniment learn bank` are for those",
        "open(..., embedder=…)": "set MUNIMENT_EMBEDDER, or embedder in muniment.toml",
        "as bucket_key() writes it": "impact 1 to 3, domain, clarity low, med or high",
    },
}
"""Phrases of the library's hints by the group of the command that met them; those of "" are for all."""

_BESIDE = re.compile(r"gate\('([^']+)', agent, beside='([^']+)'\)")
_NAMED = re.compile(r"`([a-z-]+)`")
_OF_NO_RUN = ("init", "list")


def in_words_of_commands(group: str, hint: str, message: str, named: str | None) -> str:
    """A hint for a command of this group; `named` is the run or rule that it was about."""
    if group == "rules" and "no one has signed" in message:
        return "--signed-by NAME says who answers for it"
    for phrase, said in {**PHRASES[""], **PHRASES.get(group, {})}.items():
        hint = hint.replace(phrase, said.replace("RULE", named or "RULE") if group == "rules" else said)
    if group == "rules":
        return _BESIDE.sub(r"`muniment rules gate \1 --beside \2 --agent MODULE:FUNCTION`", hint)
    return _of_research(hint, named or "RUN") if group == "research" else hint


def _of_research(hint: str, run_id: str) -> str:
    """Commands that a hint names, with the run that they are for."""
    from muniment.surfaces.cli.tree import TREE

    def spell(found: re.Match[str]) -> str:
        name = found[1]
        if name not in TREE["research"].entries:
            return found[0]
        of = "" if name in _OF_NO_RUN else f" {shlex.quote(run_id)}"
        return f"`muniment research {name}{of}`"

    return _NAMED.sub(spell, hint)
