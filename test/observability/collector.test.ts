import { expect, test } from 'vitest';
import { freePort } from '../../host/development/free-port.ts';
import { startTracedService, type TracedService } from '../stage/built-service.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { BUSY_S, timed, times } from '../stage/until.ts';

/** What a collector does to its clients. If there is none, its address. */
const FAULTS: Readonly<Record<string, (service: TracedService) => void>> = {
  hanging: ({ receiver }) => receiver.answer(() => {}),
  breaking: ({ receiver }) => receiver.answer((response) => response.destroy()),
  slow: ({ receiver }) => receiver.answer((response) => void setTimeout(() => response.end(), 3000)),
};

const often = {
  OTEL_METRICS_EXPORTER: 'otlp',
  OTEL_METRIC_EXPORT_INTERVAL: '100',
  OTEL_METRIC_EXPORT_TIMEOUT: '100',
};

/** Expects that callers notice nothing, and that the exit takes a second longer at most. */
async function expectNoHarm(service: TracedService): Promise<void> {
  const headers = { authorization: `Bearer ${await service.issuer.sign()}` };
  let slowest = 0;
  for (let sent = 0; sent < 200; sent += 20) {
    const responses = await times(20, () => timed(fetch(`${service.url}/api/v1/users/`, { headers })));
    for (const { value, milliseconds } of responses) {
      expect(value.status).toBe(200);
      slowest = Math.max(slowest, milliseconds);
    }
  }
  expect(slowest).toBeLessThan(3000 + 1000 * BUSY_S);

  service.signal('SIGTERM');
  const { value: exit, milliseconds } = await timed(service.exited);
  expect(exit).toEqual({ code: 0, signal: null });
  expect(milliseconds).toBeLessThan(2500 + 1000 * BUSY_S);
  expect(service.errors()).toBe('');
  const events = service.lines().filter(({ path }) => path !== '/ready');
  expect(events.map(({ event }) => event)).toEqual(['listening', 'database_migrated', 'shutdown_drained']);
}

test('an unavailable collector costs callers nothing, and the exit a second at most', async () => {
  const endpoint = `http://127.0.0.1:${await freePort()}`;
  const service = await forThisTest(startTracedService, { ...often, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint });

  await expectNoHarm(service);
});

test.each(Object.keys(FAULTS))(
  'a collector that is %s costs callers nothing, and the exit a second at most',
  async (fault) => {
    const service = await forThisTest(startTracedService, often);
    FAULTS[fault]?.(service);

    await expectNoHarm(service);
    expect(service.receiver.received.length).toBeGreaterThan(0);
  },
);
