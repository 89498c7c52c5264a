import type { RawAnswer } from '../../stage/raw-request.ts';

/** A request, before it is written for the wire. */
export type Request = {
  readonly method: 'GET' | 'POST' | 'PATCH';
  readonly target: string;
  readonly token?: string;
  readonly body?: string;
};

/** What requests are made of. */
export type Material = {
  /** The number of any user, of those that were there from the beginning. */
  readonly anyUser: () => number;
  /** The token that is the same at every request. */
  readonly token: string;
  readonly freshTokens: readonly string[];
  /** How many requests of this workload the target has had; so nothing that has to be new comes twice. */
  readonly begin: number;
  /** What `prepare` gave. */
  readonly prepared: string;
};

/** Sends one request with the token, and reads its answer. */
export type Ask = (target: string) => Promise<RawAnswer>;

/** One kind of load: an endless row of requests, each answered with the same status. */
export type Workload = {
  readonly name: string;
  readonly title: string;
  readonly status: 200 | 201;
  /** Whether rows are written, so that there is something to vacuum. */
  readonly writes?: boolean;
  /** Members of the answer that are new each time, and so not compared. */
  readonly varying?: readonly string[];
  /** The part of the throughput of the workload `of` that it asks for; without it as many requests as are answered. */
  readonly pace?: { readonly of: string; readonly part: number };
  /** How many connections it has, whatever the others have. */
  readonly connections?: number;
  /** Asks a target for what the requests need; undefined when the target has nothing like it. */
  readonly prepare?: (ask: Ask, users: number) => Promise<string | undefined>;
  /** Makes the next request, from then on. */
  readonly requests: (material: Material) => () => Request;
};

/** The path of all users. */
export const USERS = '/api/v1/users/';

/** The target of the link to the next page; undefined without one. */
export function nextPage({ status, headers }: RawAnswer): string | undefined {
  return status === 200 ? /<([^>]*)>;\s*rel="?next"?/.exec(headers.link ?? '')?.[1] : undefined;
}
