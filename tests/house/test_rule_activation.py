"""Only one way to be active (RC-14, RC-18): the code is walked for another, and every door is tried.

`rules.activation` makes a rule active. Who else writes a status or a stage is named here, with the reason why
no rule becomes active by it; a place that is new has to say so, or go through the gate.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from products import for_each

SOURCE = Path(__file__).parent.parent.parent / "src" / "muniment"
ACTIVATION = "rules/activation.py"
WORDS = frozenset({"status", "stage"})
SPOKEN = (
    (r"\b(status|stage)\b", r"\b(StoredMemory|RuleRecord|rule_id|Rulebook)\b"),
    (r"\b(Insert|Put|insert|put)\(", r"\b(items|ITEMS)\b"),
    (r"rules\.activation",),
)
"""Words that stand together in every module that gives a rule a status, writes items, or asks for an activation."""
HARMLESS = frozenset({"temporary", "retired", "pinned", "pruned", "drafted", "gated", "replayed"})
OTHER_KINDS = frozenset({"tactic_id", "memory_id", "working_set_id", "ws_id", "state_id", "fact_id", "test_id"})
"""A record that has such an id is no rule."""
Modules = dict[str, tuple[ast.Module, "Walk"]]
RULE_MAKERS = frozenset({"StoredMemory", "RuleRecord"})

KNOWN = {
    ("learning/_operations.py", "action_record"): "of an operation: applied, skipped, failed",
    (
        "learning/_operations.py",
        "_kept",
    ): "a payload that says active is refused where the kind is a rule (read_payload)",
    ("learning/_operations.py", "_next"): "pinned or pruned",
    ("learning/_operations.py", "in_step"): "the status that the operation gave, which is never active of a rule",
    ("learning/_operations.py", "_restored"): "what did not exist before: retired in the same breath",
    ("learning/banks.py", ""): "what a kept record leaves unsaid; its own status stands over it",
    ("learning/lesson_moving.py", "_use"): "of a use of a tactic: where that stood then",
    ("learning/lesson_moving.py", "bank_arms"): "of a use of a tactic: where that stood then",
    ("learning/lessons.py", "_fields"): "of a Lesson that is shown: read off the records, and never written",
    ("learning/lessons.py", "_history"): "of a LessonChange that is shown: read off the versions, and never written",
    ("learning/plans.py", "ended_draft"): "of a plan: applied, aborted, undone",
    ("rules/rulebook.py", "_next"): "evidence added to a rule, whose status stays",
    ("surfaces/cli/learn.py", ""): "the help of the option --stage",
    ("surfaces/cli/rules.py", ""): "the help of the option --stage",
    ("surfaces/cli/rules.py", "_show_list"): "rows of a table",
    ("surfaces/cli/rules.py", "_show_rule"): "rows of a table",
}
"""Places that give a record of a bank a status which is not a plain harmless word, and why none of them activates."""

ITEM_WRITERS = {"store/items.py", "store/verify.py", "store/transfer.py"}
"""Where versions of items are written: by projections (`items`, `verify`), and from dumps, whose rules are asked."""


class Walk(ast.NodeVisitor):
    """Every place of a module that gives something a status or a stage."""

    def __init__(self) -> None:
        self.function = ""
        self.found: set[tuple[str, str, str]] = set()
        self.item_writes = 0

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg != "details":  # what an error tells
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outer, self.function = self.function, self.function or node.name
        self.generic_visit(node)
        self.function = outer

    def visit_Dict(self, node: ast.Dict) -> None:
        keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
        if not keys & OTHER_KINDS:
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value in WORDS:
                    self._given(node, key.value, value)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = next(iter(names_in(node.func)), "") or ast.unparse(node.func)
        given = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None}
        kind = given.get("kind")
        is_other = isinstance(kind, ast.Constant) and kind.value != "rule"
        if not is_other and (name in RULE_MAKERS or "memory" in name or name in ("replace", "_next", "_kept")):
            for word in WORDS & given.keys():
                self._given(node, word, given[word])
        if name in ("Insert", "Put") and node.args and getattr(node.args[0], "value", None) == "items":
            self.item_writes += 1
        if name in ("insert", "put") and len(node.args) > 1 and getattr(node.args[1], "id", None) == "ITEMS":
            self.item_writes += 1
        if name == "setattr" and len(node.args) == 3 and getattr(node.args[1], "value", None) in WORDS:
            self._given(node, "status", node.args[2])
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            key = getattr(target, "slice", None)
            named = target.attr if isinstance(target, ast.Attribute) else getattr(key, "value", None)
            if isinstance(target, ast.Attribute | ast.Subscript) and named in WORDS:
                self._given(node, str(named), node.value)
        self.generic_visit(node)

    def _given(self, node: ast.AST, word: str, value: ast.expr) -> None:
        if isinstance(value, ast.IfExp):
            self._given(node, word, value.body)
            self._given(node, word, value.orelse)
        elif not (isinstance(value, ast.Constant) and value.value in HARMLESS):
            self.found.add((self.function, word, ast.unparse(value)))


def is_spoken(text: str) -> bool:
    return any(all(re.search(word, text) for word in words) for words in SPOKEN)


def walk(tree: ast.AST) -> Walk:
    seen = Walk()
    seen.visit(tree)
    return seen


@pytest.fixture(scope="module")
def modules() -> Modules:
    """Every module by name, and what a walk of it finds; without those that have none of the words we look for."""
    texts = {path.relative_to(SOURCE).as_posix(): path.read_text("utf-8") for path in SOURCE.rglob("*.py")}
    trees = {name: ast.parse(text) for name, text in sorted(texts.items()) if is_spoken(text)}
    return {name: (tree, walk(tree)) for name, tree in trees.items()}


def names_in(node: ast.AST) -> set[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return {name}
        case ast.ImportFrom(names=aliases):
            return {alias.name for alias in aliases}
        case ast.Constant(value="rule_id" | "Rulebook"):
            return {"RuleRecord"}
    return set()


def of_banks(tree: ast.Module) -> bool:
    """Does a module deal in records of banks? No other can make a rule."""
    return any(RULE_MAKERS & names_in(node) for node in ast.walk(tree))


@pytest.mark.req("RC-14", "RC-18")
def test_no_module_but_activation_gives_a_rule_the_word_active(modules: Modules) -> None:
    strange: list[str] = []
    used: set[tuple[str, str]] = set()
    for name, (tree, seen) in modules.items():
        if name == ACTIVATION or not seen.found or not of_banks(tree):
            continue
        for function, word, value in sorted(seen.found):
            if (name, function) in KNOWN:
                used.add((name, function))
            elif "active" in value or not value.startswith(("'", '"')):
                strange.append(f"{name}, {function or 'module'}: {word} = {value}")
    assert not strange, "a rule could become active here; go through rules.activation, or say why not in KNOWN"
    assert used == KNOWN.keys(), f"no longer there: {sorted(KNOWN.keys() - used)}"


@pytest.mark.req("RC-14")
def test_activation_is_asked_by_promotion_alone(modules: Modules) -> None:
    """Those that yield an active rule are called where a report is made, and nowhere else."""
    makers = {"activated", "narrowed", "restored"}
    callers = set()
    for name, (tree, _) in modules.items():
        imported = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "muniment.rules.activation"
            for alias in node.names
        }
        callers |= {name} if makers & imported else set()
    assert callers == {"rules/promotion.py"}


@pytest.mark.req("RC-14")
def test_items_are_written_by_projections_and_from_dumps_that_were_asked(modules: Modules) -> None:
    writers = {name for name, (_, seen) in modules.items() if seen.item_writes}
    assert writers - {"testing/engine_contract.py"} == ITEM_WRITERS


@for_each(
    "text",
    [
        "StoredMemory(id='r', kind='rule', status='active')",
        "memory.model_copy(update={'stage': 'active'})",
        "def f(memory, word): return memory.model_copy(update={'status': word})",
        "record = rule.to_wire() | {'status': 'active'}",
        "record['status'] = 'active'",
        "RuleRecord.from_wire({'rule_id': 'r', 'status': 'active' if ready else 'temporary'})",
        "setattr(memory, 'stage', 'active')",
        "memory.stage = 'active'",
        "StoredMemory(**kept, stage=stage)",
    ],
)
def test_the_walk_would_see_it(text: str) -> None:
    assert walk(ast.parse(text)).found


@for_each(
    "text",
    [
        "{'tactic_id': 't', 'status': 'active'}",
        "StoredMemory(id='s', kind='seed', status='active')",
        "StoredMemory(id='r', kind='rule', status='temporary', stage='drafted')",
        "if memory.status == 'active': pass",
        "item_of(status='active')",
        "memory.model_copy(update={'status': 'retired' if old else 'pinned'})",
    ],
)
def test_the_walk_raises_no_false_alarm(text: str) -> None:
    assert not walk(ast.parse(text)).found
