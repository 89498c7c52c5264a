import type { ClientRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { holdUser } from '../../stage/locks.ts';
import type { Row } from '../run-row.ts';

export const callerLeaves: Row = {
  name: 'caller-leaves',
  promise:
    'Callers leave during an update: the user is wholly old or wholly new, and nothing stays in flight.',
  trials: 500,
  brief: 60,
  async run({ startService, tries, claim, random, postgres }) {
    const service = await startService();
    const callers = service.caller(10);
    for (const trial of tries()) {
      const created = await callers.create({ email: `left-${trial}@example.com`, full_name: 'old' });
      const { id } = JSON.parse(created.body);
      // Every other update waits for the user when its caller leaves.
      const lock = trial % 2 === 0 ? await holdUser(postgres, id) : undefined;
      const leave = (outgoing: ClientRequest) => void setTimeout(() => outgoing.destroy(), random.below(8));
      const fields = { full_name: 'new', is_active: false };
      await callers.send({ operation: 'update', userId: id, fields }, leave);
      await lock?.release();
    }
    await sleep(1000);
    const rows = await postgres.query(
      "SELECT count(*)::int FROM users WHERE (full_name, is_active) NOT IN (('old', true), ('new', false))",
    );
    claim('no user is half new', rows[0]?.count === 0, rows);
    callers.close();
    await service.checkBooks();
  },
};
