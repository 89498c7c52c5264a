import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isTaken } from '../../host/development/free-port.ts';
import { until } from '../stage/until.ts';

/** Milliseconds between two checks of /ready; two in a row take an instance out of rotation, one brings it back. */
const CHECK_EVERY = 200;

/**
 * Starts haproxy in front of the instances, as an operator would who trusts it with nothing: it never sends a
 * request a second time, nor to another instance than the one it has chosen. What an instance loses is lost.
 */
export async function startBalancer(folder: string, port: number, instances: readonly number[]) {
  const file = join(folder, 'haproxy.cfg');
  const servers = instances.map((instance, n) => `  server instance-${n} 127.0.0.1:${instance}`);
  await writeFile(file, `${configuration(port)}\n${servers.join('\n')}\n`);
  const haproxy = spawn('haproxy', ['-db', '-f', file], { stdio: ['ignore', 'ignore', 'pipe'] });
  process.on('exit', () => void haproxy.kill('SIGKILL'));
  const told: Buffer[] = [];
  haproxy.stderr.on('data', (chunk) => told.push(chunk));
  await once(haproxy, 'spawn').catch((error) =>
    refuse(`${error}; Debian has it as a package: apt-get install --no-install-recommends haproxy`),
  );
  const ended = once(haproxy, 'exit');
  await Promise.race([untilListening(port), ended.then(() => refuse(Buffer.concat(told).toString()))]);
  return {
    url: `http://127.0.0.1:${port}`,
    /** Waits until every check that was under way has been made, and one more. */
    settled: () => sleep(3 * CHECK_EVERY),
    async stop() {
      haproxy.kill('SIGTERM');
      await ended;
    },
  };
}

function refuse(reason: string): never {
  throw new Error(`haproxy does not start: ${reason}`);
}

const untilListening = (port: number) => until('haproxy listens', () => isTaken(port));

const configuration = (port: number) => `
defaults
  mode http
  timeout connect 2s
  timeout client 30s
  timeout server 30s
  timeout http-keep-alive 30s
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
  default-server check inter ${CHECK_EVERY}ms fall 2 rise 1`;
