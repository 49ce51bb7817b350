-- Ids are a tenant's own (X-09): the key of ids is led by the tenant, as every other key is. So two tenants never meet,
-- in an answer, an error or a lock.
--
-- SQLite cannot change a primary key in its place. The rows go over in the order in which they lie, without a sort that
-- would have to hold them; the pages of the old table are zeroed and free for what comes next.

CREATE TABLE ids_of_tenants (
  tenant_id TEXT NOT NULL,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  PRIMARY KEY (tenant_id, id)
) STRICT, WITHOUT ROWID;
INSERT INTO ids_of_tenants (tenant_id, id, kind) SELECT tenant_id, id, kind FROM ids;
DROP TABLE ids;
ALTER TABLE ids_of_tenants RENAME TO ids;

DELETE FROM sqlite_stat1 WHERE tbl IN ('ids', 'ids_of_tenants');
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('ids', 'ids', '1000000 100000 1');
