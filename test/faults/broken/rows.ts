import type { Row } from '../run-row.ts';

const row = (name: string, run: Row['run']): Row => ({
  name,
  promise: 'None: it shows what becomes of a run whose row is broken.',
  trials: 1,
  minutes: 0.02,
  run,
});

/** Rows that go wrong themselves. */
export const rows: readonly Row[] = [
  row('uncaught', async () => {
    void Promise.reject(new Error('this is not awaited'));
    await new Promise(() => {});
  }),
  row('ended', async () => {
    process.exit(7);
  }),
  row('endless', () => new Promise(() => {})),
  row('busy', async () => {
    for (;;);
  }),
  row('untidy', async ({ defer, tried }) => {
    tried();
    defer(() => {
      throw new Error('this stays');
    });
  }),
];
