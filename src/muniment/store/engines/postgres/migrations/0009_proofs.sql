-- What builds and receipts are held against, which no entry gives: chains of proofs, a link for each of their versions.
-- A link holds no word; its salt goes when the item is forgotten, in place, as content does.
--
-- checked says what an item's row is held against, so that one whose digest or proof was taken away is told from a row of
-- before there were any.

CREATE TABLE {schema}.proofs (
  tenant_id text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  item_id text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  keyed bigint NOT NULL,
  salt bytea,
  digest bytea NOT NULL,
  hash bytea NOT NULL,
  PRIMARY KEY (tenant_id, user_id, session_id, number)
);
CREATE UNIQUE INDEX proofs_item_id_version ON {schema}.proofs (tenant_id, item_id, version);

ALTER TABLE {schema}.proofs ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.proofs FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.proofs
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));

ALTER TABLE {schema}.items ADD COLUMN checked bigint NOT NULL DEFAULT 0;

-- Whoever may work with the ledger may work with the proofs: a server whose role owns nothing was given its
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
    FOREACH target IN ARRAY ARRAY['{schema}.proofs'] LOOP
      EXECUTE format(
        'GRANT %s ON %s TO %s',
        given.privilege_type,
        target,
        CASE WHEN given.grantee = 0 THEN 'PUBLIC' ELSE given.grantee::regrole::text END
      );
    END LOOP;
  END LOOP;
END $$;
