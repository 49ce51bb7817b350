"""Instructions: what a user asks an agent to do from then on, in eight languages, with no model (MP-17).

Pure. `reading` finds them in a message, `topics` says what each is about and under which key it stands, `endings` which
of those that stand a message ends. The words are in `data`. Only a user's own words are read, and of these neither
code, quotes nor pasted texts; a question, a request for the matter at hand and what somebody else says are none.
"""
