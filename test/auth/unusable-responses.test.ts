import type { IncomingMessage, ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, test } from 'vitest';
import { startVerifier } from '../stage/keys.ts';
import { startIssuer } from '../stage/tokens.ts';
import { until } from '../stage/until.ts';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

const LIMIT = 256 * 1024;

const attacker = await startIssuer();
afterAll(attacker.stop);
const key = await attacker.rotate();
const keysOfAttacker = JSON.stringify({ keys: [key.publicJwk] });

/** A response 200 with this text. */
const saying =
  (text: string): Answer =>
  (_request, response) =>
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(text);

const withStatus =
  (status: number, headers: Record<string, string> = {}): Answer =>
  (_request, response) =>
    response.writeHead(status, headers).end(status === 204 ? '' : keysOfAttacker);

const weakKey = { keys: [{ kty: 'oct', k: 'c2VjcmV0', kid: 'weak', alg: 'HS256' }] };

// Concurrently, because some of them wait for the limit of three seconds.
describe.concurrent('a response that is not a usable key set never replaces the last good key set', () => {
  test.for<readonly [string, Answer]>([
    ['an error', withStatus(500)],
    ['no content', withStatus(204)],
    ['another 2xx', withStatus(203)],
    ['a web page', saying('<!doctype html><title>Sign in</title>')],
    ['a list', saying(`[${JSON.stringify(key.publicJwk)}]`)],
    ['keys that are not a list', saying('{"keys":{"0":{}}}')],
    ['no keys', saying('{"keys":[]}')],
    ['keys of null', saying('{"keys":[null]}')],
    ['only weak keys', saying(JSON.stringify(weakKey))],
    ['more than 256 KiB', saying(keysOfAttacker + ' '.repeat(LIMIT))],
    [
      'more than 256 KiB, compressed to less',
      (_request, response) => {
        const bytes = gzipSync(keysOfAttacker + ' '.repeat(64 * LIMIT));
        response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(bytes);
      },
    ],
    [
      'an endless one',
      (_request, response) => {
        response.writeHead(200);
        response.write(keysOfAttacker);
        const spill = setInterval(() => response.write(' '.repeat(LIMIT)), 5);
        response.on('close', () => clearInterval(spill));
      },
    ],
    ['a connection that hangs', () => {}],
    [
      'one that comes slowly',
      (_request, response) => {
        response.writeHead(200);
        const drip = setInterval(() => response.write(' '), 500);
        response.on('close', () => clearInterval(drip));
        setTimeout(() => response.end(keysOfAttacker), 5000).unref();
      },
    ],
    ['a redirect to another place', withStatus(302, { Location: attacker.jwksUri })],
  ])('%s', async ([, answer], context) => {
    const { issuer, keySet, judge } = await startVerifier(context, { refreshEvery: 100 });
    keySet.start();
    const accepted = await issuer.sign();
    expect(await judge(accepted)).toBe(200);
    issuer.answer(answer);
    await until('a fetch has failed', () => keySet.refreshes.failed > 0);

    const stolen = await attacker.sign({ iss: issuer.issuer }, {}, { key });
    expect(await judge(accepted)).toBe(200);
    expect(await judge(await issuer.sign({ jti: 'another' }))).toBe(200);
    expect([401, 503]).toContain(await judge(stolen));
    expect(attacker.fetches).toBe(0);
  });
});

test('a response of exactly 256 KiB is accepted', async (context) => {
  const { issuer, judge } = await startVerifier(context);
  issuer.answer((_request, response) => {
    const text = JSON.stringify({ keys: issuer.keys.map(({ publicJwk }) => publicJwk) });
    response.end(text + ' '.repeat(LIMIT - text.length));
  });

  expect(await judge(await issuer.sign())).toBe(200);
});
