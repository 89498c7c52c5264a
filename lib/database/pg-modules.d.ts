/** Modules of pg that have no types of their own. */
declare module 'pg/lib/client.js' {
  import { type ClientConfig, Client as PgClient } from 'pg';

  export default class Client extends PgClient {
    constructor(config: ClientConfig);
    protected readonly connectionParameters: object;
  }
}

declare module 'pg-pool' {
  import { type ClientBase, Pool as PgPool, type PoolConfig } from 'pg';

  export default class Pool extends PgPool {
    constructor(config: Omit<PoolConfig, 'Client'> & { Client: new (config: PoolConfig) => ClientBase });
  }
}
