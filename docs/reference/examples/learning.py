"""Runs that are judged, what is learnt from them, and rules."""

# -- mem.runner
import json

import muniment

mem = muniment.open("agent.db", policy={"rules": {"canary": {"share": 0.5}}})
COUNTING = {"domain_tag": "count", "task_family": "apples", "output_format": "json"}


def agent(task):  # stands for yours: it forgets to answer in JSON, unless its prompt says so or the box is even
    is_json = "Keep FORMAT:JSON_ONLY" in task.prompt or int(task.prompt.rstrip(".").split()[-1]) % 2 == 0
    return '{"count": 1}' if is_json else "There is one apple."


def verify(output, task):
    try:
        return json.loads(output.text) is not None
    except ValueError:
        return {
            "verifier_id": "shop",
            "verdict": "FAIL",
            "outcome": "FAIL",
            "reason_codes": ["format_leak"],
            "violated_constraints": ["FORMAT:JSON_ONLY"],
        }


runner = mem.runner(agent, verify, user_id="ana", agent_id="counter")

# -- runner.run
done = [runner.run(f"Count the apples in box {number}.", intent=COUNTING) for number in range(14)]
print([each.result.verdict for each in done[:2]])
# → ['PASS', 'FAIL']

# -- mem.bank
bank = mem.bank(user_id="ana")

# -- bank.name
print(bank.name)
# → user:ana

# -- bank.records
print(sorted({record.kind for record in bank.records()}))
# → ['reasoning', 'seed', 'trace_capsule']

# -- bank.get
print(bank.get(bank.records()[0].id).status)
# → active

# -- bank.reasoning_bank
print(len(bank.reasoning_bank().items) > 0)
# → True

# -- bank.reuse_buffer
print(type(bank.reuse_buffer()).__name__)
# → ReuseBuffer

# -- bank.event_logs
print(len(bank.event_logs(limit=5)))
# → 5

# -- bank.flow_map
flow = bank.flow_map()
print(type(flow).__name__)
# → FlowMapSnapshot

# -- bank.drafts
draft = next(each for each in bank.drafts() if "FORMAT:JSON_ONLY" in each.proposed_rule.title)
print(draft.proposed_rule.title)
# → Against FORMAT:JSON_ONLY, format_leak

# -- bank.add_lesson
added = bank.add_lesson("Answer in JSON and nothing else.", intent=COUNTING)
print(added.fate)
# → written

# -- bank.lessons
print(added.lesson_id in [each.lesson_id for each in bank.lessons()])
# → True

# -- mem.lessons
print({lesson.kind for lesson in mem.lessons(user_id="ana")} >= {"tactic", "draft"})
# → True

# -- bank.lesson
print([change.stage for change in bank.lesson(added.lesson_id).history])
# → ['candidate']

# -- bank.sign_lesson
signed = bank.sign_lesson(added.lesson_id, signed_by="rosa")
print(bank.lesson(added.lesson_id).stage)
# → active

# -- bank.drop_lesson
bank.drop_lesson(added.lesson_id, reason="a rule says it", signed_by="rosa")
print(bank.lesson(added.lesson_id).stage)
# → retired

# -- bank.lesson_reports
print(bank.lesson_reports())  # what models proposed; none was asked here
# → []

# -- bank.plan
record = bank.records("ReasoningBank")[0]
plan = bank.plan([{"op": "PIN", "target_store": "ReasoningBank", "target_ids": [record.id]}])

# -- bank.apply
print(bank.apply(plan.plan_id).aborted, bank.get(record.id).status)
# → False pinned

# -- bank.get_plan
print(bank.get_plan(plan.plan_id).status)
# → applied

# -- bank.plans
print(plan.plan_id in [each.plan.plan_id for each in bank.plans()])
# → True

# -- bank.undo
print(len(bank.undo(plan.plan_id)), bank.get(record.id).status)
# → 1 active

# -- mem.undo
pinned = bank.plan([{"op": "PIN", "target_store": "ReasoningBank", "target_ids": [record.id]}])
bank.apply(pinned.plan_id)
print(len(mem.undo(pinned.plan_id)), bank.get(record.id).status)
# → 1 active

# -- bank.tidy
print(bank.tidy())  # what had run out or was too much
# → ()

# -- bank.select_seed
meta, terms = bank.select_seed()
print(meta.selected_state_id == terms[0].state_id)
# → True

# -- mem.learning
print(type(mem.learning).__name__)
# → MemoryLearning

# -- mem.learning.route
print(mem.learning.route({"bucket_key": bank.event_logs()[0].bucket_key}, user_id="ana").tier)
# → hot

# -- mem.learning.observe_rates
print(len(mem.learning.observe_rates(user_id="ana").buckets))
# → 1

# -- mem.learning.bank_of
print(mem.learning.bank_of(record.id).name == bank.name)
# → True

# -- run.learning
run = mem.run(user_id="ana", agent_id="counter", task_type="apples")
task = "Count the apples in box 21."
run.observe("user", task)
print(type(run.learning).__name__)
# → RunLearning

# -- run.learning.recall
recalled = run.learning.recall(task, intent=COUNTING)
print(len(recalled.hints) > 0)
# → True

# -- run.hints
print(run.hints(task, intent=COUNTING).text.splitlines()[0].startswith("- Asked: "))
recalled = run.hints(task, intent=COUNTING)
# → True

# -- run.learning.used
run.learning.used(recalled, [hint.memory_id for hint in recalled.hints])

# -- run.learning.select_rules
print(run.learning.select_rules(intent=COUNTING).text == "")  # none is in force yet
# → True

# -- run.learning.note
run.learning.note(decisions=["answer in JSON"])

# -- run.learning.push_working_set
run.learning.push_working_set(decisions=["count twice"])

# -- run.learning.working_set
print(len(run.learning.working_set()[1]))
# → 2

# -- run.learning.pop_working_set
run.learning.pop_working_set()

# -- run.learning.fold
print(run.learning.fold().trigger.kind)
# → manual

# -- run.learning.learn
run.observe("assistant", '{"count": 21}')
learned = run.learning.learn({"verifier_id": "shop", "verdict": "PASS", "outcome": "OK"}, intent=COUNTING)
print(type(learned).__name__)
# → Learned

# -- run.learning.learned
print(run.learning.learned() is not None)
# → True

# -- run.learning.lessons
print(run.learning.lessons().had)
# → ()

# -- mem.learning.learn
later = mem.run(user_id="ana", agent_id="counter", task_type="apples")
later.observe("user", "Count the apples in box 22.")
later.finish()
result = {"verifier_id": "shop", "verdict": "PASS", "outcome": "OK"}
print(type(mem.learning.learn(later.run_id, result, intent=COUNTING)).__name__)
# → Learned

# -- mem.rulebook
book = mem.rulebook(user_id="ana")  # of a user, an agent (agent_id=…), or of the whole tenant

# -- book.name
print(book.name)
# → user:ana

# -- book.level
print(book.level)
# → user

# -- book.revision
print(book.revision)
# → 0

# -- book.submit
made = book.submit(draft.draft_id)
print(made.kind, made.rule.stage)
# → new drafted

# -- book.lint
print([finding.code for finding in book.lint(made.id)])
# → ['no_regression_test', 'no_counterexample_test']

# -- book.make_tests
print(len(book.make_tests(made.id, verifier=verify).specs) > 0)
# → True

# -- book.add_tests
spec = {
    "test_id": "mine",
    "test_type": "regression",
    "x_ref": "mine",
    "prompt": "Count the apples in box 31.",
    "assert": {"constraints": ["json_only"]},
}
print(len(book.add_tests(made.id, [spec])))
# → 10

# -- book.tests
print("mine" in [test.spec.test_id for test in book.tests(made.id)])
# → True

# -- book.gate
print(book.gate(made.id, agent, verifier=verify).passed)
# → True

# -- book.replay
replay = book.replay(made.id, agent, verify)
print(replay.passed, replay.with_passes > replay.without_passes)
# → True True

# -- book.reports
print(len(book.reports(made.id)))
# → 2

# -- book.canary
print(book.canary(made.id, share=0.5).stage)
# → canary

# -- book.watch
for number in range(100, 400):
    runner.run(f"Count the apples in box {number}.", intent=COUNTING)
    verdict = book.watch()[made.id]
    if verdict.decision != "stay":
        break
print(verdict.decision)
# → promote

# -- book.stats
print(sorted(book.stats(made.id).arms))
# → ['baseline', 'canary']

# -- book.promote
book.promote(made.id, signed_by="rosa")
print(book.get(made.id).stage)
# → active

# -- book.get
print(book.get(made.id).kind)
# → rule

# -- book.rules
print([rule.stage for rule in book.rules()])
# → ['active']

# -- book.history
print(len(book.history(made.id)) > 1)
# → True

# -- book.select
print("JSON" in book.select(intent=COUNTING).text)
# → True

# -- book.publish
print(book.publish().revision == book.revision)
# → True

# -- book.add
mine = book.add("Say how sure you are.", title="Say how sure", ttl="days:7")
print(mine.status)
# → temporary

# -- book.retire
book.retire(mine.id, reason="it was a trial", signed_by="rosa")
print(book.get(mine.id).stage)
# → retired

# -- book.revisions
print(len(book.revisions()) == book.revision)
# → True

# -- book.rollback
print(book.rollback(to=0, reason="begin again", signed_by="rosa").revision == book.revision)
# → True

# -- book.advance
print(book.advance(agent, verify, max_calls=1).calls <= 1)
# → True
