import type { ClientConfig } from 'pg';
import PgClient from 'pg/lib/client.js';
import { type TakeRow, takeRows } from '../wire/rows.ts';

/**
 * pg's client in JavaScript, with the configuration that it is given. Not from pg's main module, which may load another
 * one (NODE_PG_FORCE_NATIVE); and what pg would add by itself from PGOPTIONS and PGREPLICATION is left out. It connects
 * only to a database with the encoding UTF8.
 */
export class Client extends PgClient {
  /** Takes rows in place of pg. */
  takeRow: TakeRow = () => false;

  constructor(config: ClientConfig) {
    super(config);
    const { options } = config;
    Object.assign(this.connectionParameters, { options, replication: undefined });
    // Waiting statements get the error by themselves. Without a listener the error would end the process, and one may
    // come in the same bytes as the message that the session has begun.
    this.on('error', () => {});
    // Without a password pg leaves the connection open. While a secret could not be read, such connections used up all
    // of PostgreSQL's, each for the minute of `authentication_timeout`.
    this.connection.on('error', () => this.connection.stream.destroy());
    const { attachListeners } = this.connection;
    this.connection.attachListeners = (stream) => {
      attachListeners.call(this.connection, stream);
      takeRows(stream, (received, at) => this.takeRow(received, at));
    };
    // No other encoding holds every value that the API accepts, and SQL_ASCII counts bytes as characters. PostgreSQL
    // and poolers report the encoding before a session begins, often in the same packet, which must not begin it then.
    this.connection.on('parameterStatus', ({ parameterName, parameterValue }) => {
      if (parameterName !== 'server_encoding' || parameterValue === 'UTF8') return;
      this.connection.removeAllListeners('readyForQuery');
      this.connection.stream.destroy(
        new Error(`the database has the encoding ${parameterValue}, and the service requires UTF8`),
      );
    });
  }
}
