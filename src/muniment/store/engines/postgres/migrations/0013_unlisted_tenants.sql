-- A check of the whole store asks which tenants have sessions, so that it does not pass by one whose row among the tenants
-- was taken out, with all it has. Whoever asks says so with a setting of its own, and is shown sessions alone.

CREATE POLICY every_tenant ON {schema}.sessions FOR SELECT
  USING (current_setting('muniment.census', true) = 'on');
