import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { freePort } from '../../host/development/free-port.ts';
import { copyOfProject, removeProject } from './project-copy.ts';
import { until } from './until.ts';

/** Runs the program of `npm run dev` in a copy of the project or in the folder of a version, with data of its own. */
export async function startDevelopment(variables: NodeJS.ProcessEnv = {}, folder = copyOfProject()) {
  const child = spawn(process.execPath, [join(folder, 'host/development/launch.ts')], {
    env: { PATH: process.env.PATH, SVC_PORT: '0', SVC_POSTGRES_PORT: String(await freePort()), ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'close').then(([code]) => code as number | null);
  let printed = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    printed += part;
  });
  child.stderr.setEncoding('utf8').on('data', (part: string) => {
    errors += part;
  });

  return {
    exited,
    printed: () => printed,
    errors: () => errors,
    /** The lines from the report that the service is ready to the end of the banner. */
    untilBanner(): Promise<string> {
      return until('the banner', () => bannerIn(printed, child.exitCode, errors), { seconds: 120 });
    },
    /** Ends it in order, and returns its exit code. `keepsData` keeps the folder. */
    async stop({ keepsData = false } = {}): Promise<number | null> {
      child.kill('SIGINT');
      const code = await exited;
      if (!keepsData) removeProject(folder);
      return code;
    },
  };
}

function bannerIn(printed: string, exitCode: number | null, errors: string): string | undefined {
  if (exitCode !== null) throw new Error(`it ended before the banner: ${errors}`);
  return /^The service is ready.*?^Ctrl-C [^\n]*$/ms.exec(printed)?.[0];
}
