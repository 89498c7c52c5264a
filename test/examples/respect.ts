import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '../..');

/** A request of a workflow, and its response. */
export type Step = {
  readonly workflowId: string;
  readonly stepId: string;
  readonly response: { readonly headers: Readonly<Record<string, string>>; readonly body: unknown };
};

type Executed = {
  readonly type: 'workflow';
  readonly workflowId: string;
  readonly status: 'success' | 'error';
  readonly executedSteps: readonly (Executed | (Step & { readonly type: 'step' }))[];
};

/** Runs a command of Redocly CLI in a shell, in the folder of the project as a reader does. */
export async function shell(command: string, variables: NodeJS.ProcessEnv = {}) {
  const PATH = `${dirname(process.execPath)}:${join(ROOT, 'node_modules/.bin')}:${process.env.PATH}`;
  const silence = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', NO_COLOR: '1' };
  const env = { ...process.env, ...silence, ...variables, PATH };
  const ended = promisify(execFile)('sh', ['-c', command], { cwd: ROOT, env, maxBuffer: 1e8 });
  return ended.then(
    ({ stdout, stderr }) => ({ code: 0, printed: stdout + stderr }),
    ({ code, stdout, stderr }) => ({ code: Number(code), printed: `${stdout}${stderr}` }),
  );
}

/**
 * Runs a command of Respect, to which options can be added at its end. Resolves with the names of the workflows that hold
 * and of those that do not, all steps in their order, the exit code and the output.
 */
export async function respect(command: string, variables: NodeJS.ProcessEnv) {
  const folder = mkdtempSync(join(tmpdir(), 'user-management-respect-'));
  const report = join(folder, 'report.json');
  const ended = await shell(`${command} --json-output ${report}`, variables);
  if (!existsSync(report)) throw new Error(ended.printed);
  const executed = workflowsIn(report);
  rmSync(folder, { recursive: true });
  const named = (wanted: Executed['status']) =>
    executed.filter(({ status }) => status === wanted).map(({ workflowId }) => workflowId);
  return { ...ended, passed: named('success'), failed: named('error'), steps: executed.flatMap(stepsOf) };
}

function workflowsIn(report: string): readonly Executed[] {
  const { files } = JSON.parse(readFileSync(report, 'utf8'));
  return Object.values<{ executedWorkflows: Executed[] }>(files).flatMap((file) => file.executedWorkflows);
}

/** A step that was gone to is inside of a workflow. */
function stepsOf({ executedSteps }: Executed): readonly Step[] {
  return executedSteps.flatMap((executed) => (executed.type === 'workflow' ? stepsOf(executed) : [executed]));
}

/** The cursor in the Link of a response. */
export function cursorOf(step: Step | undefined): string | undefined {
  return /[?&]cursor=([^&>]+)/.exec(step?.response.headers.link ?? '')?.[1];
}
