"""English as a grammar: its spelling in chats, its clauses and guards, whom they speak of, and the rules.

Read `spelling`, `clauses`, `subjects`, `others`, `slots`, then the rules (`life`, `tastes`, `people`, `aims`,
`fragments`, `structures`, `cues`), what takes back (`endings`) and what puts right (`corrections`), and `grammar`,
which puts them together. What no rule reads is found widely (`candidates`) and weighed (`acceptor`), as what rules
read is.
Word lists stand in `data`.
"""
