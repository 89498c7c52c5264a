import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import type { Variables } from '../../lib/settings/environment.ts';
import { startComposition } from '../stage/composition.ts';
import { eventOf } from '../stage/events.ts';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import { startFunction } from '../stage/lambda-function.ts';
import { until } from '../stage/until.ts';

const ROOT = '1-6a0ed7b2-4f1d2c3b5a69788700001eef';
const PARENTS = ['53995c3f42cd8ad8', '53995c3f42cd8ad9'];

const stage = forAllTests(() => startComposition());

/** An instance of getUser that sends its traces to X-Ray. */
const start = (variables: Variables) =>
  forThisTest(startFunction, 'getUser', {
    ...stage.environment,
    POWERTOOLS_TRACE_ENABLED: 'true',
    ...variables,
  });

test('with OpenTelemetry off and X-Ray on, each invocation is a subsegment of its own trace', async () => {
  const received: Record<string, unknown>[] = [];
  const daemon = createSocket('udp4');
  daemon.on('message', (message) => received.push(JSON.parse(message.toString().split('\n')[1] ?? '')));
  daemon.bind(0, '127.0.0.1');
  await once(daemon, 'listening');
  const instance = await start({ AWS_XRAY_DAEMON_ADDRESS: `127.0.0.1:${daemon.address().port}` });
  const event = await eventOf('getUser', { token: await stage.issuer.sign() });

  for (const parent of PARENTS) {
    await instance.call(event, { traceHeader: `Root=${ROOT};Parent=${parent};Sampled=1` });
  }

  await until('both subsegments', () => received.length === PARENTS.length);
  expect(received).toEqual(
    PARENTS.map((parent_id) =>
      expect.objectContaining({
        name: '## getUser',
        type: 'subsegment',
        trace_id: ROOT,
        parent_id,
        annotations: { ColdStart: parent_id === PARENTS[0], Service: 'user-management-service' },
      }),
    ),
  );
  daemon.close();
});

test('messages of its SDK are not lines of their own on standard output', async () => {
  const instance = await start({
    POWERTOOLS_DEV: 'true',
    AWS_XRAY_DEBUG_MODE: 'true',
    AWS_XRAY_LOG_LEVEL: 'debug',
  });
  const event = await eventOf('getUser', { token: await stage.issuer.sign() });
  await instance.call(event, { traceHeader: `Root=${ROOT};Parent=${PARENTS[0]};Sampled=1` });
  await instance.call(event);
  const lines = instance.printed().split('\n').slice(0, -1);

  expect(lines.map((line) => JSON.parse(line).event)).toEqual(
    expect.arrayContaining(['app_error', 'app_error']),
  );
});
