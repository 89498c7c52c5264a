import type { ClientConfig } from 'pg';
import type { Settings } from '../../settings.ts';
import { Client } from './client.ts';
import { askServers, type Found, type Server } from './find-server.ts';
import { ReportingClient } from './reporting-client.ts';

type Postgres = Settings['postgres'];

/** Of the servers of SVC_POSTGRES_HOST the one in use: the one that takes writes; while none does, one to read from. */
export type Servers = {
  /** Connects to the server in use, and leaves it, between statements, as soon as another one is. */
  readonly Client: new (
    config: ClientConfig,
  ) => Client;
  /** The one in use, as far as it is known. */
  inUse(): Server;
};

/** In milliseconds, from one look for a server that takes writes to the next. */
const LOOK_EVERY = 300;

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
    looking ??= askServers(postgres)
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

  class Follower extends ReportingClient {
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
