-- The newest items of a name come first without a sort: runs of one intent, records of one family.

CREATE INDEX items_kind_user_id_name_created_at ON items (tenant_id, kind, user_id, name, created_at);
DROP INDEX items_kind_user_id_name;

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
  ('items', 'items_kind_user_id_name_created_at', '1000000 100000 5000 500 4 1');
