"""Content that lies outside the store: sent before a transaction, read through as rows are, gone with its event;
and what hooks hold for it and nobody has written yet (`waiting`).

Reading order: `outside`, `sending`, `view`, `clearing`, `sweeping`, `moving`, `archives`, `archiving`. Nothing here
decides what is forgotten; that is `store.forget`.
"""
