import type { Row } from '../run-row.ts';
import { sideBySide } from '../side-by-side.ts';
import type { Stage } from '../stage.ts';

const WRITERS = 32;

/** So many updates are made on each number of rows, and of them so many may be refused: none, 0.1 %, 2 %. */
const SHARES = { 1000: 0, 10: 0.001, 1: 0.02 } as const;

export const serializationFailures: Row = {
  name: 'serialization-failures',
  promise: '32 writers in serializable transactions: none refused on 1,000 rows, 0.1 % on 10, 2 % on one.',
  trials: 20_000,
  brief: 1000,
  postgres: { settings: { default_transaction_isolation: 'serializable' } },
  async run({ startService, trials, claim, tried, random }: Stage) {
    const service = await startService();
    const callers = service.caller(WRITERS);
    for (const [size, share] of Object.entries(SHARES)) {
      const users: string[] = [];
      for (let n = 0; n < Number(size); n += 1) {
        users.push(JSON.parse((await callers.create({ email: `of-${size}-${n}@example.com` })).body).id);
      }
      let refused = 0;
      await sideBySide(WRITERS, trials, async (n) => {
        const { status } = await callers.update(random.pick(users), { full_name: `${n}` });
        if (status !== 200) refused += 1;
        tried();
      });
      claim(
        `of ${trials} on ${size} rows at most ${share * 100} % are refused`,
        refused <= trials * share,
        refused,
      );
    }
    await service.checkBooks();
  },
};

export const deadlocks: Row = {
  name: 'deadlocks',
  promise: 'Pairs of users swap their addresses, 50 pairs at once: 200 or 409 each, and no 5xx.',
  // Updates that come together are one statement, so that few of them meet another: it takes hundreds of rounds.
  trials: 1000,
  // How long PostgreSQL waits before it looks for a deadlock, in milliseconds.
  postgres: { settings: { deadlock_timeout: 5 } },
  async run({ startService, trials, claim, tried, postgres }: Stage) {
    const service = await startService();
    const pairs = 50;
    const callers = service.caller(2 * pairs);
    const addresses = Array.from({ length: pairs }, (_, n) => [
      `one-${n}@example.com`,
      `other-${n}@example.com`,
    ]);
    const users = await Promise.all(
      addresses.map((pair) =>
        Promise.all(pair.map(async (email) => String(JSON.parse((await callers.create({ email })).body).id))),
      ),
    );
    for (let trial = 0; trial < trials; trial += 1) {
      const statuses = await Promise.all(
        users.flatMap(([one = '', other = ''], n) => {
          const [first = '', second = ''] =
            trial % 2 === 0 ? (addresses[n] ?? []) : (addresses[n] ?? []).toReversed();
          return [callers.update(one, { email: second }), callers.update(other, { email: first })];
        }),
      );
      const odd = statuses.filter(({ status }) => status !== 200 && status !== 409);
      claim('each is 200 or 409', odd.length === 0, odd[0]?.status);
      tried();
    }
    const [row] = await postgres.query(
      'SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()',
    );
    claim('there were deadlocks', Number(row?.deadlocks) > 0, row);
    await service.checkBooks();
  },
};
