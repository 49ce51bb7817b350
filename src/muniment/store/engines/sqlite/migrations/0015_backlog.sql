-- What was loaded in bulk and waits to be indexed: stretches of sessions, by the numbers of their first and last entry.
-- Whoever indexes a stretch takes its row in the same transaction.

CREATE TABLE backlog (
  tenant_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, user_id, session_id, first)
) STRICT, WITHOUT ROWID;

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
  ('backlog', 'backlog', '1000000 100000 100 10 1');
