import { setImmediate as nextPass } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { atEndOfPass } from '../../lib/postgres/sessions/end-of-pass.ts';

test('a task for the end of a pass of the event loop runs in this pass, and not in the next one', async () => {
  const done: string[] = [];
  atEndOfPass(() => {
    done.push('gathered');
    atEndOfPass(() => done.push('written'));
  });
  setImmediate(() => done.push('what came later'));
  expect(done).toEqual([]);

  await nextPass();
  expect(done).toEqual(['gathered', 'written', 'what came later']);
});

test('each pass has its own end', async () => {
  const done: string[] = [];
  for (const pass of ['one', 'two']) {
    atEndOfPass(() => done.push(pass));
    await nextPass();
  }
  expect(done).toEqual(['one', 'two']);
});
