import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { atEndOfTurn } from '../../lib/postgres/wire/end-of-turn.ts';

test('a task for the end of a turn of the event loop runs in this turn, and not in the next one', async () => {
  const done: string[] = [];
  atEndOfTurn(() => {
    done.push('gathered');
    atEndOfTurn(() => done.push('written'));
  });
  setImmediate(() => done.push('what came later'));
  expect(done).toEqual([]);

  await nextTurn();
  expect(done).toEqual(['gathered', 'written', 'what came later']);
});

test('each turn has its own end', async () => {
  const done: string[] = [];
  for (const turn of ['one', 'two']) {
    atEndOfTurn(() => done.push(turn));
    await nextTurn();
  }
  expect(done).toEqual(['one', 'two']);
});
