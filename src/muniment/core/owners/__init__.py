"""Whose something is: names that stand where an entry names its user, and are no user's: corpora and banks."""
