import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { freePort } from '../../host/development/free-port.ts';
import type { Variables } from '../../lib/settings/settings.ts';
import { callerOf, untilReady } from '../stage/built-service.ts';
import { createDatabase } from '../stage/postgres.ts';
import { openFolder } from '../stage/project-copy.ts';
import { readResponse } from '../stage/responses.ts';
import { environmentOf } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';

const ROOT = join(import.meta.dirname, '../..');

type Version = '1.0.0' | '1.2.0';

/** The commit of a version: see RELEASING.md. */
function commitOf(version: Version): string {
  if (version === '1.0.0') return '214abf8b8816f6da52832c0c201a2124416be05c';
  const search = ['log', '--grep', `^Release ${version}$`, '--max-count=1', '--format=%H'];
  return execFileSync('git', search, { cwd: ROOT, encoding: 'utf8' }).trim();
}

/**
 * The sources of an earlier version, in a folder of their own, with the packages of this version.
 *
 * @throws if the clone does not have the commit, because there is nothing to compare with
 */
export function checkOutVersion(version: Version): string {
  const folder = openFolder();
  const commit = commitOf(version);
  try {
    const archive = execFileSync('git', ['archive', commit], {
      cwd: ROOT,
      maxBuffer: 2 ** 28,
      stdio: 'pipe',
    });
    execFileSync('tar', ['-x', '-C', folder], { input: archive });
  } catch (cause) {
    rmSync(folder, { recursive: true });
    const remedy = 'the history of the repository is needed (git fetch --unshallow)';
    throw new Error(`version ${version}, ${commit}, cannot be checked out: ${remedy}`, { cause });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

/** The stage of the tests of an earlier version: its sources, and for each test a database and an instance. */
class EarlierStage {
  folder = '';
  issuer!: Awaited<ReturnType<typeof startIssuer>>;
  database!: Awaited<ReturnType<typeof createDatabase>>;
  earlier!: EarlierVersion;

  readonly callerAt = (url: string) => {
    const call = callerOf(url, this.issuer);
    return async (...request: Parameters<typeof call>) => readResponse(await call(...request));
  };
}

/** The stage of the following tests. It has its values when the first of them begins. */
export function stageOfVersion(version: Version): EarlierStage {
  const stage = new EarlierStage();
  beforeAll(async () => {
    stage.folder = checkOutVersion(version);
    stage.issuer = await startIssuer();
  });
  afterAll(async () => {
    await stage.issuer?.stop();
    if (stage.folder) rmSync(stage.folder, { recursive: true });
  });
  beforeEach(async () => {
    stage.database = await createDatabase();
    stage.earlier = await startEarlierVersion(stage.folder, environmentOf(stage.database, stage.issuer));
  });
  afterEach(async () => {
    await stage.earlier.stop();
    await stage.database.drop();
  });
  return stage;
}

/** A running instance of an earlier version. */
type EarlierVersion = Awaited<ReturnType<typeof startEarlierVersion>>;

/** Starts an instance of an earlier version, and waits until it is ready. */
export async function startEarlierVersion(folder: string, variables: Variables) {
  const port = String(await freePort());
  const child = spawn(process.execPath, [join(folder, 'host/main.ts')], {
    env: { ...variables, SVC_PORT: port },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    printed += part;
  });
  const exited = once(child, 'exit');
  const url = `http://127.0.0.1:${port}`;
  await untilReady(url);
  return {
    url,
    /** The events that it has logged. */
    events: () =>
      printed
        .split('\n')
        .filter(Boolean)
        .map((line): Record<string, unknown> => JSON.parse(line)),
    async stop(): Promise<void> {
      child.kill('SIGTERM');
      await exited;
    },
  };
}
