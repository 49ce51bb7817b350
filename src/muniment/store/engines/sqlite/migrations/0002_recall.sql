-- The index: blocks over the turns of one user. They are rewritten as they are merged, which moves cells; what they
-- hold is hashed terms, numbers and ids, never a word, so bytes that a move leaves behind say nothing.

CREATE TABLE segments (
  tenant_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  first INTEGER NOT NULL,
  count INTEGER NOT NULL,
  level INTEGER NOT NULL,
  digest BLOB NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (tenant_id, user_id, first)
) STRICT;

CREATE TABLE vectors (
  tenant_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  embedder TEXT NOT NULL,
  first INTEGER NOT NULL,
  count INTEGER NOT NULL,
  level INTEGER NOT NULL,
  digest BLOB NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (tenant_id, user_id, embedder, first)
) STRICT;

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
  ('segments', 'sqlite_autoindex_segments_1', '1000000 100000 20 1'),
  ('vectors', 'sqlite_autoindex_vectors_1', '1000000 100000 20 20 1');
