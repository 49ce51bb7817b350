-- Lists in pages: where each item that is shown in a list stands in it, which entries are a run's, and where the sessions
-- of a user are cut into episodes. No word stands in any of it, and all of it is made again by a rebuild.
--
-- Whoever runs this owns the tables, and goes past the walls between tenants while the rows of before are gone through.

CREATE TABLE {schema}.listings (
  tenant_id text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  kind text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL,
  placed_at text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant_id, id)
);
CREATE INDEX listings_kind_owner_placed_at_id ON {schema}.listings (tenant_id, kind, owner, placed_at, id);
CREATE INDEX listings_kind_owner_status_placed_at_id ON {schema}.listings (tenant_id, kind, owner, status, placed_at, id);
CREATE INDEX listings_kind_placed_at_id ON {schema}.listings (tenant_id, kind, placed_at, id);

ALTER TABLE {schema}.items NO FORCE ROW LEVEL SECURITY;
ALTER TABLE {schema}.sessions NO FORCE ROW LEVEL SECURITY;

INSERT INTO {schema}.listings (tenant_id, id, version, kind, owner, status, placed_at)
SELECT
  newest.tenant_id,
  newest.id,
  newest.version,
  newest.kind,
  CASE
    WHEN newest.kind IN ('claim', 'conflict', 'question', 'verification') THEN coalesce(newest.run_id, '')
    WHEN newest.user_id IS NOT NULL THEN newest.user_id
    WHEN newest.agent_id IS NOT NULL THEN 'bank:agent:' || newest.agent_id
    ELSE 'bank:tenant'
  END,
  newest.status,
  coalesce(
    (SELECT first.created_at FROM {schema}.items AS first
     WHERE first.tenant_id = newest.tenant_id AND first.id = newest.id ORDER BY first.version LIMIT 1),
    newest.created_at
  )
FROM {schema}.items AS newest
WHERE newest.kind IN (
    'run', 'build', 'fact', 'candidate', 'claim', 'conflict', 'question', 'verification', 'document', 'reasoning', 'tactic',
    'seed', 'trace_capsule', 'rule', 'event_log', 'draft', 'plan'
  )
  AND newest.body IS NOT NULL
  AND NOT (
    newest.kind = 'run'
    AND (substr(newest.user_id, 1, 5) = 'bank:' OR substr(newest.user_id, 1, 7) = 'corpus:')
  )
  AND NOT EXISTS (
    SELECT 1 FROM {schema}.items AS later
    WHERE later.tenant_id = newest.tenant_id AND later.id = newest.id AND later.version > newest.version
  );

CREATE INDEX entries_run_id_seq_id ON {schema}.entries (tenant_id, run_id, seq, id);

CREATE TABLE {schema}.episodes (
  tenant_id text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL,
  first bigint NOT NULL,
  last bigint NOT NULL,
  turns bigint NOT NULL,
  started_at text COLLATE "C" NOT NULL,
  ended_at text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant_id, user_id, session_id, first)
);

-- Sessions of before are gone through by what is next written to them, or by a rebuild; until then when they are read.
INSERT INTO {schema}.episodes (tenant_id, user_id, session_id, first, last, turns, started_at, ended_at)
SELECT tenant_id, user_id, session_id, 0, 0, 0, '', '' FROM {schema}.sessions
WHERE NOT (substr(user_id, 1, 5) = 'bank:' OR substr(user_id, 1, 7) = 'corpus:');

ALTER TABLE {schema}.items FORCE ROW LEVEL SECURITY;
ALTER TABLE {schema}.sessions FORCE ROW LEVEL SECURITY;

ALTER TABLE {schema}.listings ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.listings FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.listings
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));

ALTER TABLE {schema}.episodes ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.episodes FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.episodes
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));

-- Whoever may work with the ledger may work with the lists: a server whose role owns nothing was given its rights table by
-- table, and would otherwise fail at its first write.
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
    FOREACH target IN ARRAY ARRAY['{schema}.listings', '{schema}.episodes'] LOOP
      EXECUTE format(
        'GRANT %s ON %s TO %s',
        given.privilege_type,
        target,
        CASE WHEN given.grantee = 0 THEN 'PUBLIC' ELSE given.grantee::regrole::text END
      );
    END LOOP;
  END LOOP;
END $$;
