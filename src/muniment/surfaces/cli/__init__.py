"""The command line: one tree of commands over the table of operations.

Read `tree` (what stands where), then `calling` (a command from what was typed to its answer), `openings` (what it is
called on) and `parameters` (how an argument of the library is asked for). `commands` holds, by what they are about,
which operation each command calls and how a person reads the answer; `demo` tells a story on a sample. A command adds
no rule of its own to what an operation does: it asks, and shows.
"""
