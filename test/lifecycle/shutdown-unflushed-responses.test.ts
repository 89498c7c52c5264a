import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { startBuiltService } from '../stage/built-service.ts';
import { connectTo, requestText } from '../stage/connection.ts';
import { expectEndInOrder } from '../stage/end-in-order.ts';
import { forThisTest } from '../stage/for-all-tests.ts';

const USERS = 1000;
const REQUESTS = 5;

/** A service with as many users as a list can have, and a client that requests lists and reads no response. */
async function startWithUnread(after = '') {
  const service = await forThisTest(startBuiltService, { SVC_SHUTDOWN_DRAIN_TIMEOUT: '0.5' });
  await service.database.query(`
    INSERT INTO users (id, email, full_name)
    SELECT gen_random_uuid(), n || '@example.com', repeat('\u{1F600}', 255) FROM generate_series(1, ${USERS}) AS n
  `);

  // More than the buffers of both sides hold, on one connection whose client does not read.
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1').pause();
  const fields = { Authorization: `Bearer ${await service.issuer.sign()}` };
  socket.write(requestText(`GET /api/v1/users/?limit=${USERS}`, fields).repeat(REQUESTS) + after);
  await sleep(1500);
  return { service, socket };
}

test.each(['during', 'after'] as const)(
  'a response that is read %s the linger is sent completely',
  async (time) => {
    const { service, socket } = await startWithUnread();
    const idle = await connectTo(service.url);
    service.signal('SIGTERM');
    // It is closed at the end of the linger. What is in progress has half a second then.
    await (time === 'during' ? sleep(100) : idle.rest());
    const received = Buffer.concat(await socket.toArray()).toString();
    const exit = await service.exited;

    const bodies = received.split(/HTTP\/1\.1 \d+ [^[{]*\r\n\r\n/).slice(1);
    const lengths = bodies.map((body) => JSON.parse(body).length);
    // Those that waited for this response are 503 after the linger.
    expect(lengths).toEqual(time === 'during' ? Array(REQUESTS).fill(USERS) : [USERS, ...lengths.slice(1)]);
    expect(bodies).toHaveLength(REQUESTS);
    expect(exit).toEqual({ code: 0, signal: null });
  },
);

test.each([
  ['nothing', ''],
  ['CONNECT', 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n'],
])(
  'a client that never reads its responses does not delay the exit, with %s sent after them',
  async (_case, after) => {
    const { service, socket } = await startWithUnread(after);
    onTestFinished(() => void socket.destroy());
    await expectEndInOrder(service, 2.5);
  },
);
