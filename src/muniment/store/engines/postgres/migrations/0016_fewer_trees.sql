-- What is written with every item has a place in each index of its tables. A list without a status is read status by
-- status, of which there are a few, and needs no index of its own.

DROP INDEX {schema}.listings_kind_owner_placed_at_id;
