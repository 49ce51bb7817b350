"""The tree of commands: what stands where, in one line each. `--help` reads this and loads nothing else.

First what people do every day, then the groups. A home is a module of `commands` and the `Command` in it. A name that
other programs rely on stays at the top and is listed in its group (`hidden` there on the first screen).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["MOVED", "TREE", "Entry", "commands"]


class Entry(NamedTuple):
    """A command, or a group of them."""

    summary: str
    home: str = ""
    """The module of a command, and its name there: a module of `commands`, else one by its whole name."""
    entries: Mapping[str, Entry] = {}
    """The commands of a group, in the order in which they are shown."""
    about: str = ""
    default: str = ""
    """The entry that is meant where a group is called as a command."""
    hidden: bool = False


def _group(summary: str, about: str = "", default: str = "", /, **entries: Entry) -> Entry:
    named = {name.strip("_").replace("_", "-"): entry for name, entry in entries.items()}
    return Entry(summary, "", named, about, default)


_HOSTS = "muniment.surfaces.hosts.commands"
_MOVING = "muniment.surfaces.cli.moving"
_DOCTOR = "muniment.surfaces.cli.doctor"
_UPKEEP = "muniment.surfaces.cli.upkeeping"
_LESSONS = "muniment.surfaces.cli.lessons"

_REPLAY = Entry("Compose a kept build again: the same bytes.", "packets:replay")
_DIFF = Entry("Say what changed between two builds, and why.", "packets:diff")
_EXPORT = Entry("Write a store, or one user's memory, out as a file.", f"{_MOVING}:export")
_IMPORT = Entry("Read an export, or what another system held, into a store.", f"{_MOVING}:import_")
_VALIDATE = Entry("Check documents against their contract.", "contracts:validate")
_SCHEMA = _group(
    "List, show or export the JSON Schemas (draft 2020-12) of the kinds.",
    list=Entry("List every kind with the document it comes from.", "contracts:list_kinds"),
    show=Entry("Print the JSON Schema of KIND; with --json, on one line.", "contracts:show_schema"),
    export=Entry("Write one file for each kind into DIRECTORY, which is made if need be.", "contracts:export_schemas"),
)

_BILL = Entry("Say what a recorded conversation cost, with memory and without.", "billing:bill")

_RUN = _group(
    "Runs: how they stand, what they claim, their snapshots.",
    list=Entry("List runs, oldest first: whether each is open, locked or has ended, and what it is for.", "runs:list_"),
    show=Entry(
        "Show how a run stands: what it found and met, what it used, how far the next snapshot is.", "runs:show"
    ),
    log=Entry("Show a run as its entries tell it, whole with --json.", "runs:log"),
    events=Entry("List the events of a run, in order.", "runs:events"),
    bill=_BILL,
    turns=Entry("List what was said and, between the turns, what was composed: of a run or a user.", "memory:turns"),
    claims=Entry("List what a run claims and the words it rests on.", "runs:claims"),
    conflicts=Entry("List the conflicts that a run met, and how they were settled.", "runs:conflicts"),
    failures=Entry("List what failed in a run, and how often.", "runs:failures"),
    questions=Entry("List the questions of a run that are open.", "runs:questions"),
    verifications=Entry("List what verifiers said of a run's outputs.", "runs:verifications"),
    snapshot=Entry("Show, take or check a snapshot of a run.", "runs:snapshot"),
    snapshots=Entry("List the snapshots of a run.", "runs:snapshots"),
    narrative=Entry("Tell a snapshot in words, or what changed since another.", "runs:narrative"),
    resume=Entry("Say what a restart of a run would begin with.", "runs:resume"),
    unlock=Entry("Open a run again after it was locked.", "runs:unlock"),
    summarize=Entry("Give a summary of your own of a run's session.", "runs:summarize"),
    drift=Entry("Measure loops, stalls and what long runs forget.", "runs:drift"),
    view=Entry("Write a run as a page that needs no server.", "runs:view"),
)
_MEMORY = _group(
    "What is remembered of a user: episodes, candidates for facts, events.",
    "`muniment search` and `muniment facts` read it, `muniment forget` erases from it.",
    episodes=Entry("List a user's episodes and their best sentences.", "memory:episodes"),
    extract=Entry("Propose facts from what a user said by rule, with their quotes.", "memory:extract"),
    candidates=Entry("List the candidates for facts, and what became of them.", "memory:candidates"),
    history=Entry("List everything that a key ever held.", "memory:history"),
    events=Entry("List a user's events, session by session, in order.", "memory:events"),
    content=Entry("Print the full text of an event, checked against its hash.", "memory:content"),
    record=Entry("Record a conversation as a model's API has it; what is new is written.", "memory:record"),
)
_PACKET = _group(
    "Packets that were composed: replayed, compared, listed.",
    "`muniment compose` makes one, `muniment explain` says what it took, `muniment why` who was told a text.",
    list=Entry("List the builds that are kept, newest first.", "packets:list_"),
    replay=_REPLAY,
    diff=_DIFF,
    compare=Entry("Say what a build would have been under another policy.", "packets:compare"),
    preview=Entry("Say what a build would have been with other settings.", "packets:preview"),
    messages=Entry("Print a build as the messages of a chat.", "packets:messages"),
    in_view=Entry("List what was before the model with a build, and since when.", "billing:in_view"),
)
_CORPUS = _group(
    "Documents as evidence: added as chunks that can be searched and pointed to.",
    add=Entry("Add files of UTF-8 text, Markdown or HTML.", "corpora:add"),
    list=Entry("List the documents of a corpus.", "corpora:list_"),
    search=Entry("Find the chunks that answer a query, best first.", "corpora:search"),
    show=Entry("Show a chunk, or a document chunk by chunk.", "corpora:show"),
    retract=Entry("Take a document back: it is not found any more, and pointers into it resolve.", "corpora:retract"),
    forget=Entry("Erase a document, or the whole corpus, and print the receipt.", "corpora:forget"),
)
_PLAN = _group(
    "Make, list or show plans on learned memory.",
    "`muniment learn apply` carries one out, `muniment learn undo` takes it back.",
    make=Entry("Keep a plan from a file; nothing changes until it is applied.", "banks:make_plan"),
    list=Entry("List the plans of a bank, oldest first, and what came of each.", "banks:list_plans"),
    show=Entry("Show a plan: its actions, what was done of each, and which versions it left.", "banks:show_plan"),
)
_BANK = _group(
    "What was learnt from verified runs: of a user, of an agent or, without either, of the tenant.",
    list=Entry("List the learned records of a bank, oldest first, and how runs with each fared.", "banks:list_"),
    show=Entry("Show a record: what it says, when it applies, how it fared, where it comes from.", "banks:show"),
    logs=Entry("List the logs of the runs that were learnt from, newest first.", "banks:logs"),
    drafts=Entry("List the rules that folds have drafted. A draft is in force nowhere.", "banks:drafts"),
    tidy=Entry("Retire what has run out or is too much, by a plan that can be undone.", "banks:tidy"),
)
_LESSON = _group(
    "Lessons one by one: their life, a person's word on them, one of your own, and what a model proposed.",
    "`muniment learn lessons` lists them, `muniment learn undo` takes a signature or a drop back.",
    show=Entry("Show a lesson: what came of it, every change of it and why, and its runs.", f"{_LESSONS}:show"),
    sign=Entry("Answer for a lesson: it is active and stays so, and is measured all the same.", f"{_LESSONS}:sign"),
    drop=Entry("Hand a lesson to nobody any more, and say why.", f"{_LESSONS}:drop"),
    add=Entry("Add a lesson of your own; it is tried like any other.", "banks:add_lesson"),
    reports=Entry("List what a model proposed of runs, what was refused and why, and what it took.", "banks:reports"),
)
_REUSE = _group(
    "Seeds that passed, and tactics: listed, and a seed chosen to start from.",
    list=Entry("List the seeds and the tactics of a bank, apart.", "banks:list_reuse"),
    select=Entry("Say which seed PUCT would start from, with every term of every seed.", "banks:select_seed"),
)
_PATTERNING = _group(
    "Find weights of a data mixture that bring a wanted change, and try them. Offline.",
    plan=Entry("Make a plan from the measurements in a file.", "patterning:plan"),
    try_=Entry("Take a plan on: replay, then canary, then applied.", "patterning:try_"),
    rollback=Entry("Take a plan back: the base weights are in force again.", "patterning:rollback"),
    show=Entry("Show a plan: weights, predicted changes, where it stands.", "patterning:show"),
)
_LEARN = _group(
    "Learn from verified runs, and use what was learnt.",
    lessons=Entry("List what runs taught, and what came of it.", f"{_LESSONS}:list_"),
    lesson=_LESSON,
    recall=Entry("Show what earlier runs taught that fits a task.", "learning:recall"),
    fold=Entry("Learn from a run by what a verifier said of it.", "learning:fold"),
    plan=_PLAN,
    apply=Entry("Apply a plan, all of it or nothing; twice is once.", "banks:apply"),
    undo=Entry("Take an applied plan back: each record as it was before.", "banks:undo"),
    bank=_BANK,
    reuse=_REUSE,
    rollout=Entry("Have an agent try a task, as often as it takes.", "rollouts:rollout"),
    route=Entry("Say how to try a task, and why.", "rollouts:route"),
    rates=Entry("Measure what stays unknown, and what that asks for.", "rollouts:rates"),
    flowmap=Entry("Map where runs go wrong and what would help.", "learning:flowmap"),
    patterning=_PATTERNING,
)
_RULES = _group(
    "Rules: how they come into force and go.",
    "Of a user, of an agent or, without either, of the whole tenant. A fold drafts a rule, and nobody obeys a draft. "
    "It is submitted, given tests, put through its gate, replayed, tried on a share of runs, and promoted by a "
    "signature. Any earlier rulebook can be put in force again.",
    advance=Entry("Take every draft and rule as far as evidence allows.", "rules_tests:advance"),
    submit=Entry("Make a draft a temporary rule: alone, merged, or as an exception.", "rules_tests:submit"),
    add=Entry("Write a rule of your own, for a time.", "rules_tests:add"),
    lint=Entry("Say what is wrong with a rule or a draft.", "rules_reports:lint"),
    tests=Entry("List a rule's tests, make them from its runs, or add your own.", "rules_tests:tests"),
    gate=Entry("Run a rule's tests on an agent.", "rules_tests:gate"),
    replay=Entry("Try earlier tasks with a rule and without.", "rules_tests:replay"),
    canary=Entry("Let a share of real runs try a rule.", "rules_trials:canary"),
    watch=Entry("Say what the trials show; take back what does harm.", "rules_trials:watch"),
    report=Entry("Print what a person reads before signing.", "rules_reports:report"),
    promote=Entry("Make a rule active.", "rules_trials:promote"),
    retire=Entry("Take a rule out of force.", "rules_trials:retire"),
    rollback=Entry("Put an earlier rulebook in force again.", "rules_trials:rollback"),
    publish=Entry("Write what was counted into the rules.", "rules_trials:publish"),
    list=Entry("List the rules and where they stand.", "rules_view:list_"),
    show=Entry("Show a rule: text, place, figures, reports, history.", "rules_view:show"),
    select=Entry("Say which rules a run would get, and why not the others.", "rules_reports:select"),
    stats=Entry("Show what runs say of rules, with bounds.", "rules_view:stats"),
    revisions=Entry("List every change of the rulebook.", "rules_view:revisions"),
)
_RESEARCH = _group(
    "Take a question to a checked report with your agents.",
    "Routed, checked, bounded, and handed over with its sources. Commands stand in the order in which a run takes "
    "them; prompt and ingest are for each perspective. `status` says at any time how a run stands and what comes next.",
    init=Entry("Start a run with a question.", "research_runs:init"),
    route=Entry("Choose the perspectives.", "research_runs:route"),
    prompt=Entry("Print what to hand to a perspective's agent.", "research_runs:prompt"),
    ingest=Entry("Take an agent's output, or say why not.", "research_runs:ingest"),
    give_up=Entry("Go on without a perspective.", "research_runs:give_up"),
    pivot=Entry("Decide on a second wave.", "research_runs:pivot"),
    source=Entry("Keep a page or a snippet that was read.", "research_pack:source"),
    citations=Entry("Settle the status of every source.", "research_pack:citations"),
    pack=Entry("Check the claims and write the bounded pack.", "research_pack:pack"),
    claims=Entry("List the claims that no source bears, and why.", "research_pack:claims"),
    synthesis=Entry("Print all that a report may be written from.", "research_pack:synthesis"),
    check=Entry("Check a draft report against the pack.", "research_pack:check"),
    gates=Entry("Measure gates A to E as they stand.", "research_runs:gates"),
    status=Entry("Show how a run stands and what comes next.", "research_runs:status"),
    resume=Entry("Write the files anew from the store.", "research_runs:resume"),
    list=Entry("List the research runs of a store.", "research_runs:list_"),
)
_KEYS = _group(
    "API keys: who may ask a server for what. Kept as hashes; a token is shown once.",
    create=Entry("Make a key and show its token, once.", "keys:create"),
    list=Entry("List who has keys.", "keys:list_"),
    rotate=Entry("Give a key a new token; the old one holds a little longer.", "keys:rotate"),
    revoke=Entry("End a key at once.", "keys:revoke"),
)
_STORE = _group(
    "The store: who is in it, its dumps, its upkeep, the keys of its server.",
    tenants=Entry("List the tenants of a store.", "store:tenants"),
    users=Entry("List the users of a tenant and when they were seen.", "store:users"),
    overview=Entry("Say how much a tenant holds, and when something last happened.", "store:overview"),
    attention=Entry("List what waits for a person: locked runs, disputes, trials that decided.", "store:attention"),
    export=_EXPORT,
    import_=_IMPORT,
    backup=Entry("Copy a SQLite store into a file, while it is in use.", "store:backup"),
    restore=Entry("Put a copy back in the place of a store.", "store:restore"),
    upgrade=Entry("Copy a store or a dump of version 0.1 into a new store.", "store:upgrade"),
    rebuild=Entry("Compute every projection again from the ledger, and repair what differs.", "store:rebuild"),
    upkeep=Entry("Do what waits beside the daily work, shared with other processes.", f"{_UPKEEP}:upkeep"),
    index=Entry("Index what was loaded in bulk and still waits for it.", "store:index"),
    reembed=Entry("Bring every turn to the present embedder.", "store:reembed"),
    scrub=Entry("Rebuild the store's files without what was forgotten.", "store:scrub"),
    keys=_KEYS,
)
_CHECK = _group(
    "Check outputs, documents and commands, for CI.",
    "",
    "outputs",
    outputs=Entry("Check OUTPUTs against the constraint file CONSTRAINTS (YAML).", "checking:check", hidden=True),
    init=Entry("Write a first file of constraints.", "checking:init"),
    verify_output=Entry("Verify an output: form, facts, a run.", "checking:verify_output"),
    sandbox=Entry("Run a command walled off, and say what it met.", "sandbox:run"),
    validate=_VALIDATE,
    schema=_SCHEMA,
)
_EVAL = _group(
    "Ask questions whose answers are known, for people and CI.",
    "",
    "questions",
    questions=Entry("Ask QUESTIONS of a memory, and say what was missed and why.", "evals:questions", hidden=True),
    init=Entry("Write a first file of questions from a store's facts.", "evals:init"),
)

TREE: Mapping[str, Entry] = {
    "demo": Entry("Run the main job on a sample, end to end.", "first_steps:demo"),
    "ingest": Entry("Write a file of messages into the ledger.", "ingest:ingest"),
    "search": Entry("Find what a user's memory holds for a query.", "memory:search"),
    "compose": Entry("Compose a packet for a planner, tool or responder.", "packets:compose"),
    "explain": Entry("Say what a build took, what it left out, and why.", "packets:explain"),
    "why": Entry("Say which builds told a model a text, and from which event.", "packets:why"),
    "facts": Entry("List a user's facts and what they rest on.", "memory:facts"),
    "profile": Entry("Print who a user is, in their own dated words.", "memory:profile"),
    "forget": Entry("Erase content everywhere and print the receipt.", "store:forget"),
    "verify": Entry("Walk the hash chains and name the first broken link.", "store:verify"),
    "serve": Entry("Serve the store over HTTP, with its inspector and MCP.", "serving:serve"),
    "mcp": Entry("Serve one user's memory to an agent over MCP (stdio).", "serving:mcp"),
    "proxy": Entry("Put this memory in front of a model's server.", "serving:proxy"),
    "doctor": Entry("Say what is installed, and what your settings ask for that is not.", f"{_DOCTOR}:doctor"),
    "extract": Entry("Have a model read what users said, within a budget.", "memory:extract_pending"),
    "install": Entry("Put memory into a coding agent: its hooks and its MCP server.", f"{_HOSTS}:install"),
    "uninstall": Entry("Take out of a coding agent what install put in.", f"{_HOSTS}:uninstall", hidden=True),
    "hook": Entry("Take one event of a coding agent's hook; a host runs it.", f"{_HOSTS}:hook", hidden=True),
    "run": _RUN,
    "memory": _MEMORY,
    "packet": _PACKET,
    "corpus": _CORPUS,
    "learn": _LEARN,
    "rules": _RULES,
    "research": _RESEARCH,
    "store": _STORE,
    "check": _CHECK,
    "eval": _EVAL,
    "completion": Entry("Print a completion script for bash, zsh or fish.", "first_steps:completion"),
    "bill": _BILL._replace(hidden=True),
    "replay": _REPLAY._replace(hidden=True),
    "diff": _DIFF._replace(hidden=True),
    "export": _EXPORT._replace(hidden=True),
    "import": _IMPORT._replace(hidden=True),
    "validate": _VALIDATE._replace(hidden=True),
    "schema": _SCHEMA._replace(hidden=True),
}
"""The commands and groups by name, in the order in which `--help` shows them."""

MOVED: Mapping[str, str] = {
    **dict.fromkeys(
        ("bank", "reuse", "plan", "apply", "undo", "recall", "fold", "rollout", "route", "flowmap"), "learn"
    ),
    **dict.fromkeys(("claims", "snapshot", "narrative", "resume", "drift"), "run"),
    "episodes": "memory",
    **dict.fromkeys(("users", "scrub", "keys"), "store"),
    "patterning": "learn",
    "compare": "packet",
    "sandbox": "check",
    "verify-output": "check",
}
MOVED = {name: f"{group} {name}" for name, group in MOVED.items()} | {
    "observe-rates": "learn rates",
    "view": "run view",
}
"""Names that stood at the top once, and where they are now."""


def commands(entries: Mapping[str, Entry] = TREE, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Entry]:
    """Every command by its path; one that has two is there twice."""
    found: dict[tuple[str, ...], Entry] = {}
    for name, entry in entries.items():
        if entry.entries:
            found |= commands(entry.entries, (*path, name))
        else:
            found[(*path, name)] = entry
    return found
