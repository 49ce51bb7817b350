-- The ground: every table of ports.schema, for SQLite.
--
-- Tables with content are plain rowid tables, never WITHOUT ROWID, and their rows are only appended; a forget
-- is an UPDATE that empties columns. The reason is what stays behind: secure_delete overwrites what is freed,
-- but when a b-tree moves cells between pages, the old page may keep their bytes in the gap between its cells,
-- where nothing overwrites them. Appending to a rowid table fills the last page and never moves a cell, while a
-- table kept in the order of its key (WITHOUT ROWID) moves cells at every split. Engine.scrub looks for what is
-- left all the same, and rebuilds the file if it finds anything.
--
-- Keys and indexes are led by tenant_id, except ids, whose key is unique across tenants (X-09).
-- Text compares BINARY (SQLite's default), which is the order of code points.

CREATE TABLE migrations (
  number INTEGER NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  applied_at TEXT NOT NULL
) STRICT;

CREATE TABLE tenants (
  tenant_id TEXT NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (tenant_id)
) STRICT;

CREATE TABLE ids (
  tenant_id TEXT NOT NULL,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  PRIMARY KEY (id)
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
  tenant_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  head_seq INTEGER NOT NULL,
  head_hash BLOB NOT NULL,
  head_recorded_at TEXT NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (tenant_id, user_id, session_id)
) STRICT;
CREATE INDEX sessions_session_id_user_id ON sessions (tenant_id, session_id, user_id);

CREATE TABLE entries (
  tenant_id TEXT NOT NULL,
  id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  ts TEXT NOT NULL,
  recorded_at TEXT NOT NULL,
  kind TEXT NOT NULL,
  role TEXT NOT NULL,
  trust TEXT NOT NULL,
  flags TEXT NOT NULL,
  content_hash BLOB NOT NULL,
  prev_hash BLOB NOT NULL,
  hash BLOB NOT NULL,
  salt BLOB,
  body TEXT,
  receipt_id TEXT,
  PRIMARY KEY (tenant_id, id)
) STRICT;
CREATE UNIQUE INDEX entries_user_id_session_id_seq ON entries (tenant_id, user_id, session_id, seq);

CREATE TABLE blobs (
  tenant_id TEXT NOT NULL,
  hash BLOB NOT NULL,
  entry_id TEXT NOT NULL,
  size INTEGER NOT NULL,
  data BLOB,
  PRIMARY KEY (tenant_id, hash)
) STRICT;
CREATE INDEX blobs_entry_id ON blobs (tenant_id, entry_id);

CREATE TABLE items (
  tenant_id TEXT NOT NULL,
  id TEXT NOT NULL,
  version INTEGER NOT NULL,
  kind TEXT NOT NULL,
  user_id TEXT,
  agent_id TEXT,
  session_id TEXT,
  run_id TEXT,
  status TEXT NOT NULL,
  name TEXT,
  created_at TEXT NOT NULL,
  trust TEXT NOT NULL,
  body TEXT,
  receipt_id TEXT,
  PRIMARY KEY (tenant_id, id, version)
) STRICT;
CREATE INDEX items_kind_user_id_name ON items (tenant_id, kind, user_id, name);
CREATE INDEX items_kind_run_id ON items (tenant_id, kind, run_id);
CREATE INDEX items_kind_created_at ON items (tenant_id, kind, created_at);

CREATE TABLE links (
  tenant_id TEXT NOT NULL,
  source_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  PRIMARY KEY (tenant_id, source_id, item_id)
) STRICT;
CREATE INDEX links_item_id_source_id ON links (tenant_id, item_id, source_id);

CREATE TABLE idempotency (
  tenant_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  key_hash BLOB NOT NULL,
  entry_id TEXT NOT NULL,
  request_hash BLOB,
  PRIMARY KEY (tenant_id, user_id, key_hash)
) STRICT;
CREATE INDEX idempotency_entry_id ON idempotency (tenant_id, entry_id);

-- What the planner is to believe. Without statistics SQLite takes any equality for very selective, so it would
-- read all rows of a tenant in the order of the key rather than the few that an index names. These figures are
-- made up for a large store: a tenant has very many rows, each further column of an index narrows them a lot.
-- They are never measured, so plans do not change with the data.

ANALYZE tenants;
DELETE FROM sqlite_stat1;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
  ('tenants', 'sqlite_autoindex_tenants_1', '1000000 1'),
  ('ids', 'ids', '1000000 1'),
  ('sessions', 'sqlite_autoindex_sessions_1', '1000000 100000 20 1'),
  ('sessions', 'sessions_session_id_user_id', '1000000 100000 2 1'),
  ('entries', 'sqlite_autoindex_entries_1', '1000000 100000 1'),
  ('entries', 'entries_user_id_session_id_seq', '1000000 100000 10000 200 1'),
  ('blobs', 'sqlite_autoindex_blobs_1', '1000000 100000 1'),
  ('blobs', 'blobs_entry_id', '1000000 100000 1'),
  ('items', 'sqlite_autoindex_items_1', '1000000 100000 2 1'),
  ('items', 'items_kind_user_id_name', '1000000 100000 5000 500 4'),
  ('items', 'items_kind_run_id', '1000000 100000 5000 20'),
  ('items', 'items_kind_created_at', '1000000 100000 5000 2'),
  ('links', 'sqlite_autoindex_links_1', '1000000 100000 10 1'),
  ('links', 'links_item_id_source_id', '1000000 100000 10 1'),
  ('idempotency', 'sqlite_autoindex_idempotency_1', '1000000 100000 5000 1'),
  ('idempotency', 'idempotency_entry_id', '1000000 100000 1');
