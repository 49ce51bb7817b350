#!/bin/sh
# Run once by the image of PostgreSQL, on an empty volume: the server's own role, which is no superuser, and its
# database. Row-level security binds it like any other.
set -eu
psql --set=ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres \
    --set=password="$(cat "${MUNIMENT_PASSWORD_FILE:-/run/secrets/muniment_password}")" <<'SQL'
CREATE ROLE muniment LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS PASSWORD :'password';
CREATE DATABASE muniment OWNER muniment ENCODING UTF8 TEMPLATE template0;
REVOKE ALL ON DATABASE muniment FROM PUBLIC;
SQL
