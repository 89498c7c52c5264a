import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../../host/development/free-port.ts';
import { createFeedBooks, startReader } from '../../lab/ledger/feed.ts';
import { isInDoubt, isKeyInUse } from '../../lab/ledger/ledger.ts';
import { type Caller, createCaller } from '../../lab/load/caller.ts';
import type { Random } from '../../lab/load/random.ts';
import { until } from '../../stage/until.ts';
import type { Row } from '../run-row.ts';

const WRITERS = 64;
const USERS_PER_BATCH = 100;

/** After each batch so many of its users are changed, and so many deleted. */
const UPDATES = 100;
const DELETIONS = 20;

/** Half of the transactions stay open after their changes have been written, batches for longer: once, however many. */
const HOLD = [
  `CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
     IF current_setting('feed.held', true) IS DISTINCT FROM pg_current_xact_id()::text THEN
       PERFORM set_config('feed.held', pg_current_xact_id()::text, true);
       IF random() < 0.5 THEN
         PERFORM pg_sleep(random() * (CASE NEW.type WHEN 1 THEN 0.1 ELSE 0.02 END));
       END IF;
     END IF;
     RETURN NULL;
   END $$`,
  `CREATE CONSTRAINT TRIGGER hold AFTER INSERT ON user_changes_unnumbered
   DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hold()`,
];

export const changeFeed: Row = {
  name: 'change-feed',
  searchesModel: true,
  promise:
    'Changes by writers that hold transactions open, over crashes: none skipped, none twice, none out of order.',
  trials: 1_000_000,
  brief: 20_000,
  minutes: 25,
  async run({ startService, openLedger, postgres, trials, random, claim, token, figures, checkFeed }) {
    const ledger = openLedger();
    const variables = { SVC_PORT: String(await freePort()), SVC_POSTGRES_POOL_SIZE: '24' };
    const first = await startService(variables, { ledger, isOnItsOwn: true });
    const other = await startService({ SVC_POSTGRES_POOL_SIZE: '24' }, { ledger });
    await postgres.query(HOLD);
    const books = createFeedBooks();
    const readers = [first, other, other].map((service) => startReader(service, random.branch(), 0.05));
    let isOver = false;
    const writing = Array.from({ length: WRITERS }, (_, n) => {
      const url = n % 2 === 0 ? first.url : other.url;
      const caller = createCaller({ url, token, ledger: { enter: (entry) => entry } });
      return write(caller, random.branch(), n).finally(caller.close);
    });

    const reached = (share: number) =>
      until('the changes are written', () => books.owed() >= trials * share, { seconds: 1500, every: 200 });
    await reached(0.35);
    await postgres.kill();
    await postgres.start();
    await reached(0.65);
    first.signal('SIGKILL');
    await first.exited;
    await startService(variables, { ledger });
    await reached(1);
    isOver = true;
    await Promise.all(writing);

    const found = await Promise.all(readers.map((reader) => reader.finish()));
    for (const { counts, faults } of found) {
      const wrong = [...faults, ...books.faults(counts)];
      figures.lost += wrong.length;
      claim('none is skipped, none twice, none out of order', wrong.length === 0, wrong.slice(0, 5));
    }
    // All readers have read the same, or a claim fails.
    const reads = found.flatMap((reader) => reader.reads);
    await checkFeed({ changes: found[0]?.changes ?? [], writes: books.writes, reads });
    const digests = new Set(found.map(({ digest }) => digest));
    claim('all readers have read the same', digests.size === 1, [...digests]);
    figures.trials = Math.min(...found.map(({ read }) => read));

    async function write(caller: Caller, chance: Random, writer: number): Promise<void> {
      for (let round = 0; !isOver; round += 1) {
        const key = `feed-${writer}-${round}`;
        const items = Array.from({ length: USERS_PER_BATCH }, (_, n) => ({
          email: `${key}-${n}@example.com`,
        }));
        const ids = await createAll(caller, key, items);
        for (let update = 0; update < UPDATES && !isOver; update += 1) {
          const name = { full_name: `${round}-${update}` };
          books.enter(await rested(caller.update(chance.pick(ids), name)), 1);
        }
        for (const id of ids.slice(0, DELETIONS)) books.enter(await rested(caller.remove(id)), 1);
      }
    }

    /** A batch is sent again under its key until it is answered. */
    async function createAll(caller: Caller, key: string, items: readonly { email: string }[]) {
      for (;;) {
        const entry = await rested(caller.createAll(items, { 'idempotency-key': key }));
        books.enter(entry, items.length, key);
        if (isInDoubt(entry) || isKeyInUse(entry)) continue;
        if (entry.status !== 201) throw new Error(`a batch is ${entry.status}: ${entry.body}`);
        return (JSON.parse(entry.body) as { id: string }[]).map(({ id }) => id);
      }
    }
  },
};

async function rested(asking: ReturnType<Caller['update']>) {
  const entry = await asking;
  if (isInDoubt(entry)) await sleep(20);
  return entry;
}
