-- What the processes of a server share: long works and who carries them out, kept answers to requests with an
-- idempotency key, how often answers were cleared, how many requests a key has left, the keys themselves.
-- None of it is evidence: no dump has it and no chain covers it. Rows that are of no tenant are those of a name that no
-- tenant can have. Works and replies hold content; whatever is forgotten in a tenant, all of theirs goes.

CREATE TABLE {schema}.works (
  tenant_id text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  user_id text COLLATE "C",
  status text COLLATE "C" NOT NULL,
  progress bigint NOT NULL,
  tries bigint NOT NULL,
  clearing bigint NOT NULL,
  started_at text COLLATE "C" NOT NULL,
  finished_at text COLLATE "C",
  salt bytea,
  asked text COLLATE "C",
  answer text COLLATE "C",
  PRIMARY KEY (tenant_id, id)
);

CREATE TABLE {schema}.leases (
  tenant_id text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  beats bigint NOT NULL,
  is_open bigint NOT NULL,
  PRIMARY KEY (tenant_id, id)
);
CREATE INDEX leases_is_open_id ON {schema}.leases (tenant_id, is_open, id);

CREATE TABLE {schema}.replies (
  tenant_id text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  key_hash bytea NOT NULL,
  created_at text COLLATE "C" NOT NULL,
  kept bigint NOT NULL,
  size bigint NOT NULL,
  status bigint NOT NULL,
  salt bytea,
  said bytea,
  headers text COLLATE "C",
  body bytea,
  PRIMARY KEY (tenant_id, user_id, key_hash)
);
CREATE INDEX replies_kept_created_at ON {schema}.replies (tenant_id, kept, created_at);

CREATE TABLE {schema}.clearings (
  tenant_id text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  PRIMARY KEY (tenant_id)
);

CREATE TABLE {schema}.rates (
  tenant_id text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  left_milli bigint NOT NULL,
  at_ms bigint NOT NULL,
  PRIMARY KEY (tenant_id, name)
);

CREATE TABLE {schema}.keys (
  tenant_id text COLLATE "C" NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  body text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant_id, key_id)
);
CREATE INDEX keys_number ON {schema}.keys (tenant_id, number);

ALTER TABLE {schema}.works ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.works FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.works
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));

ALTER TABLE {schema}.leases ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.leases FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.leases
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));

ALTER TABLE {schema}.replies ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.replies FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.replies
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));

ALTER TABLE {schema}.clearings ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.clearings FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.clearings
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));

ALTER TABLE {schema}.rates ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.rates FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.rates
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));

ALTER TABLE {schema}.keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.keys FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.keys
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
      '{schema}.works', '{schema}.leases', '{schema}.replies',
      '{schema}.clearings', '{schema}.rates', '{schema}.keys'
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
