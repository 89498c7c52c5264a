import { errorResponse, findCreates, messagesThrough } from '../../stage/postgres-messages.ts';
import type { Row } from '../run-row.ts';

export const outcomeUnknown: Row = {
  name: 'outcome-unknown',
  promise:
    'PostgreSQL does not know the outcome (40003): 503, never sent again, and the same Idempotency-Key settles it.',
  trials: 200,
  brief: 50,
  async run({ proxyPostgres, startService, tries, claim, postgres }) {
    const proxy = await proxyPostgres();
    let isArmed = false;
    let replaced = 0;
    proxy.answersThrough(() => {
      const isCreated = findCreates();
      return messagesThrough((type, message) => {
        if (!isCreated(type, message) || !isArmed) return message;
        replaced += 1;
        return errorResponse('40003');
      });
    });
    const service = await startService(proxy.through);
    const caller = service.caller();
    for (const trial of tries()) {
      const headers = { 'idempotency-key': crypto.randomUUID() };
      const fields = { email: `unknown-${trial}@example.com` };
      isArmed = true;
      const first = await caller.create(fields, headers);
      isArmed = false;
      claim('the first is 503', first.status === 503, first.status);
      claim('it was sent once', replaced === trial + 1, replaced);
      const [row] = await postgres.query(`SELECT count(*)::int FROM users WHERE email = '${fields.email}'`);
      claim('it had happened', row?.count === 1, row);
      const again = await caller.create(fields, headers);
      claim('the same key settles it', again.status === 201, again.body);
    }
    caller.close();
    await service.checkBooks();
  },
};
