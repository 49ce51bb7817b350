-- The index: blocks over the turns of one user, and their vectors.

CREATE TABLE {schema}.segments (
  tenant_id text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  first bigint NOT NULL,
  count bigint NOT NULL,
  level bigint NOT NULL,
  digest bytea NOT NULL,
  data bytea NOT NULL,
  PRIMARY KEY (tenant_id, user_id, first)
);

CREATE TABLE {schema}.vectors (
  tenant_id text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  embedder text COLLATE "C" NOT NULL,
  first bigint NOT NULL,
  count bigint NOT NULL,
  level bigint NOT NULL,
  digest bytea NOT NULL,
  data bytea NOT NULL,
  PRIMARY KEY (tenant_id, user_id, embedder, first)
);

ALTER TABLE {schema}.segments ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.segments FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.segments
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));

ALTER TABLE {schema}.vectors ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.vectors FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.vectors
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));
