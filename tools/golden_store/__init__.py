"""The chapters of the golden store, and the questions that are put to it; `tools/write_golden_store.py` calls them.

Read `store` first, then the chapters in the order in which they are written: `conversations`, `long_runs`, `learning`,
`rules`, `research`, `endings`. `questions` and `contracts` say what the manifest records.
"""
