"""Graders that reach outside: a server, or a classifier of the caller's."""
