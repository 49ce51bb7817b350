"""`muniment rules`: a rule from its draft to its end, command by command."""

from __future__ import annotations

import click

from muniment.surfaces.cli.main import LazyGroup

__all__ = ["COMMANDS", "rules"]

_VIEW = "muniment.surfaces.cli.rules_view"
_CHOICE = "muniment.surfaces.cli.rules_choice"
_TESTS = "muniment.surfaces.cli.rules_tests"
_TRIALS = "muniment.surfaces.cli.rules_trials"

# In the order in which a rule takes them; then what looks at them.
COMMANDS: dict[str, tuple[str, str, str]] = {
    "submit": (_TESTS, "submit", "Make a draft a temporary rule: alone, merged, or as an exception."),
    "add": (_TESTS, "add", "Write a rule of your own, for a time."),
    "lint": (_CHOICE, "lint", "Say what is wrong with a rule or a draft."),
    "tests": (_TESTS, "tests", "List a rule's tests, make them from its runs, or add your own."),
    "gate": (_TESTS, "gate", "Run a rule's tests on an agent."),
    "replay": (_TESTS, "replay", "Try earlier tasks with a rule and without."),
    "canary": (_TRIALS, "canary", "Let a share of real runs try a rule."),
    "watch": (_TRIALS, "watch", "Say what the trials show; take back what does harm."),
    "report": (_CHOICE, "report", "Print what a person reads before signing."),
    "promote": (_TRIALS, "promote", "Make a rule active."),
    "retire": (_TRIALS, "retire", "Take a rule out of force."),
    "rollback": (_TRIALS, "rollback", "Put an earlier rulebook in force again."),
    "publish": (_TRIALS, "publish", "Write what was counted into the rules."),
    "list": (_VIEW, "list_", "List the rules and where they stand."),
    "show": (_VIEW, "show", "Show a rule: text, place, figures, reports, history."),
    "select": (_CHOICE, "select", "Say which rules a run would get, and why not the others."),
    "stats": (_VIEW, "stats", "Show what runs say of rules, with bounds."),
    "revisions": (_VIEW, "revisions", "List every change of the rulebook."),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def rules() -> None:
    """The rules of a user, of an agent or, without either, of the whole tenant: how they come into force and go.

    A fold drafts a rule, and nobody obeys a draft. It is submitted, given tests, put through its gate, replayed, tried
    on a share of runs, and promoted by a signature. Any earlier rulebook can be put in force again.
    """
