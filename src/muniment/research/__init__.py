"""Research runs: from a question to perspectives, from outputs to checked claims and a pack bounded in bytes.

It asks no model and fetches nothing by itself. A claim enters a pack only on a citation that the fact checker of
`verify` finds to support it. The store is the truth; the run directory follows it.

Read `plan` and `prompt` (what agents are asked), `_markdown` with `_marks` and `_figures` (what they hand back),
`waves`, `sources`, `pack`, `drafts` and `gates` (what is checked), `store` and `run_directory` (where it is kept).
"""
