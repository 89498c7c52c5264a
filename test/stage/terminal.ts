import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { until } from './until.ts';

/** Put before a command, it gives that a terminal; the program of util-linux and that of BSD differ. */
export const TERMINAL: readonly string[] =
  process.platform === 'darwin'
    ? ['script', '-q', '/dev/null']
    : ['sh', '-c', 'exec script --quiet --flush --command "$*" /dev/null', 'sh'];

/** Whether there is a program of this name. */
export function isInstalled(program: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

const PROMPT = 'prompt> ';
const PASTES_ON = '\x1b[?2004h';
const PASTE = ['\x1b[200~', '\x1b[201~'] as const;

/** An interactive shell in a terminal, as somebody types to it. */
export function startShell(command: readonly string[]) {
  const [program = '', ...options] = [...TERMINAL, ...command];
  const child = spawn(program, options, {
    env: { PATH: process.env.PATH, HOME: '/', TERM: 'xterm', PS1: PROMPT },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let hasEnded = false;
  child.once('close', () => {
    hasEnded = true;
  });
  let shown = '';
  child.stdout.setEncoding('latin1').on('data', (part: string) => {
    shown += part;
  });

  return {
    /** Pastes once the shell waits for input: bracketed, where the shell asked for that, or as if it were typed. */
    async paste(text: string, { bracketed }: { bracketed: boolean }): Promise<void> {
      await until('a prompt', () => shown.includes(bracketed ? PASTES_ON : PROMPT));
      // A terminal sends the key that ends a line.
      const typed = text.replaceAll('\n', '\r');
      child.stdin.write(bracketed ? PASTE.join(typed) : typed);
    },
    /** Ends it by the command for that, and gives all that the terminal has shown. */
    async leave(): Promise<string> {
      child.stdin.write('\rexit\r');
      await until('the end of the shell', () => hasEnded, { seconds: 20 });
      return shown;
    },
    kill: () => child.kill('SIGKILL'),
  };
}
