import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { createCaller } from '../../lab/load/caller.ts';
import { makeUpTokens } from '../../stage/forge.ts';
import { until } from '../../stage/until.ts';
import type { PassingFaults, Surroundings } from './passing-fault.ts';

/** In milliseconds: longer than the time between two fetches of a service that fetches every five seconds. */
const DURATION_MS = 8000;

/** What a huge response sends, at most. */
const CHUNK = Buffer.alloc(1024 * 1024, ' ');
const CHUNKS = 300;

/** How a key server can be unwell: what becomes of a request for the keys. */
const MOODS: Readonly<Record<string, Parameters<Surroundings['issuer']['answer']>[0]>> = {
  failing: (_request, response) => void response.writeHead(500).end('no'),
  slow: () => {},
  garbage: (_request, response) => void response.writeHead(200).end('{"keys":[{"kty":"RSA","n":17}, 4'),
  empty: (_request, response) => void response.writeHead(200).end('{"keys":[]}'),
  redirecting: ({ url }, response) => void response.writeHead(302, { location: `${url}/again` }).end(),
  cutting: (request) => void request.socket.resetAndDestroy(),
  async huge(_request, response) {
    response.on('error', () => {}).writeHead(200, { 'content-type': 'application/json' });
    for (let chunk = 0; chunk < CHUNKS && !response.destroyed; chunk += 1) {
      if (!response.write(CHUNK)) await Promise.race([once(response, 'drain'), once(response, 'close')]);
    }
    response.end();
  },
};

/** The identity provider and its keys, and forged tokens. */
export const identityProviderFaults: PassingFaults = {
  async 'key-server-unwell'({ issuer, random }) {
    issuer.answer(random.pick(Object.values(MOODS)));
    await sleep(DURATION_MS);
    issuer.answerNormally();
  },
  async 'keys-rotated'({ issuer, service }) {
    await issuer.rotate();
    const caller = service.caller();
    const isAccepted = async () => (await caller.read('?limit=1')).status === 200;
    await until('the new key is accepted', isAccepted, { seconds: 5 });
    caller.close();
  },
  async 'tokens-forged'({ service, token, claim }) {
    const tokens = makeUpTokens(await token(), 200).values();
    const forged = createCaller({
      ...service,
      token: async () => String(tokens.next().value),
      connections: 8,
    });
    const responses = await Promise.all(Array.from({ length: 200 }, () => forged.read('?limit=1')));
    const accepted = responses.filter(({ status }) => status >= 200 && status < 300);
    claim('no forged token is accepted', accepted.length === 0, accepted[0]);
    forged.close();
  },
};
