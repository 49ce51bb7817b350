-- Lists in pages: where each item that is shown in a list stands in it, which entries are a run's, and where the sessions
-- of a user are cut into episodes. No word stands in any of it, and all of it is made again by a rebuild.
--
-- listings and episodes hold ids, numbers and moments, so they lie in the order of their keys.

CREATE TABLE listings (
  tenant_id TEXT NOT NULL,
  id TEXT NOT NULL,
  version INTEGER NOT NULL,
  kind TEXT NOT NULL,
  owner TEXT NOT NULL,
  status TEXT NOT NULL,
  placed_at TEXT NOT NULL,
  PRIMARY KEY (tenant_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX listings_kind_owner_placed_at_id ON listings (tenant_id, kind, owner, placed_at, id);
CREATE INDEX listings_kind_owner_status_placed_at_id ON listings (tenant_id, kind, owner, status, placed_at, id);
CREATE INDEX listings_kind_placed_at_id ON listings (tenant_id, kind, placed_at, id);

INSERT INTO listings (tenant_id, id, version, kind, owner, status, placed_at)
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
    (SELECT first.created_at FROM items AS first
     WHERE first.tenant_id = newest.tenant_id AND first.id = newest.id ORDER BY first.version LIMIT 1),
    newest.created_at
  )
FROM items AS newest
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
    SELECT 1 FROM items AS later
    WHERE later.tenant_id = newest.tenant_id AND later.id = newest.id AND later.version > newest.version
  );

CREATE INDEX entries_run_id_seq_id ON entries (tenant_id, run_id, seq, id);

CREATE TABLE episodes (
  tenant_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  turns INTEGER NOT NULL,
  started_at TEXT NOT NULL,
  ended_at TEXT NOT NULL,
  PRIMARY KEY (tenant_id, user_id, session_id, first)
) STRICT, WITHOUT ROWID;

-- Sessions of before are gone through by what is next written to them, or by a rebuild; until then when they are read.
INSERT INTO episodes (tenant_id, user_id, session_id, first, last, turns, started_at, ended_at)
SELECT tenant_id, user_id, session_id, 0, 0, 0, '', '' FROM sessions
WHERE NOT (substr(user_id, 1, 5) = 'bank:' OR substr(user_id, 1, 7) = 'corpus:');

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
  ('listings', 'listings', '1000000 100000 1'),
  ('listings', 'listings_kind_owner_placed_at_id', '1000000 100000 5000 200 2 1'),
  ('listings', 'listings_kind_owner_status_placed_at_id', '1000000 100000 5000 200 100 2 1'),
  ('listings', 'listings_kind_placed_at_id', '1000000 100000 5000 2 1'),
  ('entries', 'entries_run_id_seq_id', '1000000 100000 100 1 1'),
  ('episodes', 'episodes', '1000000 100000 5000 50 1');
