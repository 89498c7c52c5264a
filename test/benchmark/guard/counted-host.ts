import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { freePort } from '../../../host/development/free-port.ts';
import type { Variables } from '../../../lib/settings/environment.ts';
import type { Request } from '../../lab/load/wire.ts';
import { sendTo } from '../../stage/raw-request.ts';
import { until } from '../../stage/until.ts';
import { rawRequest } from '../responses.ts';
import type { Question, Totals } from './counters.ts';

const HOST = join(import.meta.dirname, '../../../host/main.ts');
const COUNTERS = join(import.meta.dirname, 'counters.ts');

/**
 * Neither garbage is collected unless it is asked for, nor is code compiled at a moment of V8's choice, after which it
 * would make fewer objects.
 */
const V8 = [
  '--expose-gc',
  '--min-semi-space-size=128',
  '--max-semi-space-size=128',
  '--no-opt',
  '--no-maglev',
];

/** Starts the host as a process of its own that counts, after `preloaded` modules if there are any. */
export async function startCountedHost(variables: Variables, preloaded: readonly string[] = []) {
  const port = await freePort();
  const imported = [COUNTERS, ...preloaded].flatMap((module) => ['--import', module]);
  const child = fork(HOST, {
    execArgv: [...V8, ...imported],
    env: { ...variables, SVC_PORT: String(port) },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const exited = once(child, 'exit');
  // One connection: nothing is done at the same time as something else.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });

  const send = (request: Request) => sendTo(`http://127.0.0.1:${port}`, rawRequest(request), agent);

  const isReady = async () => {
    if (child.exitCode !== null) throw new Error('the host has ended');
    return send({ method: 'GET', target: '/ready' }).then(
      ({ status }) => status === 200,
      () => false,
    );
  };
  await until('the host is ready', isReady, { seconds: 60 });

  return {
    send,
    async ask(question: Question): Promise<Totals> {
      const response = once(child, 'message');
      child.send(question);
      return (await response)[0] as Totals;
    },
    async stop(): Promise<void> {
      agent.destroy();
      child.kill('SIGKILL');
      await exited;
    },
  };
}

export type CountedHost = Awaited<ReturnType<typeof startCountedHost>>;
