-- What lies outside the store: which object holds the content of which event, which archives there are, what is to be
-- deleted there. No word stands here: names are salted hashes or random.

CREATE TABLE {schema}.objects (
  tenant_id text COLLATE "C" NOT NULL,
  name bytea NOT NULL,
  use text COLLATE "C" NOT NULL,
  subject text COLLATE "C" NOT NULL,
  held_at text COLLATE "C" NOT NULL,
  sealed_by text COLLATE "C",
  size bigint NOT NULL,
  PRIMARY KEY (tenant_id, name)
);
CREATE UNIQUE INDEX objects_held_at ON {schema}.objects (tenant_id, held_at);
CREATE INDEX objects_use_subject ON {schema}.objects (tenant_id, use, subject);

ALTER TABLE {schema}.objects ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.objects FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.objects
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
    FOREACH target IN ARRAY ARRAY['{schema}.objects'] LOOP
      EXECUTE format(
        'GRANT %s ON %s TO %s',
        given.privilege_type,
        target,
        CASE WHEN given.grantee = 0 THEN 'PUBLIC' ELSE given.grantee::regrole::text END
      );
    END LOOP;
  END LOOP;
END $$;
