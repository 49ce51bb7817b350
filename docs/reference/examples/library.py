"""A store and its runs: what is written, searched, composed, kept and forgotten."""

# -- muniment.open
import muniment

mem = muniment.open("agent.db")  # or ":memory:", or "postgresql://…"

# -- mem.info
print(mem.info.name)
# → sqlite

# -- mem.policy
print(mem.policy.ledger.redact_secrets)
# → True

# -- mem.run
run = mem.run(user_id="ana", agent_id="support", session_id="monday", objective="Book a table for two")

# -- run.scope
print(run.scope.user_id, run.scope.session_id)
# → ana monday

# -- run.run_id
print(run.run_id.startswith("run_"))
# → True

# -- run.observe
said = run.observe("user", "I live in Berlin. I am vegetarian now.", ts="2026-06-01T10:00:00Z")
print(said.role, said.trust)
# → user user

# -- run.observe_tool
found = run.observe_tool("find_table", args={"city": "Berlin"}, content="Free: Kopps, 20:00; Lucky Leek, 19:30.")
print(found.kind)
# → tool_result

# -- run.observe_many
both = run.observe_many(
    [
        {"role": "user", "content": "Eight o'clock is fine."},
        {"role": "assistant", "content": "Then Kopps at 20:00."},
    ]
)
print(len(both))
# → 2

# -- run.record
messages = [{"role": "user", "content": "Is there a garden?"}, {"role": "assistant", "content": "Yes, at the back."}]
print(len(run.record(messages)), len(run.record(messages)))  # the list as you hold it: only what is new is written
# → 2 0

# -- run.extract
for candidate in run.extract():  # by rule; model=… asks a model of yours
    print(candidate.key, candidate.value, candidate.status)
# → user.location Berlin promoted

# -- run.remember
seat = run.remember("user.preference.seat", "garden", sources=[both[0].id])
print(seat.status)
# → active

# -- run.facts
print({fact.fact_key: fact.value for fact in run.facts()})
# → {'user.location': 'Berlin', 'user.preference.seat': 'garden'}

# -- run.propose
waits = run.propose("user.employer", "Acme", sources=[said.id], confidence=0.4, reason="a guess")
print(waits.status)
# → proposed

# -- run.memory
print(type(run.memory).__name__)  # what becomes of facts, candidates and insights
# → RunMemory

# -- run.memory.candidates
print([each.key for each in run.memory.candidates("proposed")])
# → ['user.employer']

# -- run.memory.decide
print(run.memory.decide(waits.candidate_id, False, reason="she never said so").status)
# → declined

# -- run.memory.dispute
print(run.memory.dispute(seat.fact_id, reason="it may rain").status)
# → disputed

# -- run.memory.retract
print(run.memory.retract(seat.fact_id, reason="said by mistake").status)
# → deprecated

# -- run.memory.fact_history
print([fact.status for fact in run.memory.fact_history("user.preference.seat")])
# → ['deprecated']

# -- run.memory.unheard
print(run.memory.unheard())  # whose messages were not read for facts, and why
# → []

# -- run.insight
guess = run.insight("hypothesis", "She prefers quiet places.", sources=[both[0].id])
print(guess.validation_state)
# → unvalidated

# -- run.memory.judge_insight
print(run.memory.judge_insight(guess.id, "validated", sources=[both[0].id]).validation_state)
# → validated

# -- run.memory.promote_insight
print(run.memory.promote_insight(guess.id, key="user.preference.place").value)
# → She prefers quiet places.

# -- run.profile
print(run.profile().lines[0].text)  # her own words, oldest first
# → I live in Berlin. I am vegetarian now.

# -- mem.profile
print(mem.profile(user_id="bo").lines)  # empty for a user who said nothing
# → ()

# -- run.procedure
way = run.procedure("booking", {"steps": ["ask for the time", "call the place"]}, priority=5)
print(way.task_type)
# → booking

# -- run.memory.use_procedures
run.memory.use_procedures([way.procedure_id])

# -- run.memory.retire_procedure
print(run.memory.retire_procedure(way.procedure_id).task_type)
# → booking

# -- run.patch
print(run.patch(goal="a table for two", slots={"time": "20:00"}).goal)
# → a table for two

# -- run.working_state
print(run.working_state().slots)
# → {'time': '20:00'}

# -- run.summarize
print(run.summarize("She wants a vegetarian place in Berlin at eight.", sources=[said.id]).text)
# → She wants a vegetarian place in Berlin at eight.

# -- run.search
for hit in run.search("vegetarian", k=1):
    print(hit.kind, hit.text)
# → event I live in Berlin. I am vegetarian now.

# -- run.compose
later = mem.run(user_id="ana", agent_id="support", session_id="friday")
build = later.compose("responder", query="Where does she live now?", max_tokens=512)
print("Berlin" in build.text)
# → True

# -- build.packet
print(build.packet.budget_report.used_tokens_est <= 512)
# → True

# -- build.pool
print(len(build.pool.hits) > 0)  # everything that it was chosen from
# → True

# -- build.found
print(build.found)  # whether memory holds something on the question
# → True

# -- build.fact_versions
print(len(build.fact_versions) > 0)
# → True

# -- build.to_openai
print([message["role"] for message in build.to_openai()])
# → ['system', 'user']

# -- build.to_anthropic
print([message["role"] for message in build.to_anthropic()])
# → ['user']

# -- build.resolve
answer = build.resolve("She lives in Berlin [1], near the river [9].")
print(len(answer.evidence_ids), answer.unknown_marks)
# → 1 ('[9]',)

# -- mem.replay
print(mem.replay(build.id).packet_bytes == build.packet_bytes)
# → True

# -- mem.diff
other = later.compose("responder", query="What does she eat?", max_tokens=256)
print(len(mem.diff(build.id, other.id).lines) > 0)
# → True

# -- mem.compare
print(mem.compare(build.id, {"compose": {"window_turns": 1}}).a == build.id)
# → True

# -- mem.why
for telling in mem.why("Berlin")[:1]:
    print(telling.build_id in (build.id, other.id))
# → True

# -- mem.ledger
print(mem.ledger.get(said.id).content)
# → I live in Berlin. I am vegetarian now.

# -- mem.ledger.get
print(mem.ledger.get(said.id).role)
# → user

# -- mem.ledger.entries
print([entry.role for entry in mem.ledger.entries(user_id="ana", session_id="monday", limit=2)])
# → ['system', 'user']

# -- mem.ledger.content
print(mem.ledger.content(said.id, start=0, length=9))
# → I live in

# -- mem.ledger.resolve
print(mem.ledger.resolve(said.id).text)
# → I live in Berlin. I am vegetarian now.

# -- mem.ledger.answers
later.observe("assistant", "She lives in Berlin [1].", build=build)
print([entry.content for entry in mem.ledger.answers(build.id)])
# → ['She lives in Berlin [1].']

# -- mem.ledger.episodes
print(len(list(mem.ledger.episodes(user_id="ana", session_id="monday"))) > 0)
# → True

# -- mem.ledger.changes
seen = mem.ledger.changes(user_id="ana")
later.observe("user", "Thank you!")
print(len(mem.ledger.changes(user_id="ana", after=seen.position).entries))
# → 1

# -- mem.ledger.ingest_otel
spans = {"resourceSpans": []}  # what an exporter sends, as JSON or protobuf
print(mem.ledger.ingest_otel(spans, user_id="ana").spans)
# → 0

# -- run.ledger
print(run.ledger.get(said.id).id == said.id)
# → True

# -- run.ledger.get
print(run.ledger.get(said.id).content)
# → I live in Berlin. I am vegetarian now.

# -- run.ledger.entries
print([entry.content for entry in run.ledger.entries(q="garden")])
# → ['Is there a garden?', '']

# -- run.ledger.content
print(run.ledger.content(said.id, length=6))
# → I live

# -- run.ledger.resolve
print(run.ledger.resolve(said.id).text == said.content)
# → True

# -- run.verify
result = run.verify("A table at 20:00.", constraints=[{"contains": "20:00"}])
print(result.verdict, result.outcome)
# → PASS UNKNOWN

# -- run.verifications
print(len(run.verifications()))
# → 1

# -- run.log
print(type(run.log).__name__)  # steps, claims and snapshots of a long run
# → RunLogHandle

# -- run.log.step
run.log.step("PLAN_DONE", "Call Kopps.")
run.log.step("ACT_DONE", action={"tool": "call"}, tokens=120)

# -- run.log.claim
claim = run.log.claim("She is vegetarian.", evidence=[{"event_id": said.id, "quote": "I am vegetarian now."}])
print(claim.status)
# → candidate

# -- run.log.verify_claim
print(run.log.verify_claim(claim.claim_id).status)
# → verified

# -- run.log.conflict
clash = run.log.conflict("Two times were named.", side_a=[found.id], side_b=[both[0].id])
print(clash.status)
# → open

# -- run.log.settle_conflict
print(run.log.settle_conflict(clash.conflict_id, resolution="eight o'clock").status)
# → settled

# -- run.log.conflicts
print(len(run.log.conflicts()))
# → 1

# -- run.log.failure
run.log.failure("tool", "call", "the line was busy")

# -- run.log.failures
print([failure.why for failure in run.log.failures()])
# → ['the line was busy']

# -- run.log.question
asked = run.log.question("Is there a garden?")

# -- run.log.questions
print([question.text for question in run.log.questions()])
# → ['Is there a garden?']

# -- run.log.close_question
run.log.close_question(asked, answer="Yes, at the back.")
print(run.log.questions())
# → []

# -- run.log.plan_next
print(run.log.plan_next(["confirm the table"]))
# → ('confirm the table',)

# -- run.log.read
print(run.log.read().next_actions)
# → ('confirm the table',)

# -- run.log.claims
print([each.statement for each in run.log.claims("verified")])
# → ['She is vegetarian.']

# -- run.log.budgets
print(sorted(run.log.budgets()))
# → ['limits', 'used']

# -- run.log.compact
print(run.log.compact().sequence)
# → 1

# -- run.log.retract_claim
print(run.log.retract_claim(claim.claim_id, reason="she eats fish").status)
# → retracted

# -- run.log.unlock
from muniment.errors import MunimentError

try:
    run.log.unlock("nothing is locked")
except MunimentError as refused:
    print(refused.code)
# → conflict

# -- mem.log
print(mem.log.run_state(run.run_id).objective)
# → Book a table for two

# -- mem.log.run_state
print(mem.log.run_state(run.run_id).task_type)
# → generic

# -- mem.log.turns
print([turn.entry.role for turn in mem.log.turns(run.run_id, limit=2)])
# → ['system', 'user']

# -- mem.log.snapshot
print(mem.log.snapshot(run.run_id).sequence)
# → 1

# -- mem.log.snapshots
print(len(list(mem.log.snapshots(run.run_id))))
# → 1

# -- mem.log.check_snapshot
print(mem.log.check_snapshot(run.run_id).status)
# → PASS

# -- mem.log.narrative
print(mem.log.narrative(run.run_id).splitlines()[0])
# → # Run narrative

# -- mem.log.drift
print(mem.log.drift(run_id=run.run_id).runs)
# → 1

# -- mem.log.bill
print(mem.log.bill(run.run_id).requests)
# → 2

# -- mem.log.in_view
print(mem.log.in_view(build.id)[0].mark)
# → [1]

# -- mem.log.preview
print(mem.log.preview(build.id, max_tokens=256, per_section={"facts": 0}).text[:8])
# → Evidence

# -- mem.resume
again = mem.resume(run.run_id)

# -- resumed.log
print(again.log.next_actions)
# → ('confirm the table',)

# -- resumed.snapshot
print(again.snapshot.sequence)
# → 1

# -- resumed.tail
print(again.tail)
# → 2

# -- resumed.rejected
print(again.rejected)
# → ()

# -- run.state
print(run.state().stop_reason)  # none yet
# → None

# -- run.finish
print(run.finish("OBJECTIVE_ACHIEVED").stop_reason)
# → OBJECTIVE_ACHIEVED

# -- mem.runs
print([each.objective for each in mem.runs(user_id="ana", limit=1)])
# → ['Book a table for two']

# -- mem.extract_pending
print(mem.extract_pending(user_id="ana").turns)  # by rule; model=… asks a model, within budget=…
# → 4

# -- mem.verify
print(mem.verify().ok)
# → True

# -- mem.store
print(type(mem.store).__name__)  # upkeep: users, import and export, rebuild
# → MemoryStore

# -- mem.store.extracted
print(mem.store.extracted)  # what a model read in the background: none was given
# → None

# -- mem.store.tenants
print(mem.store.tenants())
# → ['default']

# -- mem.store.users
print([user.user_id for user in mem.store.users()])
# → ['ana']

# -- mem.store.overview
print(mem.store.overview().users)
# → 1

# -- mem.store.attention
print(mem.store.attention(user_id="ana"))  # what waits for a person
# → []

# -- mem.store.evaluate
question = {"question": "Where does she live?", "answers": ["Berlin"], "user_id": "ana"}
print(mem.store.evaluate([question], budgets=[512]).broken)
# → ()

# -- mem.store.export_memory
lines = list(mem.store.export_memory(user_id="ana"))
print(len(lines) > 3)
# → True

# -- mem.store.import_memory
with muniment.open() as elsewhere:
    print(elsewhere.store.import_memory(lines, user_id="ana").written)
# → {'facts': 3, 'messages': 8, 'summaries': 1}

# -- mem.store.import_from
from pathlib import Path

Path("memories.json").write_text('{"results": [{"id": "m1", "memory": "Likes jazz", "user_id": "ben"}]}')
print(mem.store.import_from("mem0", ["memories.json"], dry_run=True).written)
# → {'memories': 1}

# -- mem.store.rebuild
print(mem.store.rebuild().repaired)
# → ()

# -- mem.store.load
events = [
    {"user_id": "cleo", "session_id": "old", "role": "user", "content": "I keep two cats."},
    {"user_id": "cleo", "session_id": "old", "role": "assistant", "content": "Noted."},
]
report = mem.store.load(events, index=False)
print(report.written)  # given again, none would be written
# → 2

# -- mem.store.index
print(mem.store.index() >= 2)  # turns that are found from now on
# → True

# -- mem.store.upkeep
print(mem.store.upkeep().held)  # pieces of work that other processes are still at
# → 0

# -- mem.store.reembed
import numpy as np


class Lengths:  # stands for an embedder of yours, or the name of one: muniment.open(…, embedder="e5-small")
    identity, dim = "lengths", 2

    def embed(self, texts):
        return np.array([[1.0, 0.0] for _ in texts], dtype=np.float32)


with muniment.open("agent.db", embedder=Lengths()) as meaning:
    print(meaning.store.reembed() > 0)  # turns that got a vector
# → True

# -- mem.store.scrub
print(mem.store.scrub().clean)
# → True

# -- mem.export
dump = list(mem.export(user_id="ana"))
print(len(dump) > 10)
# → True

# -- mem.import_
with muniment.open() as elsewhere:
    print(sum(elsewhere.import_(dump).written.values()) > 10)
# → True

# -- mem.forget
receipt = mem.forget(event=said.id)
print(sorted(receipt.counts))
# → ['entries', 'items', 'proofs', 'segments', 'statements', 'vectors']

# -- mem.close
mem.close()
