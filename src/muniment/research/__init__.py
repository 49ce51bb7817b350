"""Research runs: from a question to perspectives, from outputs to checked claims and a pack bounded in bytes.

It asks no model and fetches nothing by itself. A claim enters a pack only on a citation that somebody has the page of,
and that the fact checker of `verify` finds to support it. The store is the truth; the run directory follows it.

Read `waves` (what happens before sources are settled), `questions.perspectives`, `reading.outputs` (an agent's
Markdown), `citations`, `source_judging`, `pack_writing` with `packing`, `gates` and `stages`. `study_store` and
`study_files` keep it; `outside` touches files and addresses.
"""
