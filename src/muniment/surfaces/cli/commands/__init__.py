"""The commands by what they are about: which operation each calls, and how a person reads its answer.

A module is loaded when one of its commands is called. `tree` says which command stands where.
"""
