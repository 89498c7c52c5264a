import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { until } from './until.ts';

/** A prefix that runs a command in a terminal. The programs of util-linux and BSD differ. */
export const TERMINAL: readonly string[] =
  process.platform === 'darwin'
    ? ['script', '-q', '/dev/null']
    : ['sh', '-c', 'exec script --quiet --flush --command "$*" /dev/null', 'sh'];

export const isInstalled = (program: string): boolean =>
  (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, program)));

const PROMPT = 'prompt> ';
const PASTES_ON = '\x1b[?2004h';
const PASTE = ['\x1b[200~', '\x1b[201~'] as const;

/** An interactive shell in a terminal. */
export function startShell(command: readonly string[]) {
  const [program = '', ...options] = [...TERMINAL, ...command];
  const child = spawn(program, options, {
    env: { PATH: process.env.PATH, HOME: '/', TERM: 'xterm', PS1: PROMPT },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close');
  let shown = '';
  child.stdout.setEncoding('latin1').on('data', (part: string) => {
    shown += part;
  });

  return {
    /** Pastes when the shell waits for input: bracketed if the shell supports that, otherwise like typed text. */
    async paste(text: string, { bracketed }: { bracketed: boolean }): Promise<void> {
      await until('a prompt', () => shown.includes(bracketed ? PASTES_ON : PROMPT));
      // A terminal sends this character for the Enter key.
      const typed = text.replaceAll('\n', '\r');
      child.stdin.write(bracketed ? PASTE.join(typed) : typed);
    },
    /** Exits the shell, and returns everything that the terminal has shown. */
    async leave(): Promise<string> {
      child.stdin.write('\rexit\r');
      await closed;
      return shown;
    },
    kill: () => child.kill('SIGKILL'),
  };
}
