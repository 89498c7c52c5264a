import { type Connection, openConnection } from './connection.ts';

/** Connections that are opened at the same moment. */
const OPENED_AT_ONCE = 50;

/** Milliseconds between two looks at what is due, and at what has waited too long. */
const TICK_MS = 1;

/** A load on one port of 127.0.0.1. */
export type Load = {
  readonly port: number;
  readonly connections: number;
  /**
   * Requests a second, at regular moments (an open load). Without it, each connection sends the next request when it has
   * the response (a closed load).
   */
  readonly rate?: number | undefined;
  /** Milliseconds between a response and the next request of a closed load. */
  readonly restMs?: number | undefined;
  /**
   * Milliseconds after which callers give up: they close the connection and open another one, as they do with one that
   * breaks. A request that is due while no connection is free is not sent, unless callers queue.
   *
   * Without a patience, callers wait: such a request is sent when a connection is free, and the time is counted from when
   * it was due, so that a server that stalls does not hide it. A connection that breaks ends the load.
   */
  readonly patienceMs?: number | undefined;
  /**
   * Whether callers that give up queue requests while no connection is free, as the pools of HTTP clients do. The time is
   * counted from when a request was due, and its caller gives up then, too.
   */
  readonly queues?: boolean | undefined;
  /** Makes the next request. */
  nextRequest(): string;
  /** Receives each response, and the moments from which and to which its time is counted. */
  onResponse(status: number, from: number, to: number): void;
  /** Receives the reason for which a connection has broken, if callers wait. */
  onBreak?(reason: string): void;
};

/** A connection with its request, and the moment from which the time of that is counted; 0 while the connection is free. */
type Caller = { connection: Connection; since: number };

/** Sends the requests of a load until it is stopped. */
export class Generator {
  readonly counts = { due: 0, sent: 0, noConnection: 0, givenUp: 0, broken: 0 };
  readonly #load: Load;
  readonly #callers: Caller[] = [];
  /** With patience, the connection that was used last is used next, as by pools of HTTP clients. */
  readonly #free: Caller[] = [];
  /** When the queued requests were due. */
  readonly #queued: number[] = [];
  /** In the order in which their requests were sent. */
  readonly #waiting = new Set<Caller>();
  readonly #allAnswered = Promise.withResolvers<void>();
  #begun = 0;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(load: Load) {
    this.#load = load;
  }

  /** Opens the connections. A closed load begins with the first of them, an open load with the last. */
  async start(): Promise<void> {
    const { connections, rate, patienceMs } = this.#load;
    while (this.#callers.length < connections) {
      const opened = this.#callers.length;
      const count = Math.min(OPENED_AT_ONCE, connections - opened);
      this.#callers.push(...Array.from({ length: count }, () => ({ since: 0 }) as Caller));
      await Promise.all(this.#callers.slice(opened).map((caller) => this.#connect(caller)));
    }
    this.#begun = performance.now();
    if (rate !== undefined || patienceMs !== undefined)
      this.#timer = setInterval(() => this.#tick(), TICK_MS);
  }

  /** Sends no more, and waits for the responses that are still to come as long as the callers do. */
  async stop(): Promise<void> {
    this.#isOver = true;
    clearInterval(this.#timer);
    const { patienceMs } = this.#load;
    if (patienceMs !== undefined) setTimeout(this.#allAnswered.resolve, patienceMs + 100).unref();
    if (this.#waiting.size > 0) await this.#allAnswered.promise;
    this.counts.givenUp += this.#waiting.size;
    this.counts.noConnection += this.#queued.length;
    for (const { connection } of this.#callers) connection.close();
  }

  #connect(caller: Caller): Promise<void> {
    return new Promise((resolve) => {
      caller.connection = openConnection(this.#load.port, {
        open: () => {
          this.#release(caller);
          resolve();
        },
        response: (status) => this.#take(caller, status),
        end: (reason) => {
          this.#lose(caller, reason);
          resolve();
        },
      });
    });
  }

  #tick(): void {
    if (this.#load.patienceMs !== undefined) this.#giveUp(performance.now() - this.#load.patienceMs);
    if (this.#load.rate !== undefined) this.#sendDue(this.#load.rate);
  }

  #sendDue(rate: number): void {
    const isPatient = this.#load.patienceMs === undefined;
    for (;;) {
      const now = performance.now();
      const due = this.#begun + (this.counts.due * 1000) / rate;
      if (due > now || (isPatient && this.#free.length === 0)) return;
      this.counts.due += 1;
      const caller = isPatient ? this.#free.shift() : this.#free.pop();
      if (caller) this.#send(caller, isPatient ? due : now);
      else if (this.#load.queues) this.#queued.push(now);
      else this.counts.noConnection += 1;
    }
  }

  #send(caller: Caller, since: number): void {
    caller.since = since;
    this.counts.sent += 1;
    this.#waiting.add(caller);
    caller.connection.send(this.#load.nextRequest());
  }

  #take(caller: Caller, status: number): void {
    if (caller.since === 0) return;
    const { since } = caller;
    caller.since = 0;
    this.#waiting.delete(caller);
    this.#load.onResponse(status, since, performance.now());
    if (this.#load.restMs === undefined) this.#release(caller);
    else setTimeout(() => this.#release(caller), this.#load.restMs);
  }

  #release(caller: Caller): void {
    const { rate, patienceMs } = this.#load;
    if (this.#isOver) {
      if (this.#waiting.size === 0) this.#allAnswered.resolve();
    } else if (rate === undefined) {
      this.#send(caller, performance.now());
    } else {
      const queuedSince = this.#takeQueued();
      if (queuedSince !== undefined) {
        this.#send(caller, queuedSince);
        return;
      }
      this.#free.push(caller);
      if (patienceMs === undefined && this.#begun > 0) this.#sendDue(rate);
    }
  }

  /** When the first queued request was due whose caller still waits; undefined if there is none. */
  #takeQueued(): number | undefined {
    const givenUp = performance.now() - (this.#load.patienceMs ?? 0);
    for (;;) {
      const since = this.#queued.shift();
      if (since === undefined || since > givenUp) return since;
      this.counts.noConnection += 1;
    }
  }

  #giveUp(since: number): void {
    for (const caller of this.#waiting) {
      if (caller.since >= since) return;
      this.counts.givenUp += 1;
      caller.connection.close();
      this.#replace(caller);
    }
  }

  #lose(caller: Caller, reason: string): void {
    if (this.#load.patienceMs === undefined) {
      this.counts.broken += 1;
      this.#load.onBreak?.(reason);
      this.#isOver = true;
      this.#allAnswered.resolve();
    } else if (!this.#isOver) {
      if (caller.since > 0) this.counts.broken += 1;
      this.#replace(caller);
    }
  }

  #replace(caller: Caller): void {
    this.#waiting.delete(caller);
    const index = caller.since === 0 ? this.#free.indexOf(caller) : -1;
    if (index >= 0) this.#free.splice(index, 1);
    caller.since = 0;
    void this.#connect(caller);
  }
}
