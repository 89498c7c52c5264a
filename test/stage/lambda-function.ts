import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FunctionResult } from '../../lib/lambda.ts';
import type { Variables } from '../../lib/settings/environment.ts';
import { builtHost } from './build.ts';
import { type Line, startProcess } from './process.ts';
import { startRuntimeApi } from './runtime-api.ts';
import { until } from './until.ts';

/** The loop around the handler: our own, or the official one if it is installed. */
const CLIENT = process.env.LAMBDA_RUNTIME_CLIENT ?? join(import.meta.dirname, 'runtime-client.ts');

// Here, so that a build does not count to the time of the first test.
const main = await builtHost();

/** The variables that AWS Lambda sets for every function. Its own client of the runtime needs some that the service does not. */
const ENVIRONMENT = {
  _HANDLER: 'index.handler',
  AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs24.x',
  AWS_LAMBDA_FUNCTION_MEMORY_SIZE: '512',
  AWS_LAMBDA_FUNCTION_NAME: 'test',
  AWS_LAMBDA_FUNCTION_VERSION: '$LATEST',
  AWS_LAMBDA_INITIALIZATION_TYPE: 'on-demand',
  AWS_LAMBDA_LOG_GROUP_NAME: '/aws/lambda/test',
  AWS_LAMBDA_LOG_STREAM_NAME: '2026/11/20/[$LATEST]0123456789abcdef',
  AWS_REGION: 'eu-central-1',
  LANG: 'en_US.UTF-8',
  TZ: ':UTC',
};

export type LambdaFunction = Awaited<ReturnType<typeof startFunction>>;

/** The folder of a function, as `npm run build` writes it. */
export function bundleOf(operationId: string): string {
  return join(main, `../../functions/${operationId}`);
}

/**
 * Starts an instance of a built function: a copy of its folder, apart from the project and its packages, in a process
 * with exactly the environment of AWS Lambda and `variables`.
 */
export async function startFunction(
  operationId: string,
  variables: Variables,
  nodeOptions: readonly string[] = [],
) {
  const folder = mkdtempSync(join(tmpdir(), 'user-management-function-'));
  const task = join(folder, 'task');
  cpSync(bundleOf(operationId), task, { recursive: true });
  const api = await startRuntimeApi();
  const { exited, printed, errors, signal, remove } = startProcess(
    [process.execPath, ...nodeOptions, CLIENT],
    {
      cwd: task,
      env: { ...ENVIRONMENT, AWS_LAMBDA_RUNTIME_API: api.address, LAMBDA_TASK_ROOT: task, ...variables },
    },
  );
  void exited.then(api.exit);

  return {
    invoke: api.invoke,
    /** The result of an invocation. Throws the error of the function. */
    async call(event: unknown, options?: Parameters<typeof api.invoke>[1]): Promise<FunctionResult> {
      const outcome = await api.invoke(event, options);
      if ('result' in outcome) return JSON.parse(outcome.result || 'null');
      throw new Error(`${outcome.error.errorType}: ${outcome.error.errorMessage}`);
    },
    printed,
    errors,
    /** The lines of the output that are JSON: events and spans. */
    lines: (): readonly Line[] => (printed().match(/^\{.*$/gm) ?? []).map((line) => JSON.parse(line)),
    /** Stops the process between two invocations, as AWS Lambda does. */
    async freeze(): Promise<void> {
      await until('the function is idle', () => api.isIdle);
      signal('SIGSTOP');
    },
    thaw: () => signal('SIGCONT'),
    signal,
    async stop(): Promise<void> {
      await remove();
      api.stop();
      rmSync(folder, { recursive: true });
    },
  };
}
