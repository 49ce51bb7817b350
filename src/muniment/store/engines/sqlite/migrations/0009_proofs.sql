-- What builds and receipts are held against, which no entry gives: chains of proofs, a link for each of their versions.
-- A link holds no word; its salt goes when the item is forgotten, in place, as content does.
--
-- checked says what an item's row is held against, so that one whose digest or proof was taken away is told from a row of
-- before there were any.

CREATE TABLE proofs (
  tenant_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  item_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  keyed INTEGER NOT NULL,
  salt BLOB,
  digest BLOB NOT NULL,
  hash BLOB NOT NULL,
  PRIMARY KEY (tenant_id, user_id, session_id, number)
) STRICT;
CREATE UNIQUE INDEX proofs_item_id_version ON proofs (tenant_id, item_id, version);

ALTER TABLE items ADD COLUMN checked INTEGER NOT NULL DEFAULT 0;

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
  ('proofs', 'sqlite_autoindex_proofs_1', '1000000 100000 5000 200 1'),
  ('proofs', 'proofs_item_id_version', '1000000 100000 2 1');
