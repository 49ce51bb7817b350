-- The turns of a user that an item was made from, in one row.

CREATE TABLE lineages (
  tenant_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  turns TEXT NOT NULL,
  PRIMARY KEY (tenant_id, item_id)
) STRICT;
CREATE INDEX lineages_user_id_item_id ON lineages (tenant_id, user_id, item_id);

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
  ('lineages', 'sqlite_autoindex_lineages_1', '1000000 100000 1'),
  ('lineages', 'lineages_user_id_item_id', '1000000 100000 5000 1');
