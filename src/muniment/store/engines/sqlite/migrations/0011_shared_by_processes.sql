-- What the processes of a server share: long works and who carries them out, kept answers to requests with an
-- idempotency key, how often answers were cleared, how many requests a key has left, the keys themselves.
-- None of it is evidence: no dump has it and no chain covers it. Rows that are of no tenant are those of a name that no
-- tenant can have. Works and replies hold content; whatever is forgotten in a tenant, all of theirs goes.

CREATE TABLE works (
  tenant_id TEXT NOT NULL,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  user_id TEXT,
  status TEXT NOT NULL,
  progress INTEGER NOT NULL,
  tries INTEGER NOT NULL,
  clearing INTEGER NOT NULL,
  started_at TEXT NOT NULL,
  finished_at TEXT,
  salt BLOB,
  asked TEXT,
  answer TEXT,
  PRIMARY KEY (tenant_id, id)
) STRICT;

CREATE TABLE leases (
  tenant_id TEXT NOT NULL,
  id TEXT NOT NULL,
  tenant TEXT NOT NULL,
  owner TEXT NOT NULL,
  beats INTEGER NOT NULL,
  is_open INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, id)
) STRICT;
CREATE INDEX leases_is_open_id ON leases (tenant_id, is_open, id);

CREATE TABLE replies (
  tenant_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  key_hash BLOB NOT NULL,
  created_at TEXT NOT NULL,
  kept INTEGER NOT NULL,
  size INTEGER NOT NULL,
  status INTEGER NOT NULL,
  salt BLOB,
  said BLOB,
  headers TEXT,
  body BLOB,
  PRIMARY KEY (tenant_id, user_id, key_hash)
) STRICT;
CREATE INDEX replies_kept_created_at ON replies (tenant_id, kept, created_at);

CREATE TABLE clearings (
  tenant_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  PRIMARY KEY (tenant_id)
) STRICT;

CREATE TABLE rates (
  tenant_id TEXT NOT NULL,
  name TEXT NOT NULL,
  left_milli INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, name)
) STRICT;

CREATE TABLE keys (
  tenant_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (tenant_id, key_id)
) STRICT;
CREATE INDEX keys_number ON keys (tenant_id, number);

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
  ('works', 'sqlite_autoindex_works_1', '10000 100 1'),
  ('leases', 'sqlite_autoindex_leases_1', '10000 10000 1'),
  ('leases', 'leases_is_open_id', '10000 10000 5000 1'),
  ('replies', 'sqlite_autoindex_replies_1', '100000 1000 100 1'),
  ('replies', 'replies_kept_created_at', '100000 1000 500 1'),
  ('clearings', 'sqlite_autoindex_clearings_1', '100 1'),
  ('rates', 'sqlite_autoindex_rates_1', '1000 1000 1'),
  ('keys', 'sqlite_autoindex_keys_1', '1000 1000 1'),
  ('keys', 'keys_number', '1000 1000 1');
