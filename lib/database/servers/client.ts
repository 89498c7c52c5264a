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
    // Whoever waits for an answer is told. Without a listener the error would end the process, and one may come in the
    // same bytes with which PostgreSQL says that the session has begun.
    this.on('error', () => {});
    // Without a password to give pg leaves the connection open. While a secret could not be read PostgreSQL had all of its
    // connections taken, each for the minute of `authentication_timeout`.
    this.connection.on('error', () => this.connection.stream.destroy());
  }
}
