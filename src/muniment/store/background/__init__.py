"""Work shared by several processes: who holds which piece, and a store that rejects writes of a holder that lost it.

Callers decide what the work is, and name its pieces.
"""
