"""Research runs: from a question to perspectives, from outputs to checked claims and a pack of bounded size.

The package itself calls no model and fetches nothing. A claim enters a pack only with a citation that the fact checker
of `verify` finds to support it. The store is authoritative; the run directory mirrors it.

Read `plan` and `prompt` (the requests to agents), `_markdown` with `_marks` and `_figures` (their outputs), `waves`,
`sources`, `pack`, `drafts` and `gates` (the checks), `store` and `run_directory` (storage).
"""
