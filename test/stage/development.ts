import { join } from 'node:path';
import { freePort } from '../../host/development/free-port.ts';
import { startProcess } from './process.ts';
import { copyOfProject, removeProject } from './project-copy.ts';

/** Runs the program of `npm run dev` in a copy of the project or in the folder of a version, with data of its own. */
export async function startDevelopment(variables: NodeJS.ProcessEnv = {}, folder = copyOfProject()) {
  const ports = { SVC_PORT: '0', SVC_POSTGRES_PORT: String(await freePort()) };
  const { exited, printed, errors, find, signal, remove } = startProcess(
    [process.execPath, join(folder, 'host/development/launch.ts')],
    { env: { PATH: process.env.PATH, ...ports, ...variables } },
  );
  const banner = () => /^The service is ready.*?^Ctrl-C [^\n]*$/ms.exec(printed())?.[0];

  return {
    exited,
    printed,
    errors,
    /** The lines from the report that the service is ready to the end of the banner. */
    untilBanner: () => find('the banner', banner, { seconds: 120 }),
    interrupt: () => signal('SIGINT'),
    /** Ends it in order, and returns its exit code. `keepsData` keeps the folder. */
    async stop({ keepsData = false } = {}): Promise<number | null> {
      signal('SIGINT');
      const { code } = await exited;
      await remove();
      if (!keepsData) removeProject(folder);
      return code;
    },
  };
}
