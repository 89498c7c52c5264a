import type { Variables } from '../../lib/settings/settings.ts';

/** What libpq and pg read from the environment by themselves: each would keep the service from PostgreSQL. */
export const libpqEnvironment: Variables = {
  NODE_PG_FORCE_NATIVE: '1',
  PGHOST: 'nowhere.invalid',
  PGOPTIONS: '-c no_such_setting=1',
  PGREPLICATION: 'database',
  PGSSLMODE: 'require',
  PGSSLNEGOTIATION: 'direct',
};
