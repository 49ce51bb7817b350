"""What an eval decides: which questions there are, what an arm gave, how that is measured, compared and shown.

Pure: questions, packets, hits and answers go in, measures and reports come out. `run` asks the store.
Read `questions` (the file), `given` (what an arm gave), `measures` (what it is worth), `answers` (a model's answers),
`report` (one run of it), `baseline` (against the one before), `page` (for people).
"""
