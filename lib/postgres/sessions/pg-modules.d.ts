/** Modules of pg that have no types of their own. */
declare module 'pg/lib/client.js' {
  import type { EventEmitter } from 'node:events';
  import type { Socket } from 'node:net';
  import { type ClientConfig, Client as PgClient } from 'pg';

  type Events = {
    parameterStatus: [{ readonly parameterName: string; readonly parameterValue: string }];
    readyForQuery: [];
    error: [Error];
    errorMessage: [Error];
  };

  export default class Client extends PgClient {
    constructor(config: ClientConfig);
    readonly connection: EventEmitter<Events> & {
      readonly stream: Socket;
      attachListeners(stream: Socket): void;
    };
    protected readonly connectionParameters: object;
    protected readonly readyForQuery: boolean;
    readonly processID: number;
    connect(): Promise<this>;
  }
}

declare module 'pg/lib/crypto/utils.js' {
  /** The salted password of SCRAM. */
  const crypto: { deriveKey(password: string, salt: Buffer, iterations: number): Promise<ArrayBuffer> };
  export default crypto;
}

declare module 'pg/lib/utils.js' {
  /** A value as the text of a parameter; bytes stay bytes. */
  export function prepareValue(value: unknown): string | Buffer | null;
}
