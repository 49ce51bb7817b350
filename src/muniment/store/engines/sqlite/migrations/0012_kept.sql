-- What is kept under names for a framework: the values of its stores, the checkpoints of its threads. The words stay in
-- the entries; these rows say where which of them stands. All of it is made again by a rebuild, but for the vectors,
-- which whoever searches makes again.

CREATE TABLE places (
  tenant_id TEXT NOT NULL,
  entry_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  user_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  space TEXT NOT NULL,
  path TEXT NOT NULL,
  name TEXT NOT NULL,
  state INTEGER NOT NULL,
  made INTEGER NOT NULL,
  changed INTEGER NOT NULL,
  expires INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, entry_id, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX places_name_state ON places (tenant_id, name, state);
CREATE INDEX places_space_state_path_name ON places (tenant_id, space, state, path, name);
CREATE INDEX places_space_expires ON places (tenant_id, space, expires);
CREATE INDEX places_user_id_session_id_seq ON places (tenant_id, user_id, session_id, seq);

CREATE TABLE prefixes (
  tenant_id TEXT NOT NULL,
  space TEXT NOT NULL,
  prefix TEXT NOT NULL,
  changed INTEGER NOT NULL,
  entry_id TEXT NOT NULL,
  PRIMARY KEY (tenant_id, space, prefix, changed, entry_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX prefixes_entry_id ON prefixes (tenant_id, entry_id);

CREATE TABLE place_vectors (
  tenant_id TEXT NOT NULL,
  entry_id TEXT NOT NULL,
  embedder TEXT NOT NULL,
  number INTEGER NOT NULL,
  digest BLOB NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (tenant_id, entry_id, embedder, number)
) STRICT;

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
  ('places', 'places', '1000000 100000 1 1'),
  ('places', 'places_name_state', '1000000 100000 2 2'),
  ('places', 'places_space_state_path_name', '1000000 100000 50000 20000 20 1'),
  ('places', 'places_space_expires', '1000000 100000 50000 1000'),
  ('places', 'places_user_id_session_id_seq', '1000000 100000 1000 1000 1'),
  ('prefixes', 'prefixes', '1000000 100000 50000 20 1 1'),
  ('prefixes', 'prefixes_entry_id', '1000000 100000 3'),
  ('place_vectors', 'sqlite_autoindex_place_vectors_1', '1000000 100000 1 1 1');
