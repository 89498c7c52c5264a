import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/** What callers have seen, added up. */
export type Tally = {
  sent: number;
  ok: number;
  /** Requests without an answer, or with another one than they should have had. */
  lost: number;
  readonly refusedByStatus: Record<string, number>;
  readonly faults: string[];
  longestAnswer: number;
  /** The users that were acknowledged: by id the name that was acknowledged last. */
  readonly users: Map<string, string>;
};

type Options = { readonly url: string; readonly count: number; readonly sign: () => Promise<string> };

const USERS = '/api/v1/users/';

/** Milliseconds between two rounds: the callers are to write all the while, not to wear the machine out. */
const PAUSE = 150;

/**
 * Starts callers that write all the while, each on one connection that it keeps alive: a create, an update and a
 * read, over and over. `stop()` lets each finish what it has begun.
 */
export function startCallers({ url, count, sign }: Options) {
  const tally: Tally = {
    sent: 0,
    ok: 0,
    lost: 0,
    refusedByStatus: {},
    faults: [],
    longestAnswer: 0,
    users: new Map(),
  };
  let isStopped = false;
  const callers = Array.from({ length: count }, (_, n) => call(n));

  async function call(n: number): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const token = await sign();
    for (let round = 0; !isStopped; round += 1) {
      await sleep(PAUSE * Math.random() * 2);
      const name = `Caller ${n}, round ${round}`;
      const email = `${n}-${round}@example.com`;
      const created = await ask('POST', USERS, 201, { email, full_name: 'new' });
      if (!created) continue;
      const { id } = JSON.parse(created);
      tally.users.set(id, 'new');
      if (await ask('PATCH', USERS + id, 200, { full_name: name })) tally.users.set(id, name);
      await ask('GET', USERS + id, 200);
    }
    agent.destroy();

    /** The body of an answer with the status that is expected; undefined for a request that is lost. */
    async function ask(method: string, path: string, expected: number, body?: object) {
      const begun = performance.now();
      tally.sent += 1;
      try {
        const { status, text } = await exchange(agent, method, path, body, token);
        tally.longestAnswer = Math.max(tally.longestAnswer, performance.now() - begun);
        if (status === expected) {
          tally.ok += 1;
          return text;
        }
        tally.refusedByStatus[status] = (tally.refusedByStatus[status] ?? 0) + 1;
        tally.faults.push(`${method} ${status} ${text.slice(0, 200)}`);
      } catch (error) {
        tally.faults.push(`${method} ${error}`);
      }
      tally.lost += 1;
      return undefined;
    }
  }

  function exchange(agent: Agent, method: string, path: string, body: object | undefined, token: string) {
    const content = body && JSON.stringify(body);
    return new Promise<{ status: number; text: string }>((resolve, reject) => {
      const headers = {
        authorization: `Bearer ${token}`,
        ...(content && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(content) }),
      };
      const outgoing = request(url + path, { agent, method, headers }, async (response) => {
        try {
          const text = Buffer.concat(await response.toArray()).toString();
          resolve({ status: response.statusCode ?? 0, text });
        } catch (error) {
          reject(error);
        }
      });
      outgoing.on('error', reject);
      outgoing.end(content);
    });
  }

  return {
    tally,
    async stop(): Promise<Tally> {
      isStopped = true;
      await Promise.all(callers);
      return tally;
    },
  };
}
