import type { Row } from '../run-row.ts';

const row = (name: string, run: Row['run'], minutes = 0.02): Row => ({
  name,
  promise: 'None: it shows what becomes of a run whose row is broken.',
  trials: 1,
  minutes,
  run,
});

/** A user is altered, and the service is killed. */
const alter: Row['run'] = async ({ startService, tries, postgres }) => {
  const service = await startService();
  const caller = service.caller();
  for (const _ of tries()) await caller.create({ email: 'ada@example.com' });
  caller.close();
  await postgres.query("UPDATE users SET full_name = 'Eve'");
  await service.checkBooks();
  service.signal('SIGKILL');
  await service.exited;
};

/** Rows that go wrong themselves, or find a fault. */
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
  row('idle', async () => {}),
  row('claimed', async ({ claim, tried }) => {
    tried();
    claim('this holds', false, 7);
  }),
  row('altered', alter, 1),
  row('untidy', async ({ defer, tried }) => {
    tried();
    defer(() => {
      throw new Error('this stays');
    });
  }),
];
