import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TokenIssuer } from '../../host/development/token-issuer.ts';
import { senderTo } from '../stage/caller.ts';

/** The command, as it is built. */
export const MAIN = join(import.meta.dirname, '../../infra/client/dist/command/main.js');

/** The output of a command, and its exit code. */
export type Ended = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

type CommandOptions = {
  /** The content of standard input. */
  readonly input?: string;
  /** A file descriptor for standard output instead of a pipe. */
  readonly stdout?: number;
  /** A command that runs this one, such as a shell that sets limits. */
  readonly runBy?: readonly string[];
};

/** Starts the built command with exactly the environment `variables`. */
export function startCommand(
  args: readonly string[],
  variables: NodeJS.ProcessEnv = {},
  { input, stdout, runBy = [] }: CommandOptions = {},
) {
  const [program = '', ...words] = [...runBy, process.execPath, MAIN, ...args];
  const child = spawn(program, words, { env: variables, stdio: ['pipe', stdout ?? 'pipe', 'pipe'] });
  child.stdin?.on('error', () => {});
  child.stdin?.end(input);
  const printed = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (part: string) => {
      printed[name] += part;
    });
  }
  const ended = once(child, 'close').then(([code]): Ended => ({ code: code as number | null, ...printed }));
  return {
    ended,
    printed,
    processId: child.pid,
    isRunning: () => child.exitCode === null && child.signalCode === null,
    signal: (name: NodeJS.Signals) => child.kill(name),
    /** Closes the reader of standard output. */
    closeOutput: () => child.stdout?.destroy(),
  };
}

/** Runs the command to its end. */
export function runCommand(...parameters: Parameters<typeof startCommand>): Promise<Ended> {
  return startCommand(...parameters).ended;
}

/** The variables with which the command calls this service, with a token of its own. */
export async function variablesFor(service: {
  url: string;
  tokens: TokenIssuer;
}): Promise<NodeJS.ProcessEnv> {
  return { USERS_URL: service.url, USERS_TOKEN: await service.tokens.issueToken({ clientId: 'command' }) };
}

/** Sends requests as the command with these variables does. Resolves with the content; undefined without content. */
export async function callAs(variables: NodeJS.ProcessEnv, method: string, path = '', body?: object) {
  const send = senderTo(String(variables.USERS_URL), { sign: async () => String(variables.USERS_TOKEN) });
  const response = await send(method, `/api/v1/users/${path}`, body);
  return response.status === 204 ? undefined : response.json();
}

/** A folder for files of a test. */
export function openFiles() {
  const folder = mkdtempSync(join(tmpdir(), 'user-management-command-'));
  const pathOf = (name: string) => join(folder, name);
  return {
    folder,
    pathOf,
    /** Writes a file, and returns its path. */
    write(name: string, content: string | Buffer): string {
      writeFileSync(pathOf(name), content);
      return pathOf(name);
    },
    read: (name: string) => readFileSync(pathOf(name), 'utf8'),
    /** The lines of a file of JSON. */
    lines: (name: string) => linesOf(readFileSync(pathOf(name), 'utf8')),
    remove: () => rmSync(folder, { recursive: true }),
  };
}

/** The values of lines of JSON. */
export function linesOf(text: string): readonly Record<string, unknown>[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}

/** Lines of JSON of these values. */
export const toLines = (values: readonly object[]) =>
  values.map((value) => `${JSON.stringify(value)}\n`).join('');

/** Lines of users whose emails begin with `name`. */
export const usersNamed = (name: string, count: number) =>
  toLines(
    Array.from({ length: count }, (_, n) => ({
      email: `${name}.${n + 1}@example.com`,
      full_name: `User ${n + 1}`,
    })),
  );

/** The end of a command that prints nothing but these lines on standard error. */
export const silent = (code: number, ...lines: readonly string[]): Ended => ({
  code,
  stdout: '',
  stderr: lines.map((line) => `${line}\n`).join(''),
});

/** The last line of the output. */
export const lastLine = (text: string) => text.trimEnd().split('\n').at(-1);
