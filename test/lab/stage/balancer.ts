import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { untilReady } from '../../stage/caller.ts';
import { startFront } from './front.ts';

const EXAMPLES = join(import.meta.dirname, '../../../infra/examples');

const FILES = { nginx: 'nginx.conf', haproxy: 'haproxy.cfg' };

/**
 * Starts the program of an example with it as it stands, but for ports and the folder of its files, and with a text of it
 * replaced by another one.
 */
export async function startBalancer(
  program: 'nginx' | 'haproxy',
  [one, two]: readonly (number | string)[],
  [text, other]: readonly [string, string] = ['', ''],
) {
  const balancer = await startFront(program, (port, folder) =>
    readFileSync(join(EXAMPLES, FILES[program]), 'utf8')
      .replaceAll('127.0.0.1:8080', `127.0.0.1:${port}`)
      .replaceAll('127.0.0.1:8000', `127.0.0.1:${one}`)
      .replaceAll('127.0.0.1:8001', `127.0.0.1:${two}`)
      .replaceAll('/tmp/', `${folder}/`)
      .replace(text, other),
  );
  await untilReady(balancer.url);
  return balancer;
}
