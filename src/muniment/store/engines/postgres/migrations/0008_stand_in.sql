-- Holds the place of the migration that comes before 0009; changes nothing.
SELECT 1;
