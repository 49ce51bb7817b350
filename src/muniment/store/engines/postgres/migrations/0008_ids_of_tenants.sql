-- Ids are a tenant's own (X-09): the key of ids is led by the tenant, as every other key is. So two tenants never meet,
-- in an answer, an error or a lock: a unique key that spans tenants is checked against rows that row-level security hides.
--
-- The rows stay where they are; only the index is built anew. Whoever partitioned the table may have named its key.
DO $$
DECLARE
  key text;
BEGIN
  SELECT conname INTO STRICT key FROM pg_constraint WHERE conrelid = '{schema}.ids'::regclass AND contype = 'p';
  EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', '{schema}.ids', key);
  EXECUTE format('ALTER TABLE %s ADD CONSTRAINT %I PRIMARY KEY (tenant_id, id)', '{schema}.ids', key);
END $$;
