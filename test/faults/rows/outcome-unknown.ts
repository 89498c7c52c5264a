import { through } from '../../stage/proxy.ts';
import type { Row } from '../run-row.ts';

const ERROR = Buffer.from('SERROR\0VERROR\0C40003\0Mthe outcome is unknown\0\0');

/** An ErrorResponse of PostgreSQL's protocol with SQLSTATE 40003. */
const OUTCOME_UNKNOWN = Buffer.concat([Buffer.from('E'), lengthOf(ERROR), ERROR]);

function lengthOf(content: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(content.length + 4);
  return length;
}

/** Takes the answers of PostgreSQL apart; those that tell of a completed command are replaced as long as `isMeant`. */
function outcomesUnknown(isMeant: () => boolean) {
  let bytes = Buffer.alloc(0);
  return through(async (chunk, push) => {
    bytes = Buffer.concat([bytes, chunk]);
    while (bytes.length >= 5 && bytes.length > bytes.readInt32BE(1)) {
      const message = bytes.subarray(0, 1 + bytes.readInt32BE(1));
      bytes = bytes.subarray(message.length);
      push(message[0] === 'C'.charCodeAt(0) && isMeant() ? OUTCOME_UNKNOWN : message);
    }
  });
}

export const outcomeUnknown: Row = {
  name: 'outcome-unknown',
  promise:
    'PostgreSQL does not know the outcome (40003): 503, never sent again, and the same Idempotency-Key settles it.',
  trials: 200,
  brief: 50,
  async run({ proxyPostgres, startService, trials, claim, tried, postgres }) {
    const proxy = await proxyPostgres();
    let isArmed = false;
    let replaced = 0;
    proxy.answersThrough(() =>
      outcomesUnknown(() => {
        if (isArmed) replaced += 1;
        return isArmed;
      }),
    );
    const service = await startService(proxy.through);
    const caller = service.caller();
    for (let trial = 0; trial < trials; trial += 1) {
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
      tried();
    }
    caller.close();
    await service.checkBooks();
  },
};
