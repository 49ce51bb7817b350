"""The storage engines behind `core.ports.engine.Engine`: SQLite, in a file or in memory, and PostgreSQL.

`opening.open_engine` picks one by its target. `codec`, `layout`, `checks` and `_sql` are shared by the engines, which
do not depend on each other. Nothing here knows what a row means.
"""
