import { userIn } from '../../lab/ledger/ledger.ts';
import { nastyString } from '../nasty-strings.ts';
import type { Row } from '../run-row.ts';

export const nastyStrings: Row = {
  name: 'nasty-strings',
  promise:
    'Nasty strings in every field, path and query: 4xx or accepted, never 5xx; what is accepted reads back alike.',
  trials: 25_000,
  brief: 2500,
  async run({ startService, claim, random, trySideBySide }) {
    const service = await startService({}, { isOnItsOwn: true });
    const callers = service.caller(20);
    await trySideBySide(20, async (n) => {
      const text = nastyString(random);
      const place = n % 4;
      if (place < 2) {
        const fields = place === 0 ? { email: text } : { email: `nasty-${n}@example.com`, full_name: text };
        const created = await callers.create(fields);
        claim('a value is accepted or refused', [201, 409, 422].includes(created.status), {
          text,
          ...created,
        });
        if (created.status === 201) {
          const { id } = userIn(created);
          const user = userIn(await callers.read(id));
          const isAlike = Object.entries(fields).every(([name, value]) => user[name as 'email'] === value);
          claim('what is accepted reads back alike', isAlike, { fields, user });
        }
      } else {
        const target = place === 2 ? encoded(text) : `?${random.pick(QUERY)}=${encoded(text)}`;
        const { status } = await callers.read(target);
        const isRight = [200, 400, 404, 405, 422, 431].includes(status);
        claim('a place in the address is accepted or refused', isRight, { target, status });
      }
    });
    callers.close();
    const defects = service
      .events()
      .filter(({ status_code, event }) => status_code === 500 || event === 'validation_gap');
    claim('the log tells of no defect', defects.length === 0, defects[0]);
  },
};

const QUERY = [
  'skip',
  'limit',
  'email',
  'is_active',
  'ids',
  'created_after',
  'created_before',
  'sort',
  'cursor',
  'x',
];

/** Percent-encoded, lone surrogates as the three bytes that stand for them elsewhere. */
function encoded(text: string): string {
  return text.isWellFormed() ? encodeURIComponent(text) : '%ED%A0%80';
}
