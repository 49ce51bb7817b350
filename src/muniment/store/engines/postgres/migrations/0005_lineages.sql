-- The turns of a user that an item was made from, in one row.

CREATE TABLE {schema}.lineages (
  tenant_id text COLLATE "C" NOT NULL,
  item_id text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  turns text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant_id, item_id)
);
CREATE INDEX lineages_user_id_item_id ON {schema}.lineages (tenant_id, user_id, item_id);

ALTER TABLE {schema}.lineages ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.lineages FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.lineages
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));
