"""Whether what is stored is what was written, beyond what a row's own hash says.

Proofs of what no entry gives, the ends of sessions, blobs, the tables beside the chains, rows that stand elsewhere.
Read `proofs` first. Repairs nothing.
"""
