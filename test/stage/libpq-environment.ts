import type { Variables } from '../../lib/settings/environment.ts';

/** Variables that libpq and pg read from the environment. Each would prevent the service from connecting. */
export const libpqEnvironment: Variables = {
  NODE_PG_FORCE_NATIVE: '1',
  PGHOST: 'nowhere.invalid',
  PGOPTIONS: '-c no_such_setting=1',
  PGREPLICATION: 'database',
  PGSSLMODE: 'require',
  PGSSLNEGOTIATION: 'direct',
};
