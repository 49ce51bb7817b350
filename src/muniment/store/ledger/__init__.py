"""The ledger's pure rules: what the door admits, how a chain is sealed and checked, what a pointer points to.

Never reads a clock, never mints an id, never touches storage: the runtime brings those.
"""
