-- What is kept under names for a framework: the values of its stores, the checkpoints of its threads. The words stay in
-- the entries; these rows say where which of them stands. All of it is made again by a rebuild, but for the vectors,
-- which whoever searches makes again.

CREATE TABLE {schema}.places (
  tenant_id text COLLATE "C" NOT NULL,
  entry_id text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  space text COLLATE "C" NOT NULL,
  path text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  state bigint NOT NULL,
  made bigint NOT NULL,
  changed bigint NOT NULL,
  expires bigint NOT NULL,
  PRIMARY KEY (tenant_id, entry_id, number)
);
CREATE INDEX places_name_state ON {schema}.places (tenant_id, name, state);
CREATE INDEX places_space_state_path_name ON {schema}.places (tenant_id, space, state, path, name);
CREATE INDEX places_space_expires ON {schema}.places (tenant_id, space, expires);
CREATE INDEX places_user_id_session_id_seq ON {schema}.places (tenant_id, user_id, session_id, seq);

CREATE TABLE {schema}.prefixes (
  tenant_id text COLLATE "C" NOT NULL,
  space text COLLATE "C" NOT NULL,
  prefix text COLLATE "C" NOT NULL,
  changed bigint NOT NULL,
  entry_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant_id, space, prefix, changed, entry_id)
);
CREATE INDEX prefixes_entry_id ON {schema}.prefixes (tenant_id, entry_id);

CREATE TABLE {schema}.place_vectors (
  tenant_id text COLLATE "C" NOT NULL,
  entry_id text COLLATE "C" NOT NULL,
  embedder text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  digest bytea NOT NULL,
  data bytea NOT NULL,
  PRIMARY KEY (tenant_id, entry_id, embedder, number)
);

ALTER TABLE {schema}.places ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.places FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.places
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));

ALTER TABLE {schema}.prefixes ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.prefixes FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.prefixes
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));

ALTER TABLE {schema}.place_vectors ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.place_vectors FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.place_vectors
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));

-- Whoever may work with the ledger may work with these: a server whose role owns nothing was given its
-- rights table by table, and would otherwise fail at its first write.
DO $$
DECLARE
  given record;
  target text;
BEGIN
  FOR given IN
    SELECT DISTINCT rights.grantee, rights.privilege_type
    FROM pg_class,
         aclexplode(relacl) AS rights
    WHERE oid = '{schema}.entries'::regclass
      AND rights.grantee <> relowner
      AND rights.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
  LOOP
    FOREACH target IN ARRAY ARRAY[
      '{schema}.places', '{schema}.prefixes', '{schema}.place_vectors'
    ] LOOP
      EXECUTE format(
        'GRANT %s ON %s TO %s',
        given.privilege_type,
        target,
        CASE WHEN given.grantee = 0 THEN 'PUBLIC' ELSE given.grantee::regrole::text END
      );
    END LOOP;
  END LOOP;
END $$;
