-- What an item's row was when it was written: a digest over its columns, held against them whenever the item is read.
-- Null of items that were written before, until a rebuild, and of those that were forgotten.

ALTER TABLE {schema}.items ADD COLUMN digest bytea;
