import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, beforeEach } from 'vitest';
import { freePort } from '../../host/development/free-port.ts';
import type { Variables } from '../../lib/settings/settings.ts';
import { callerOf, untilReady } from '../stage/built-service.ts';
import { createDatabase } from '../stage/postgres.ts';
import { openFolder } from '../stage/project-copy.ts';
import { readResponse } from '../stage/responses.ts';
import { environmentOf } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';

const ROOT = join(import.meta.dirname, '../..');

/** How git finds the commits of versions: see RELEASING.md. */
const COMMITS = {
  '1.0.0': ['214abf8b8816f6da52832c0c201a2124416be05c'],
  '1.2.0': ['--grep', '^Release 1.2.0$'],
} as const;

/**
 * The sources of an earlier version, in a folder of their own, with the packages of this version.
 *
 * @throws if the clone does not have the commit, because there is nothing to compare with
 */
export function checkOutVersion(version: keyof typeof COMMITS): string {
  const folder = openFolder();
  const options = { cwd: ROOT, maxBuffer: 2 ** 28, stdio: 'pipe' } as const;
  try {
    const found = execFileSync('git', ['log', '--max-count=1', '--format=%H', ...COMMITS[version]], options);
    const archive = execFileSync('git', ['archive', String(found).trim()], options);
    execFileSync('tar', ['-x', '-C', folder], { input: archive });
  } catch (cause) {
    rmSync(folder, { recursive: true });
    const remedy = 'the history of the repository is needed (git fetch --unshallow)';
    throw new Error(`version ${version} cannot be checked out: ${remedy}`, { cause });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

/** The sources of an earlier version, and for each of the following tests a database and an instance. */
export function stageOfVersion(version: keyof typeof COMMITS) {
  let issuer: Awaited<ReturnType<typeof startIssuer>>;
  const stage = {
    folder: '',
    database: undefined as unknown as Awaited<ReturnType<typeof createDatabase>>,
    earlier: undefined as unknown as Awaited<ReturnType<typeof startEarlierVersion>>,
    environment: {} as Variables,
    get issuer() {
      return issuer;
    },
    callerAt(url: string) {
      const call = callerOf(url, issuer);
      return async (...request: Parameters<typeof call>) => readResponse(await call(...request));
    },
  };
  beforeAll(async () => {
    stage.folder = checkOutVersion(version);
    issuer = await startIssuer();
    return async () => {
      await issuer.stop();
      rmSync(stage.folder, { recursive: true });
    };
  });
  beforeEach(async () => {
    stage.database = await createDatabase();
    stage.environment = environmentOf(stage.database, issuer);
    stage.earlier = await startEarlierVersion(stage.folder, stage.environment);
    return async () => {
      await stage.earlier.stop();
      await stage.database.drop();
    };
  });
  return stage;
}

/** Starts an instance of an earlier version, and waits until it is ready. */
export async function startEarlierVersion(folder: string, variables: Variables) {
  const port = String(await freePort());
  const child = spawn(process.execPath, [join(folder, 'host/main.ts')], {
    env: { ...variables, SVC_PORT: port },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const exited = once(child, 'exit');
  const url = `http://127.0.0.1:${port}`;
  await untilReady(url);
  return {
    url,
    async stop(): Promise<void> {
      child.kill('SIGTERM');
      await exited;
    },
  };
}
