-- The newest items of a name come first without a sort: runs of one intent, records of one family.

CREATE INDEX items_kind_user_id_name_created_at ON {schema}.items (tenant_id, kind, user_id, name, created_at);
DROP INDEX {schema}.items_kind_user_id_name;
