"""The command line: one tree of commands over the table of operations.

Read `main` (the tree), then `_command` (from the command line to the answer) and `_views` (how an answer is shown). The
other modules hold one group of commands each. A command adds no rule of its own to an operation.
"""
