"""The engine over one SQLite file: the default. Many processes may share the file."""
