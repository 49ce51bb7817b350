"""Chapter 2: a long run with its documents: steps, claims, conflicts, failures, questions, snapshots, verification."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import muniment
from golden_store.store import GoldenStore
from muniment.errors import RunLocked

__all__ = ["write_long_runs"]

TASK: dict[str, Any] = {"user_id": "ana", "agent_id": "surveyor", "session_id": "survey", "run_id": "run-survey"}


def write_long_runs(store: GoldenStore) -> None:
    store.go_to("2026-02-02T08:00:00+00:00")
    _documents(store)
    run = store.mem.run(
        **TASK,
        objective="Survey the bridges of Alder",
        done_definition={"answer": "a list of bridges that need repair", "constraints": ["cite every bridge"]},
        budgets={"tokens": 50_000, "steps": 200},
    )
    found = _steps(store, run)
    _claims(run, found)
    _verifications(run, found)
    _locked_and_repaired(store, run)
    _resumed(store)


def _documents(store: GoldenStore) -> None:
    """Documents that a tenant shares and that are a user's own: Markdown, HTML and text, revised and retracted."""
    handbook = store.mem.corpus("handbook")
    handbook.add(
        "# Bridges\n\nStone bridges are inspected every six years.\n\n## Steel\n\nSteel bridges are inspected "
        "every three years. Rust is measured in millimetres.\n",
        document_id="bridges.md", title="The bridge handbook", source="https://alder.example.org/bridges.md",
    )  # fmt: skip
    handbook.add("# Bridges\n\nStone bridges are inspected every five years.\n", document_id="bridges.md")
    handbook.add(
        "<html><title>Tolls</title><body><h1>Tolls</h1><p>The toll of the North Bridge is 2 euros.</p></body></html>",
        document_id="tolls.html",
        metadata={"year": 2024},
    )
    handbook.add("The old crane stands at the South Quay.", document_id="crane.txt", ts="2019-06-01")
    own = store.mem.corpus("notes", user_id="ana")
    own.add("The North Bridge swayed when the tram passed.", document_id="tram.md")
    store.mem.store.add_documents(
        [{"corpus_id": "notes", "user_id": "ana", "text": "Bring a torch.", "document_id": "kit"}]
    )
    own.forget("kit")


def _steps(store: GoldenStore, run: muniment.Run) -> list[Any]:
    """COMPILE, PLAN, ACT, OBSERVE, eleven times over: snapshots are taken as they fall due."""
    found: list[Any] = []
    run.observe("user", "Which bridges of Alder need repair? Cite every one.", speaker="Ana")
    for number in range(1, 12):
        if number % 4 == 1:
            window = store.compose(run, "planner", query=f"bridge {number}", max_tokens=600)
            run.log.step("COMPILE_DONE", builds=[window], tokens=window.tokens)
        else:
            context = {
                "selected": [found[-1].id],
                "excluded": [{"id": "evt-asked", "reason": "stale"}],
                "filters": {"k": 3},
            }
            run.log.step("COMPILE_DONE", context=context)
        run.log.step("PLAN_DONE", f"look at bridge {number}", tokens=120)
        run.log.step("ACT_PROGRESS", f"walking to bridge {number}")
        rust = f"Bridge {number} has {number % 5} millimetres of rust. Its deck was renewed in {1990 + number}."
        found.append(run.observe_tool("survey", args={"bridge": number}, content=rust, ok=number % 5 != 0))
        run.log.step("ACT_DONE", action={"tool": "survey", "bridge": min(number, 9)}, tokens=80)
        run.log.step("OBSERVE_DONE", f"bridge {number} seen", tokens=60)
        run.log.claim(f"Bridge {number} was seen.", evidence=[found[-1].id], status="verified")
        run.log.question(f"Who repairs bridge {number}?")
    run.log.step("CHECKPOINT_DONE", "half of it is done")
    return found


def _claims(run: muniment.Run, found: list[Any]) -> None:
    """Claims made, verified, retracted, demoted; a conflict settled and one open; failures; questions; next actions."""
    rust = run.log.claim("Bridge 4 rusts.", evidence=[{"event_id": found[3].id, "quote": "4 millimetres of rust"}])
    run.log.verify_claim(rust.claim_id)
    repair = run.log.claim("Bridge 4 needs repair.", depends_on=[rust.claim_id])
    run.log.verify_claim(repair.claim_id, evidence=[found[3].id])
    run.log.retract_claim(rust.claim_id, reason="it was paint", evidence=[found[4].id])
    run.log.claim("The North Bridge is the oldest.", id="claim-oldest")
    for description, sides in (("Two counts of rust", (0, 1)), ("Two years of renewal", (2, 3))):
        run.log.conflict(
            description,
            side_a=[{"event_id": found[sides[0]].id, "quote": "millimetres of rust"}],
            side_b=[found[sides[1]].id],
            claims=["claim-oldest"],
        )
    run.log.settle_conflict(run.log.conflicts()[0].conflict_id, resolution="they are two bridges")
    run.log.failure("tool_timeout", "survey", "no answer within 30 s", evidence=[found[4].id])
    run.log.failure("tool_timeout", "survey", "no answer within 45 s")
    run.log.close_question("Who repairs bridge 1?", answer="the town")
    run.log.close_question("Who repairs bridge 2?")
    run.log.plan_next(["ask the town about bridge 4", "write the list"])
    run.patch(goal="survey the bridges", constraints={"cite": "every bridge"})
    run.log.compact()


def _verifications(run: muniment.Run, found: list[Any]) -> None:
    """Outputs judged by their form and by their facts; nothing is run."""
    answer = "Bridge 1 has 7 millimetres of rust."
    said = run.observe("assistant", answer)
    constraints = [{"words": {"max": 12}}, {"contains": "rust"}, {"forbidden_words": ["synergy"], "severity": "minor"}]
    run.verify(answer, constraints=constraints, evidence=[found[0].id], event=said.id)
    run.verify(
        {"text": "Synergy.", "tool_calls": [{"name": "survey", "args": {}, "ok": True}]}, constraints=constraints
    )
    run.verify("Bridge 2 has 2 millimetres of rust.", documents=["Bridge 2 has 2 millimetres of rust."])


def _locked_and_repaired(store: GoldenStore, run: muniment.Run) -> None:
    """A verified claim rests on a document that is withdrawn: the snapshot does not hold, and the run is locked."""
    handbook = store.mem.corpus("handbook")
    hit = handbook.search("crane at the South Quay")[0]
    crane = run.log.claim(
        "A crane stands at the South Quay.",
        evidence=[{"corpus_id": "handbook", "chunk_id": hit.id, "quote": "old crane"}],
        status="verified",
    )
    handbook.retract("crane.txt", "the crane was sold")
    with suppress(RunLocked):
        run.log.compact()
    run = store.mem.resume(run.run_id, repair=True).run
    run.log.retract_claim(crane.claim_id, reason="its source was withdrawn")
    run.log.unlock("the claim was retracted")


def _resumed(store: GoldenStore) -> None:
    """The run goes on from its snapshot, and ends; a second one is stopped by its budget."""
    run = store.mem.resume(TASK["run_id"]).run
    run.observe("user", "Thank you, that will do.")
    for purpose in ("planner", "responder"):
        store.compose(run, purpose, query="Which bridges need repair?", max_tokens=900)
    run.log.compact()
    run.finish("OBJECTIVE_ACHIEVED")
    run = store.mem.run(user_id="ana", agent_id="surveyor", session_id="survey", run_id="run-stopped")
    run.log.step("PLAN_DONE", "count the ducks")
    run.finish("BUDGET_EXCEEDED")
