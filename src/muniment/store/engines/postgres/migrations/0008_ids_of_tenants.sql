-- Ids are a tenant's own (X-09): the key of ids is led by the tenant, as every other key is. So two tenants never meet,
-- in an answer, an error or a lock: a unique key that spans tenants is checked against rows that row-level security hides.
--
-- The rows stay where they are; only the index is built anew.

ALTER TABLE {schema}.ids DROP CONSTRAINT ids_pkey, ADD PRIMARY KEY (tenant_id, id);
