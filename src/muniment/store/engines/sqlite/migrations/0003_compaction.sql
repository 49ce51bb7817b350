-- What snapshots are made of. Rows are only added, and emptied in place by a forget.

CREATE TABLE parts (
  tenant_id TEXT NOT NULL,
  owner TEXT NOT NULL,
  hash BLOB NOT NULL,
  body TEXT,
  receipt_id TEXT,
  PRIMARY KEY (tenant_id, owner, hash)
) STRICT;

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
  ('parts', 'sqlite_autoindex_parts_1', '1000000 100000 1000 1');
