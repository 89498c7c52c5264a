import type { ClientConfig } from 'pg';
import type { Settings } from '../settings.ts';
import { Client } from './client.ts';
import { abandon, clientConfig } from './connection.ts';

type Postgres = Settings['postgres'];

/** Where a PostgreSQL listens. */
export type Server = Postgres['servers'][number];

/** Of the servers of SVC_POSTGRES_HOST the one in use: the one that takes writes; while none does, one to read from. */
export type Servers = {
  /** Connects to the server in use, and leaves it, between statements, as soon as another one is. */
  readonly Client: new (
    config: ClientConfig,
  ) => Client;
  /** The one in use, as far as it is known. */
  inUse(): Server;
};

type Found = { readonly server: Server; readonly takesWrites: boolean };

/** In milliseconds: so long those are waited for that would be better than what has been found. */
const PATIENCE = 500;

/** In milliseconds, from one look for a server that takes writes to the next. */
const LOOK_EVERY = 300;

/** In seconds. */
const CONNECT_TIMEOUT = 1;

/**
 * Looks which server to use, as libpq does with `target_session_attrs=read-write`: the first in the list that takes
 * writes. But all are asked at once, and while none takes writes it is the first that can be read.
 *
 * @throws {AggregateError} when none can be reached
 */
export async function findServer(postgres: Postgres): Promise<Server> {
  return postgres.servers.length === 1 ? postgres.servers[0] : (await look(postgres)).server;
}

/** Keeps to the server in use; with a list of one there is nothing to look for. */
export function followServers(postgres: Postgres): Servers {
  const [only] = postgres.servers;
  if (postgres.servers.length === 1) return { Client, inUse: () => only };

  const sessions = new Set<Follower>();
  let inUse = only;
  /** Nothing is certain once a connection has broken, or none is left. */
  let found: Found | undefined;
  let looking: Promise<Found> | undefined;
  let timer: NodeJS.Timeout | undefined;

  function find(): Promise<Found> {
    looking ??= look(postgres)
      .then(use)
      .finally(() => {
        looking = undefined;
      });
    return looking;
  }

  function use(next: Found): Found {
    found = next;
    inUse = next.server;
    if (!next.takesWrites) lookAgain();
    else {
      for (const session of sessions) {
        if (session.server !== next.server || session.takesWrites === false) session.leave();
      }
    }
    return next;
  }

  /** As long as somebody is connected to a server that takes no writes. */
  function lookAgain(): void {
    if (timer) return;
    timer = setTimeout(() => {
      timer = undefined;
      if (sessions.size > 0 && !found?.takesWrites) find().catch(lookAgain);
    }, LOOK_EVERY).unref();
  }

  class Follower extends Session {
    server: Server | undefined;
    #isLeaving = false;

    override connect(): Promise<this>;
    override connect(done: (error?: Error) => void): void;
    override connect(done?: (error?: Error) => void): Promise<this> | undefined {
      const connected = this.#connect();
      if (!done) return connected;
      connected.then(() => done(), done);
      return undefined;
    }

    async #connect(): Promise<this> {
      const { stream } = this.connection;
      // Whoever gives up while a server is looked for is told at once.
      const { promise: givenUp, reject } = Promise.withResolvers<never>();
      const giveUp = () => reject(new Error('timeout expired'));
      stream.once('close', giveUp);
      const { server } = await Promise.race([found ?? find(), givenUp]);
      stream.off('close', giveUp);
      Object.assign(this, server);
      this.server = server;
      try {
        await super.connect();
      } catch (fault) {
        this.#doubt();
        throw fault;
      }
      sessions.add(this);
      this.on('error', () => this.#doubt());
      this.once('end', () => {
        sessions.delete(this);
        if (sessions.size === 0) found = undefined;
      });
      this.onWritesChange(() => this.#compare());
      this.#compare();
      return this;
    }

    /** What a session says of its server is newer than what was found. */
    #compare(): void {
      if (this.takesWrites !== undefined && this.takesWrites !== found?.takesWrites) find().catch(() => {});
    }

    #doubt(): void {
      if (!this.#isLeaving && found?.server === this.server) found = undefined;
    }

    /** The pool takes an error for the end of a connection that lies idle; one in use ends with its statement. */
    leave(): void {
      if (this.#isLeaving) return;
      this.#isLeaving = true;
      this.once('drain', () => void this.end());
      this.emit('error', new Error('another server takes writes'));
    }
  }

  return { Client: Follower, inUse: () => inUse };
}

/** A client that knows whether its server takes writes: PostgreSQL 14 tells at the beginning, and when that changes. */
class Session extends Client {
  readonly #reported = new Map<string, string>();

  constructor(config: ClientConfig) {
    super(config);
    this.connection.on('parameterStatus', ({ parameterName, parameterValue }) => {
      this.#reported.set(parameterName, parameterValue);
    });
  }

  /** Undefined where the server, or a pooler before it, does not tell. */
  get takesWrites(): boolean | undefined {
    const [isStandby, isReadOnly] = ['in_hot_standby', 'default_transaction_read_only'].map((name) =>
      this.#reported.get(name),
    );
    if (isStandby === 'on' || isReadOnly === 'on') return false;
    return isStandby === undefined || isReadOnly === undefined ? undefined : true;
  }

  onWritesChange(listener: () => void): void {
    this.connection.on('parameterStatus', ({ parameterName }) => {
      if (/^(in_hot_standby|default_transaction_read_only)$/.test(parameterName)) listener();
    });
  }
}

function look(postgres: Postgres): Promise<Found> {
  const { servers } = postgres;
  const states: (boolean | Error | 'asked')[] = servers.map(() => 'asked');
  const { promise, resolve, reject } = Promise.withResolvers<Found>();
  let isLate = false;
  const late = setTimeout(() => {
    isLate = true;
    judge();
  }, PATIENCE);

  function judge(): void {
    const isAsked = (state: unknown) => !isLate && state === 'asked';
    const writer = states.indexOf(true);
    const reader = states.some(isAsked) ? -1 : states.indexOf(false);
    if (writer >= 0 && !states.slice(0, writer).some(isAsked)) take(writer, true);
    else if (writer < 0 && reader >= 0) take(reader, false);
    else if (states.every((state) => state instanceof Error)) {
      reject(new AggregateError(states, states.map(({ message }) => message).join('; ')));
    }
  }

  function take(index: number, takesWrites: boolean): void {
    resolve({ server: servers[index] as Server, takesWrites });
  }

  servers.forEach(async (server, index) => {
    states[index] = await askWhetherItWrites({ ...postgres, servers: [server] }).catch((error) => error);
    judge();
  });
  return promise.finally(() => clearTimeout(late));
}

async function askWhetherItWrites(postgres: Postgres): Promise<boolean> {
  const timeout = Math.max(postgres.poolTimeout, CONNECT_TIMEOUT);
  const client = new Session(clientConfig(postgres, timeout));
  const giveUp = setTimeout(() => abandon(client), timeout * 1000);
  client.on('error', () => {});
  try {
    await client.connect();
    if (client.takesWrites !== undefined) return client.takesWrites;
    const { rows } = await client.query('show transaction_read_only');
    return rows[0]?.transaction_read_only === 'off';
  } finally {
    clearTimeout(giveUp);
    abandon(client);
  }
}
