"""A research run: perspectives, outputs that are checked, a pack, a report."""

# -- mem.research
import muniment

mem = muniment.open("agent.db")
study = mem.research(
    "Should the town of Alder replace its diesel ferries with electric ones, and what would it cost?",
    user_id="ana",
    run_id="ferries",
    agent_types=["Reader", "Archivist", "Sceptic"],
    limits={"max_wave1_agents": 3},
    directory="ferries",
)

# -- mem.open_research
print(mem.open_research("ferries", directory="ferries").run_id)  # in another process
# → ferries

# -- study.run_id
print(study.run_id)
# → ferries

# -- study.run
print(study.run.scope.user_id)
# → ana

# -- study.directory
print(study.directory.name)
# → ferries

# -- study.manifest
print(study.manifest().stage)
# → init

# -- study.route
print([each.track for each in study.route()])
# → ['standard', 'independent', 'contrarian']

# -- study.perspectives
first, second, third = study.perspectives()
print(first.agent_type)
# → Reader

# -- study.prompt
print("At most 900 words" in study.prompt(first.id))
# → True

# -- study.status
print(study.status().next)
# → ingest p1, p2, p3

# -- study.ingest
OUTPUT = """## Findings

- Energy cost 38 euros a crossing, against 96 euros on the diesel ferry. [1]

## Sources

[1] https://harbour.example.org/trial - The electric ferry on trial

## Gaps

- [P2] Nobody has counted what a second cable costs.
"""
print(study.ingest(first.id, OUTPUT, tool_use={"search_calls": 2}).accepted)
# → True

# -- study.give_up
study.give_up(third.id, "there is no such agent today")


# -- study.collect
def my_agent(prompt, perspective):
    return {"markdown": OUTPUT, "tool_use": {"search_calls": 1}}


print([result.accepted for result in study.collect(my_agent)])
# → [True]

# -- study.pivot
print(study.pivot().second_wave)
# → False

# -- study.supply
page = "Energy cost 38 euros a crossing, against 96 euros on the diesel ferry."
print(len(study.supply([{"url": "https://harbour.example.org/trial", "text": page}])))
# → 1

# -- study.citations
print([citation.status for citation in study.citations()])
# → ['valid']

# -- study.sources
print([citation.url for citation in study.sources()])
# → ['https://harbour.example.org/trial']

# -- study.look
from muniment.research.url_check import UrlChecker

print(study.look(UrlChecker(), urls=[]))  # asks addresses; here none
# → []

# -- study.pack
print(len(study.pack().summaries))
# → 2

# -- study.claims
print({claim.claim for claim in study.claims()})
# → {'Energy cost 38 euros a crossing, against 96 euros on the diesel ferry.'}

# -- study.synthesis_input
print("[cid_" in study.synthesis_input().text)
# → True

# -- study.check
DRAFT = """## Summary

Energy cost 38 euros a crossing [1].

## Findings

Energy cost 38 euros a crossing, against 96 euros on the diesel ferry [1].

## Limitations

One ferry was tried.

## Sources

[1] https://harbour.example.org/trial
"""
print(study.check(DRAFT).passed)
# → True

# -- study.gates
print([gate.status for gate in study.gates().gates])
# → ['pass', 'pass', 'pass', 'pass', 'pass']

# -- study.resume
(study.directory / "summaries" / "summary-pack.json").unlink()
print(study.resume())  # the files that were written again
# → ['summaries/summary-pack.json']

# -- study.finish
print(study.finish().stop_reason)
# → OBJECTIVE_ACHIEVED
