import { setTimeout as sleep } from 'node:timers/promises';
import { rawClient, requestText } from '../../stage/raw-client.ts';
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
