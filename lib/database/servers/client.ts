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

  /**
   * As pg's, but a connection that comes to nothing is closed. Without a password to give pg leaves it open, and while a
   * secret could not be read PostgreSQL had all its connections taken, each for the minute of `authentication_timeout`.
   */
  override connect(): Promise<this>;
  override connect(done: (error?: Error) => void): void;
  override connect(done?: (error?: Error) => void): Promise<this> | undefined {
    const { stream } = this.connection;
    const connected = super.connect().catch((fault) => {
      stream.destroy();
      throw fault;
    });
    if (!done) return connected;
    connected.then(() => done(), done);
    return undefined;
  }
}
