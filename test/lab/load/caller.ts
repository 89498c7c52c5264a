import { randomUUID } from 'node:crypto';
import { Agent, type ClientRequest, request } from 'node:http';
import type { Asked, Entry, Fields, Ledger, Operation } from '../ledger/ledger.ts';
import { USERS } from './wire.ts';

const METHODS = {
  create: 'POST',
  batch: 'POST',
  update: 'PATCH',
  delete: 'DELETE',
  read: 'GET',
} as const satisfies Record<Operation, string>;

/** Where a caller sends to, with which token, and the ledger of its requests. */
export type CallerOptions = {
  readonly url: string;
  readonly token: () => Promise<string>;
  readonly ledger: Pick<Ledger, 'enter'>;
  /** How many connections it has; 1 by default. */
  readonly connections?: number;
};

/** Sends requests over connections of its own, and enters each in the ledger. */
export type Caller = ReturnType<typeof createCaller>;

/** No answer takes longer, or the request counts as lost; in milliseconds. */
const RESPONSE_LIMIT_MS = 30_000;

export function createCaller({ url, token, ledger, connections = 1 }: CallerOptions) {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });

  /** Sends the request; resolves with its entry in any case. `onSent` gets what leaves, to be cut off by the caller. */
  async function send(asked: Asked, onSent?: (outgoing: ClientRequest) => void): Promise<Entry> {
    const { operation, userId = '', fields, items, headers } = asked;
    const authorization = `Bearer ${await token()}`;
    const entry = ledger.enter({
      ...asked,
      requestId: randomUUID(),
      method: METHODS[operation],
      path: USERS + (items ? 'batch' : userId),
      sent: performance.now(),
      answered: Number.POSITIVE_INFINITY,
      status: 0,
      isLost: false,
      responseHeaders: {},
      body: '',
    });
    const body = items ? { items } : fields;
    const content = body && JSON.stringify(body);
    const all = {
      authorization,
      'x-request-id': entry.requestId,
      ...(content && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(content) }),
      ...headers,
    };
    await new Promise<void>((resolve) => {
      const target = url + entry.path;
      const outgoing = request(target, { agent, method: entry.method, headers: all }, async (response) => {
        const chunks = await response.toArray().catch(() => undefined);
        if (chunks) {
          entry.answered = performance.now();
          entry.status = response.statusCode ?? 0;
          entry.responseHeaders = response.headers as Entry['responseHeaders'];
          entry.body = Buffer.concat(chunks).toString();
        }
        resolve();
      });
      outgoing.setTimeout(RESPONSE_LIMIT_MS, () => outgoing.destroy(new Error('no answer')));
      outgoing.on('error', ({ code }: NodeJS.ErrnoException) => {
        entry.isUnsent = code === 'ECONNREFUSED';
        resolve();
      });
      onSent?.(outgoing);
      outgoing.end(content);
    });
    entry.isLost = entry.status === 0;
    return entry;
  }

  return {
    send,
    create: (fields: Fields, headers: Asked['headers'] = {}) =>
      send({ operation: 'create', fields, headers }),
    createAll: (items: readonly Fields[], headers: Asked['headers'] = {}) =>
      send({ operation: 'batch', items, headers }),
    update: (userId: string, fields: Fields, headers: Asked['headers'] = {}) =>
      send({ operation: 'update', userId, fields, headers }),
    remove: (userId: string, headers: Asked['headers'] = {}) =>
      send({ operation: 'delete', userId, headers }),
    read: (userId: string, headers: Asked['headers'] = {}) => send({ operation: 'read', userId, headers }),
    close: () => agent.destroy(),
  };
}
