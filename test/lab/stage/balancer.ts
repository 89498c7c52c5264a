import { connect } from 'node:net';
import { join } from 'node:path';
import { until } from '../../stage/until.ts';
import { startFront } from './front.ts';

/** Seconds between two checks of /ready; so many failures in a row take an instance out of rotation. */
const CHECK_EVERY = 0.2;
const FALL = 2;

/** In seconds: /ready answers within one, on a busy machine a little later. By default haproxy would wait for 0.2. */
const CHECK_TIMEOUT = 1.5;

/** The longest that an instance whose /ready is 503 can stay in rotation, in seconds. */
export const DETECTION = FALL * (CHECK_EVERY + CHECK_TIMEOUT);

/**
 * Starts haproxy in front of the instances, as an operator would who trusts it with nothing: it never sends a
 * request a second time, nor to another instance than the one it has chosen. What an instance loses is lost.
 */
export async function startBalancer(instances: readonly number[]) {
  const servers = instances.map((instance, n) => `  server instance-${n} 127.0.0.1:${instance}`);
  const { url, folder, printed, stop } = await startFront(
    'haproxy',
    (port, own) => `${configuration(port, socketIn(own))}\n${servers.join('\n')}\n`,
  );
  const areAllUp = async () => (await states(socketIn(folder))).every((state) => state === 'UP');
  return {
    url,
    stop,
    untilAllUp: () => until('all instances are in rotation', areAllUp, { seconds: 30 }),
    /** How often an instance was taken out because a check of it timed out, and not because /ready said so. */
    checksTimedOut: () => printed().split('is DOWN, reason: Layer7 timeout').length - 1,
  };
}

const socketIn = (folder: string) => join(folder, 'haproxy.sock');

/** What haproxy says of each instance: `UP`, `DOWN`, or on the way from one to the other. */
async function states(socket: string): Promise<readonly (string | undefined)[]> {
  const connection = connect(socket);
  connection.end('show stat\n');
  const table = Buffer.concat(await connection.toArray()).toString();
  const [names = [], ...rows] = table.split('\n').map((line) => line.replace('# ', '').split(','));
  return rows
    .filter((row) => row[names.indexOf('svname')]?.startsWith('instance-'))
    .map((row) => row[names.indexOf('status')]);
}

const configuration = (port: number, socket: string) => `
global
  stats socket ${socket} mode 600 level user

defaults
  mode http
  timeout connect 2s
  timeout client 30s
  timeout server 30s
  timeout http-keep-alive 30s
  timeout check ${CHECK_TIMEOUT * 1000}ms
  retries 0
  no option redispatch

frontend callers
  bind 127.0.0.1:${port}
  default_backend instances

backend instances
  balance roundrobin
  http-reuse always
  option httpchk GET /ready
  http-check expect status 200
  default-server check inter ${CHECK_EVERY * 1000}ms fall ${FALL} rise 1`;
