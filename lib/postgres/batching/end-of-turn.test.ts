import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { atEndOfTurn } from './end-of-turn.ts';

test('what is asked for at the end of a turn of the event loop is done there, and not a turn later', async () => {
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

test('each turn has an end of its own', async () => {
  const done: string[] = [];
  for (const turn of ['one', 'two']) {
    atEndOfTurn(() => done.push(turn));
    await nextTurn();
  }
  expect(done).toEqual(['one', 'two']);
});
