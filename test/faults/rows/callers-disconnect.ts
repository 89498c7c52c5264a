import type { ClientRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectTo as rawClient, requestText } from '../../stage/connection.ts';
import { holdUser } from '../../stage/locks.ts';
import type { Row } from '../run-row.ts';

export const abortedRequests: Row = {
  name: 'aborted-requests',
  promise:
    'Callers cut off or half-close at every stage of a create: no 500, nothing stored by halves, count zero.',
  trials: 3000,
  brief: 400,
  async run({ startService, claim, random, token, postgres, trySideBySide }) {
    const service = await startService();
    const whole = new Set<string>();
    const Authorization = `Bearer ${await token()}`;
    await trySideBySide(20, async (n) => {
      const email = `aborted-${n}@example.com`;
      const body = JSON.stringify({ email });
      const text = requestText('POST /api/v1/users/', { Authorization }, body);
      const client = await rawClient(service.url);
      const stage = random.chance(0.3) ? text.length : random.below(text.length);
      if (stage === text.length) whole.add(email);
      client.send(text.slice(0, stage));
      await sleep(random.below(6));
      if (random.chance(0.5)) client.abort();
      else {
        client.halfClose();
        await client.untilOver(7000);
        claim('a half-closed connection ends', client.isOver, stage);
        claim('no answer is a 500', !client.statuses().includes(500), client.received);
        client.abort();
      }
    });
    const rows = await postgres.query('SELECT email FROM users');
    const halves = rows.filter(({ email }) => !whole.has(String(email)));
    claim('nothing is stored by halves', halves.length === 0, halves[0]);
  },
};

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
