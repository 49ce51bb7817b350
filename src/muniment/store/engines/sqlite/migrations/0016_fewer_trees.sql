-- What is written with every item has one cell in each tree of its tables, and a page of the log for most of them.
--
-- A link is its key and nothing else, so it lies in the order of its key: one tree less.
-- SQLite cannot change a table in its place. The rows go over in the order of the key, without a sort that would have to
-- hold them; the pages of the old table are zeroed and free for what comes next.

CREATE TABLE lean_links (
  tenant_id TEXT NOT NULL,
  source_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  PRIMARY KEY (tenant_id, source_id, item_id)
) STRICT, WITHOUT ROWID;
INSERT INTO lean_links (tenant_id, source_id, item_id)
SELECT tenant_id, source_id, item_id FROM links ORDER BY tenant_id, source_id, item_id;
DROP TABLE links;
ALTER TABLE lean_links RENAME TO links;
CREATE INDEX links_item_id_source_id ON links (tenant_id, item_id, source_id);

-- A list without a status is read status by status, of which there are a few, and needs no index of its own.

DROP INDEX listings_kind_owner_placed_at_id;

DELETE FROM sqlite_stat1 WHERE tbl IN ('links', 'lean_links');
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
  ('links', 'links', '1000000 100000 10 1'),
  ('links', 'links_item_id_source_id', '1000000 100000 10 1');
