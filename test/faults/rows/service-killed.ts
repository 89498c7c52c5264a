import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../../host/development/free-port.ts';
import { userIn } from '../../lab/ledger/ledger.ts';
import { findCreates, messagesThrough, READY_FOR_QUERY } from '../../stage/postgres-messages.ts';
import { addressOf } from '../../stage/proxy.ts';
import type { Row } from '../run-row.ts';

export const killedBeforeAnswer: Row = {
  name: 'killed-before-answer',
  promise:
    'The service is killed between commit and answer, and the request sent again: one user, one 201, never 409.',
  trials: 200,
  brief: 6,
  async run({ startService, startProxy, openLedger, tries, trials, claim, postgres }) {
    const ledger = openLedger();
    const proxy = await startProxy();
    let kill: (() => void) | undefined;
    // PostgreSQL is ready for the next query when it has committed: this message is never passed on.
    proxy.answersThrough(() => {
      const isCreated = findCreates();
      let isCompleted = false;
      return messagesThrough((type, message) => {
        if (isCreated(type, message) && kill) isCompleted = true;
        if (type === READY_FOR_QUERY && isCompleted) kill?.();
        return isCompleted ? undefined : message;
      });
    });
    let service = await startService(addressOf(proxy), { ledger, isOnItsOwn: true });
    for (const trial of tries()) {
      const fields = { email: `killed-${trial}@example.com`, full_name: 'once' };
      const headers = { 'idempotency-key': `key-${trial}` };
      const { processId, exited } = service;
      kill = () => void process.kill(processId, 'SIGKILL');
      const first = await service.caller().create(fields, headers);
      await exited;
      kill = undefined;
      claim('the first has no answer', first.status === 0, first.status);
      const [row] = await postgres.query(`SELECT id FROM users WHERE email = '${fields.email}'`);
      claim('it was committed', row !== undefined);

      const isLast = trial === trials - 1;
      service = await startService(addressOf(proxy), { ledger, isOnItsOwn: !isLast });
      const again = await service.caller().create(fields, headers);
      const id = again.status === 201 ? userIn(again).id : undefined;
      claim(
        'the same request again is 201, with the user that is there',
        id !== undefined && id === row?.id,
        again,
      );
    }
    const [row] = await postgres.query('SELECT count(*)::int FROM users');
    claim('there is one user a request', row?.count === trials, row);
    await service.checkBooks();
  },
};

export const serviceKilled: Row = {
  name: 'service-killed',
  promise: 'The service is killed under 32 writers, again and again: every acknowledged write is there.',
  trials: 200,
  brief: 6,
  minutes: 15,
  async run({ startService, openLedger, tries, trials, random, recovered }) {
    const ledger = openLedger();
    const variables = { SVC_PORT: String(await freePort()) };
    let service = await startService(variables, { ledger, isOnItsOwn: true });
    const load = service.startLoad(32);
    for (const trial of tries()) {
      await sleep(50 + random.below(400));
      service.signal('SIGKILL');
      await service.exited;
      const begun = performance.now();
      service = await startService(variables, { ledger, isOnItsOwn: trial < trials - 1 });
      recovered((performance.now() - begun) / 1000);
    }
    await load.stop();
    await service.checkBooks();
  },
};
