-- The ground: every table of ports.schema, for PostgreSQL.
--
-- The schema of the store is put in for the word in braces.
--
-- Text compares by code point: COLLATE "C" on UTF-8. Keys and indexes are led by tenant_id, so that the tables
-- can be distributed by it, except ids, whose key is unique across tenants (X-09): uniqueness holds there even
-- for rows a tenant cannot see.
--
-- LG-02: row-level security is enabled and forced (so it binds the owner too) on every table with tenant data.
-- A transaction sees and writes the rows of the tenant named by the setting muniment.tenant; without one it
-- sees and writes nothing. Only the list of tenants can be read as a whole, by the tenant '*'.

CREATE TABLE {schema}.migrations (
  number bigint NOT NULL PRIMARY KEY,
  name text COLLATE "C" NOT NULL,
  sha256 text COLLATE "C" NOT NULL,
  applied_at text COLLATE "C" NOT NULL
);

CREATE TABLE {schema}.tenants (
  tenant_id text COLLATE "C" NOT NULL,
  created_at text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant_id)
);

CREATE TABLE {schema}.ids (
  tenant_id text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  PRIMARY KEY (id)
);

CREATE TABLE {schema}.sessions (
  tenant_id text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL,
  head_seq bigint NOT NULL,
  head_hash bytea NOT NULL,
  head_recorded_at text COLLATE "C" NOT NULL,
  created_at text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant_id, user_id, session_id)
);
CREATE INDEX sessions_session_id_user_id ON {schema}.sessions (tenant_id, session_id, user_id);

CREATE TABLE {schema}.entries (
  tenant_id text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL,
  run_id text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  ts text COLLATE "C" NOT NULL,
  recorded_at text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  role text COLLATE "C" NOT NULL,
  trust text COLLATE "C" NOT NULL,
  flags text COLLATE "C" NOT NULL,
  content_hash bytea NOT NULL,
  prev_hash bytea NOT NULL,
  hash bytea NOT NULL,
  salt bytea,
  body text COLLATE "C",
  receipt_id text COLLATE "C",
  PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX entries_user_id_session_id_seq ON {schema}.entries (tenant_id, user_id, session_id, seq);

CREATE TABLE {schema}.blobs (
  tenant_id text COLLATE "C" NOT NULL,
  hash bytea NOT NULL,
  entry_id text COLLATE "C" NOT NULL,
  size bigint NOT NULL,
  data bytea,
  PRIMARY KEY (tenant_id, hash)
);
CREATE INDEX blobs_entry_id ON {schema}.blobs (tenant_id, entry_id);

CREATE TABLE {schema}.items (
  tenant_id text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  kind text COLLATE "C" NOT NULL,
  user_id text COLLATE "C",
  agent_id text COLLATE "C",
  session_id text COLLATE "C",
  run_id text COLLATE "C",
  status text COLLATE "C" NOT NULL,
  name text COLLATE "C",
  created_at text COLLATE "C" NOT NULL,
  trust text COLLATE "C" NOT NULL,
  body text COLLATE "C",
  receipt_id text COLLATE "C",
  PRIMARY KEY (tenant_id, id, version)
);
CREATE INDEX items_kind_user_id_name ON {schema}.items (tenant_id, kind, user_id, name);
CREATE INDEX items_kind_run_id ON {schema}.items (tenant_id, kind, run_id);
CREATE INDEX items_kind_created_at ON {schema}.items (tenant_id, kind, created_at);

CREATE TABLE {schema}.links (
  tenant_id text COLLATE "C" NOT NULL,
  source_id text COLLATE "C" NOT NULL,
  item_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant_id, source_id, item_id)
);
CREATE INDEX links_item_id_source_id ON {schema}.links (tenant_id, item_id, source_id);

CREATE TABLE {schema}.idempotency (
  tenant_id text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  key_hash bytea NOT NULL,
  entry_id text COLLATE "C" NOT NULL,
  request_hash bytea,
  PRIMARY KEY (tenant_id, user_id, key_hash)
);
CREATE INDEX idempotency_entry_id ON {schema}.idempotency (tenant_id, entry_id);

ALTER TABLE {schema}.tenants ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.tenants FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.tenants
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));

ALTER TABLE {schema}.ids ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.ids FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.ids
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));

ALTER TABLE {schema}.sessions ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.sessions FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.sessions
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));

ALTER TABLE {schema}.entries ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.entries FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.entries
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));

ALTER TABLE {schema}.blobs ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.blobs FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.blobs
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));

ALTER TABLE {schema}.items ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.items FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.items
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));

ALTER TABLE {schema}.links ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.links FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.links
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));

ALTER TABLE {schema}.idempotency ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.idempotency FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.idempotency
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));

CREATE POLICY every_tenant ON {schema}.tenants FOR SELECT
  USING (current_setting('muniment.tenant', true) = '*');
