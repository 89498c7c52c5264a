import { setTimeout as sleep } from 'node:timers/promises';
import { Ledger } from '../../lab/ledger/ledger.ts';
import { type Known, startCallers } from '../../lab/load/callers.ts';
import type { Random } from '../../lab/load/random.ts';
import type { Stage } from '../../lab/stage/stage.ts';
import { errorResponse, messagesThrough } from '../../stage/postgres-messages.ts';
import { addressOf, lateAtFirst, type TcpProxy } from '../../stage/proxy.ts';
import { startStandby } from '../../stage/standby.ts';
import type { Row } from '../run-row.ts';

const CALLERS = 12;

const AUTHENTICATION = 'R';

/** The standby is so far behind that what is read from it is old. */
const STANDBY_LAG = '300ms';

type Fault = (stage: Pick<Stage, 'postgres'>, paths: readonly TcpProxy[], random: Random) => Promise<unknown>;

/** Faults during which the primary accepts writes all the time. */
const FAULTS: readonly Fault[] = [
  ({ postgres }) => postgres.terminate('random() < 0.5'),
  ({ postgres }, _paths, random) =>
    postgres.query(['BEGIN', 'LOCK TABLE users', `SELECT pg_sleep(${random.next()})`, 'COMMIT']),
  ({ postgres }) =>
    postgres.query([
      "SET lock_timeout = '500ms'",
      'ALTER TABLE users ADD COLUMN added int',
      'ALTER TABLE users DROP COLUMN added',
    ]),
  async ({ postgres }, [path], random) => {
    path?.answersThrough(lateAtFirst(200 + random.below(400)));
    await postgres.terminate('random() < 0.3');
    await sleep(1500);
    await path?.pass();
  },
  async ({ postgres }, paths) => {
    for (const path of paths) {
      path.answersThrough(() =>
        messagesThrough((type, message) => (type === AUTHENTICATION ? errorResponse('53300') : message)),
      );
    }
    await postgres.terminate('random() < 0.3');
    await sleep(1000);
    for (const path of paths) await path.pass();
  },
  async (_stage, paths, random) => random.pick(paths).cutAll(),
];

export const twoInstances: Row = {
  name: 'two-instances',
  searchesModel: true,
  promise:
    'Two instances over a primary and a standby that is behind, with locks, changes of tables, sessions that are killed, ' +
    'slow or refused: one order fits all responses, changes and the table.',
  trials: 60,
  brief: 6,
  async run(stage) {
    const { startProxy, startService, postgres, tries, random, defer, claim } = stage;
    const standby = await startStandby(postgres, { recovery_min_apply_delay: STANDBY_LAG });
    defer(() => standby.stop());
    const paths = await Promise.all([postgres, postgres, standby].map(startProxy));
    const [one, another, toStandby] = paths as [TcpProxy, TcpProxy, TcpProxy];
    const services = [
      await startService(addressOf(one, toStandby)),
      await startService(addressOf(toStandby, another)),
    ];
    const known: Known[] = [];
    const models = services.map((service) => startCallers(service, CALLERS, random.branch(), { known }));
    for (const trial of tries()) {
      await sleep(200 + random.below(500));
      // A change of a table may have to give up: others hold locks.
      await FAULTS[trial % FAULTS.length]?.(stage, [one, another], random).catch(() => {});
    }
    await sleep(1000);
    await Promise.all(models.map((model) => model.stop()));
    // One history of both: what one instance has acknowledged, the other must read.
    const books = new Ledger();
    for (const { ledger } of services) for (const entry of ledger.entries) books.enter(entry);
    claim('the faults cost some requests a 503', books.refusedAfter(0) > 0);
    await services[0]?.checkBooks(books);
  },
};
