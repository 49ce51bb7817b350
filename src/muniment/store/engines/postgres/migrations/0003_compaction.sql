-- What snapshots are made of.

CREATE TABLE {schema}.parts (
  tenant_id text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  hash bytea NOT NULL,
  body text COLLATE "C",
  receipt_id text COLLATE "C",
  PRIMARY KEY (tenant_id, owner, hash)
);

ALTER TABLE {schema}.parts ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.parts FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.parts
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));
