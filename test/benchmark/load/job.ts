import type { Used, Watched } from '../../lab/meters/window.ts';

/** What the load process is asked to do: this workload, against this port. */
export type Job = {
  readonly workload: string;
  readonly port: number;
  readonly connections: number;
  /** Seconds before anything is counted, and seconds that are. */
  readonly warmUp: number;
  readonly seconds: number;
  /** Requests a second, whether answered or not; without it each connection asks as soon as it is answered. */
  readonly rate?: number;
  readonly users: number;
  readonly token: string;
  readonly tokensFile: string;
  readonly begin: number;
  readonly prepared: string;
  readonly watched: Watched & { readonly server: number };
};

/** What came of it. */
export type Outcome = {
  /** Requests that were sent in all, the warm-up included. */
  readonly sent: number;
  /** Requests answered within the window. */
  readonly answered: number;
  /** In milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly used: Used;
  /** The most memory that the server held, in megabytes. */
  readonly memory: number;
  /** Answers with another status than the workload has, and other faults: each kind and how often. */
  readonly faults: Readonly<Record<string, number>>;
};
