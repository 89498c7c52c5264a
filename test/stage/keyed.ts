import { randomUUID } from 'node:crypto';
import type { ServiceResponse } from './responses.ts';

type Call = (method: string, path: string, body?: unknown, init?: RequestInit) => Promise<ServiceResponse>;

export const freshKey = (): string => randomUUID();

/** The header of a response to a repeated request. */
export const REPLAYED = { 'idempotency-replayed': 'true' };

export const postingUnderKeys =
  (call: Call) =>
  (
    path: string,
    key: string,
    body: unknown,
    headers: Record<string, string> = {},
  ): Promise<ServiceResponse> =>
    call('POST', path, body, { headers: { 'idempotency-key': key, ...headers } });
