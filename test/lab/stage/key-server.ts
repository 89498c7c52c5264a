import { once } from 'node:events';
import { startIssuer } from '../../stage/tokens.ts';

/** How a key server can be unwell: what becomes of a request for the keys. */
export const MOODS = ['slow', 'huge', 'failing', 'garbage', 'empty', 'redirecting', 'cutting'] as const;

export type Mood = 'well' | (typeof MOODS)[number];

/** What a huge answer sends, at most. */
const CHUNK = Buffer.alloc(1024 * 1024, ' ');
const CHUNKS = 300;

/** Starts an identity provider with moods. */
export async function startKeyServer() {
  const issuer = await startIssuer();
  const answers: Record<Exclude<Mood, 'well'>, Parameters<typeof issuer.answer>[0]> = {
    failing: (_request, response) => void response.writeHead(500).end('no'),
    slow: () => {},
    garbage: (_request, response) => void response.writeHead(200).end('{"keys":[{"kty":"RSA","n":17}, 4'),
    empty: (_request, response) => void response.writeHead(200).end('{"keys":[]}'),
    redirecting: (request, response) =>
      void response.writeHead(302, { location: `${issuer.issuer}${request.url}/again` }).end(),
    cutting: (request) => void request.socket.resetAndDestroy(),
    async huge(_request, response) {
      response.on('error', () => {}).writeHead(200, { 'content-type': 'application/json' });
      for (let chunk = 0; chunk < CHUNKS && !response.destroyed; chunk += 1) {
        if (!response.write(CHUNK)) await Promise.race([once(response, 'drain'), once(response, 'close')]);
      }
      response.end();
    },
  };

  return {
    ...issuer,
    get fetches() {
      return issuer.fetches;
    },
    get keys() {
      return issuer.keys;
    },
    /** Is like this from now on. */
    feel(mood: Mood): void {
      if (mood === 'well') issuer.answerNormally();
      else issuer.answer(answers[mood]);
    },
  };
}
