#!/bin/bash
# The part of the official image's entrypoint that is used here: the first start with an empty data folder uses
# POSTGRES_USER, POSTGRES_PASSWORD and POSTGRES_DB.
set -eu

if [ "$1" != postgres ]; then exec "$@"; fi

user=${POSTGRES_USER:-postgres}
database=${POSTGRES_DB:-$user}

if [ "$(id -u)" -eq 0 ]; then
  mkdir -p "$PGDATA"
  chown -R postgres:postgres /var/lib/postgresql /run/postgresql
  exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi

if [ ! -s "$PGDATA/PG_VERSION" ]; then
  if [ -z "${POSTGRES_PASSWORD:-}" ]; then
    echo 'POSTGRES_PASSWORD is not set' >&2
    exit 1
  fi
  initdb --pgdata="$PGDATA" --username="$user" --pwfile=<(echo "$POSTGRES_PASSWORD") --auth-local=trust \
    --auth-host=scram-sha-256 --encoding=UTF8 --locale=C --locale-provider=builtin --builtin-locale=C.UTF-8
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
  # No client can connect from outside before the database exists.
  pg_ctl --pgdata="$PGDATA" -o "-c listen_addresses='' -c unix_socket_directories=/run/postgresql" --wait start
  if [ "$database" != postgres ]; then
    psql -h /run/postgresql -U "$user" -d postgres -v name="$database" <<<'CREATE DATABASE :"name"'
  fi
  pg_ctl --pgdata="$PGDATA" --mode=fast --wait stop
fi

exec "$@" -c listen_addresses='*' -c unix_socket_directories=/run/postgresql
