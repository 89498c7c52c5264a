import type { ClientConfig } from 'pg';
import PgClient from 'pg/lib/client.js';

/**
 * pg's client in JavaScript, with the configuration that it is given. Not from pg's main module, which may load another
 * one (NODE_PG_FORCE_NATIVE); and what pg would add by itself from PGOPTIONS and PGREPLICATION is left out.
 */
export class Client extends PgClient {
  constructor(config: ClientConfig) {
    super(config);
    const { options } = config;
    Object.assign(this.connectionParameters, { options, replication: undefined });
  }
}
