"""The engine over a PostgreSQL server, walled by row-level security."""
