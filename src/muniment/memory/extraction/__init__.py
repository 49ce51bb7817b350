"""Extraction with no model (MP-17): what a person says about themselves and theirs, as people write in chats.

Pure. Proposes only where it is sure. A message falls into sentences (`sentences`), each is read in one spelling with
the place of every sign in the message kept (`views`), so that quotes are verbatim. A sentence falls into clauses, and
what is asked, supposed, wished for, reported, quoted, told in a story or given to translate silences the clauses it
governs, not the message. Of whom a clause speaks, the speaker or one of theirs, says under which key what the rules
read stands: `user.job`, `person.kim.job`.

How a language plugs in: it is a `grammar.Grammar`, whose fields are small functions and tables of its own

- `view`: a sentence in one spelling (`views.make_view` keeps the places),
- `silence`, `quoted`, `clauses`, `denies`: its guards,
- `subjects`: of whom a clause speaks and where what is said of them begins; `Subject.is_owner` where what follows is
  theirs, `Subject.left_out` where nobody is named,
- `rules`, tried where a subject ends, and `passing`, looked for anywhere; a `Rule` reads a match into `Told`: key,
  value and where the value stands in the view,
- `endings`: what is taken back; `correct` and `mend`: what is put right,

and gets a line in `patterns._GRAMMARS`, `_READERS` and `_TAKERS` (a reader takes the message, its sentences of that
language in order, and the `Talk`), and in `languages.choice`, which says which sentence is whose. `english` is the
one to read first: `english.grammar`, then `english.clauses`, `english.subjects`, `english.life`. Seven
others are files of words and patterns, read by the engine of `languages`.
"""
