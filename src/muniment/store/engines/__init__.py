"""The storage engines behind `core.ports.engine.Engine`: memory, SQLite, PostgreSQL.

`opening.open_engine` picks one by its target. `checks`, `turns`, `sql` and `migrations` are shared by the
engines; the engines themselves know nothing of each other. Nothing here knows what a row means.
"""
