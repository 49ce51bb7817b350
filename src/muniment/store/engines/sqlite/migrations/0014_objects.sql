-- What lies outside the store: which object holds the content of which event, which archives there are, what is to be
-- deleted there. No word stands here: names are salted hashes or random.

CREATE TABLE objects (
  tenant_id TEXT NOT NULL,
  name BLOB NOT NULL,
  use TEXT NOT NULL,
  subject TEXT NOT NULL,
  held_at TEXT NOT NULL,
  sealed_by TEXT,
  size INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, name)
) STRICT;
CREATE UNIQUE INDEX objects_held_at ON objects (tenant_id, held_at);
CREATE INDEX objects_use_subject ON objects (tenant_id, use, subject);

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
  ('objects', 'sqlite_autoindex_objects_1', '100000 10000 1'),
  ('objects', 'objects_held_at', '100000 10000 1'),
  ('objects', 'objects_use_subject', '100000 10000 5000 1');
