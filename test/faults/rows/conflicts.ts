import { type Entry, Ledger, userIn } from '../../lab/ledger/ledger.ts';
import { createCaller } from '../../lab/load/caller.ts';
import type { Stage } from '../../lab/stage/stage.ts';
import type { Row } from '../run-row.ts';

/** So many users at each of two instances give up their addresses, and as many take those of the other's. */
const PAIRS = 25;

/** Between what a statement gives and what it takes others come in. */
const SLOWLY = [
  `CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS
     'BEGIN PERFORM pg_sleep(0.001); RETURN NEW; END'`,
  `CREATE TRIGGER slowly BEFORE UPDATE ON users
     FOR EACH ROW WHEN (OLD.full_name = 'taker') EXECUTE FUNCTION slowly()`,
];

export const deadlocks: Row = {
  name: 'deadlocks',
  promise:
    'Each of two instances takes the addresses that the other gives up, 50 pairs at once: 200 or 409, no 5xx.',
  trials: 1000,
  brief: 40,
  // How long PostgreSQL waits before it looks for a deadlock, in milliseconds.
  postgres: { settings: { deadlock_timeout: 5 } },
  async run({ startService, trials, claim, tried, postgres, token }: Stage) {
    // An instance writes in the order of the ids, so that it takes two, and something else than rows, for a deadlock.
    const books = new Ledger();
    const instances = await Promise.all([startService(), startService()]);
    const sides = instances.map(({ url, ledger }, side) => {
      const enter = (entry: Entry) => ledger.enter(books.enter(entry));
      const callers = createCaller({ url, token, ledger: { enter }, connections: 2 * PAIRS });
      return { side, callers, giver: [] as string[], taker: [] as string[] };
    });
    const given = (side: number, pair: number, round: number) => `${side}-${pair}-${round}@example.com`;
    // Those who give come first in the order of the ids, so that statements hold much before they wait.
    for (const full_name of ['giver', 'taker'] as const) {
      for (let pair = 0; pair < PAIRS; pair += 1) {
        for (const { side, callers, [full_name]: ids } of sides) {
          const email = full_name === 'giver' ? given(side, pair, 0) : `${side}-${pair}@example.com`;
          ids.push(userIn(await callers.create({ email, full_name })).id);
        }
      }
    }
    await postgres.query(SLOWLY);
    for (let trial = 1; trial <= trials; trial += 1) {
      const asked = Array.from({ length: PAIRS }, (_, pair) => [
        ...sides.map(({ side, callers, giver }) =>
          callers.update(String(giver[pair]), { email: given(side, pair, trial) }),
        ),
        ...sides.map(({ side, callers, taker }) =>
          callers.update(String(taker[pair]), { email: given(1 - side, pair, trial - 1) }),
        ),
      ]);
      const odd = (await Promise.all(asked.flat())).filter(({ status }) => status !== 200 && status !== 409);
      claim('each is 200 or 409', odd.length === 0, odd[0]?.status);
      tried();
    }
    for (const { callers } of sides) callers.close();
    const [row] = await postgres.query(
      'SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()',
    );

    claim('there were deadlocks, one in ten rounds at least', Number(row?.deadlocks) >= trials / 10, row);
    await instances[0]?.checkBooks(books);
  },
};
