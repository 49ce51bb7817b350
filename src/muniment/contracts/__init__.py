"""The contracts from outside: which kinds there are, their JSON Schemas, whether a document fits, whether it holds.

Pure functions of data. Never reads a file, a clock or a store.
"""
