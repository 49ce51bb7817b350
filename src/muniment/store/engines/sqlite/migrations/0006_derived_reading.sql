-- What is read out of a session: the numbers that its packets gave to evidence, and the sentences that sum up its
-- stretches, as places in their entries. No word stands in either.
--
-- marks hold ids and numbers and only grow, so they lie in the order of their key. Rows of extracts are made anew when
-- something is forgotten, as blocks of the index are.

CREATE TABLE marks (
  tenant_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  evidence_id TEXT NOT NULL,
  PRIMARY KEY (tenant_id, user_id, session_id, number)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX marks_user_id_session_id_evidence_id ON marks (tenant_id, user_id, session_id, evidence_id);

CREATE TABLE extracts (
  tenant_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  level INTEGER NOT NULL,
  first INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (tenant_id, user_id, session_id, level, first)
) STRICT;

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
  ('marks', 'marks', '1000000 100000 5000 200 1'),
  ('marks', 'marks_user_id_session_id_evidence_id', '1000000 100000 5000 200 1'),
  ('extracts', 'sqlite_autoindex_extracts_1', '1000000 100000 5000 200 50 1');
