-- What is read out of a session: the numbers that its packets gave to evidence, and the sentences that sum up its
-- stretches, as places in their entries. No word stands in either.

CREATE TABLE {schema}.marks (
  tenant_id text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  evidence_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant_id, user_id, session_id, number)
);
CREATE UNIQUE INDEX marks_user_id_session_id_evidence_id
  ON {schema}.marks (tenant_id, user_id, session_id, evidence_id);

CREATE TABLE {schema}.extracts (
  tenant_id text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL,
  level bigint NOT NULL,
  first bigint NOT NULL,
  data bytea NOT NULL,
  PRIMARY KEY (tenant_id, user_id, session_id, level, first)
);

ALTER TABLE {schema}.marks ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.marks FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.marks
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));

ALTER TABLE {schema}.extracts ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.extracts FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.extracts
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));

-- Whoever may work with the ledger may work with what is read out of it: a server whose role owns nothing was given its
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
    FOREACH target IN ARRAY ARRAY['{schema}.marks', '{schema}.extracts'] LOOP
      EXECUTE format(
        'GRANT %s ON %s TO %s',
        given.privilege_type,
        target,
        CASE WHEN given.grantee = 0 THEN 'PUBLIC' ELSE given.grantee::regrole::text END
      );
    END LOOP;
  END LOOP;
END $$;
