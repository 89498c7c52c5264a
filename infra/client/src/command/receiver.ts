import { createHmac } from 'node:crypto';
import { request as requestByHttp } from 'node:http';
import { request as requestByHttps } from 'node:https';
import { VERSION } from '../checks.ts';
import { isAddress } from '../problem.ts';
import type { OptionsOf } from './arguments.ts';
import type { Variables } from './connection.ts';
import { EXIT, Failure } from './failure.ts';

/** A receiver, and the keys of the signatures. */
export type Receiver = { readonly url: URL; readonly keys: readonly Buffer[] };

/** The status of a response, and its `Retry-After`. */
export type Reply = { readonly status: number; readonly retryAfter: string; readonly reason?: string };

const TIME_LIMIT_MS = 15_000;
/** How long the content of a response is read, so that its connection can be used again. The content itself is not used. */
const CONTENT_TIME_LIMIT_MS = 1_000;
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/**
 * The receiver that `--to` or the environment names.
 *
 * @throws {Failure} that names every missing or wrong setting. It has no part of the URL but its origin.
 */
export function readReceiver({ to, allowHttp }: OptionsOf<'relay'>, variables: Variables): Receiver {
  const faults: string[] = [];
  const text = (to ?? variables.USERS_RELAY_URL ?? '').trim();
  const url = isAddress(text) ? new URL(text) : undefined;
  if (text === '') faults.push('set --to or USERS_RELAY_URL to the URL of the receiver');
  else if (!url) faults.push('--to or USERS_RELAY_URL must be an http(s) URL without credentials');
  else if (url.protocol === 'http:' && !allowHttp && !LOOPBACK.test(url.hostname))
    faults.push(`--to or USERS_RELAY_URL must be https: ${url.origin} is not this machine, see --allow-http`);
  const keys = (variables.USERS_RELAY_SECRET ?? '').trim().split(/\s+/).map(parseKey);
  const known = keys.filter((key) => key !== undefined);
  if (keys.length > 2 || known.length < keys.length)
    faults.push(
      'USERS_RELAY_SECRET must be whsec_ and the base64 of 24 to 64 bytes, or two of these with a blank between them',
    );
  if (!url || faults.length > 0) throw new Failure(faults.join('\n'), EXIT.wrongUse);
  return { url, keys: known };
}

function parseKey(secret: string): Buffer | undefined {
  const [, text = ''] = /^whsec_(.+)$/.exec(secret) ?? [];
  const key = Buffer.from(text, 'base64');
  return key.toString('base64') === text && key.length >= 24 && key.length <= 64 ? key : undefined;
}

/**
 * Sends a message once, signed now (Standard Webhooks). Redirects are not followed, and certificates are verified
 * whatever NODE_TLS_REJECT_UNAUTHORIZED says.
 */
export function send({ url, keys }: Receiver, id: string, body: string, signal: AbortSignal): Promise<Reply> {
  const timestamp = Math.floor(Date.now() / 1000);
  const content = `${id}.${timestamp}.${body}`;
  const sign = (key: Buffer) => `v1,${createHmac('sha256', key).update(content).digest('base64')}`;
  const headers = {
    'user-agent': `user-management-service-relay/${VERSION}`,
    'content-type': 'application/cloudevents+json',
    'content-length': Buffer.byteLength(body),
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': keys.map(sign).join(' '),
  };
  const begin = url.protocol === 'https:' ? requestByHttps : requestByHttp;
  return new Promise((resolve, reject) => {
    const request = begin(url, { method: 'POST', headers, rejectUnauthorized: true, signal });
    const expire = () => request.destroy(new Error(`no response within ${TIME_LIMIT_MS / 1000} s`));
    let limit = setTimeout(expire, TIME_LIMIT_MS);
    let reply: Reply | undefined;
    let reason = new Error('the connection was closed without a response');
    request.on('response', (response) => {
      reply = { status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'] ?? '' };
      clearTimeout(limit);
      limit = setTimeout(() => response.destroy(), CONTENT_TIME_LIMIT_MS);
      response.on('error', () => {}).resume();
    });
    request.on('error', (error) => {
      reason = error;
    });
    request.on('close', () => {
      clearTimeout(limit);
      if (reply) resolve(reply);
      else reject(reason);
    });
    request.end(body);
  });
}
