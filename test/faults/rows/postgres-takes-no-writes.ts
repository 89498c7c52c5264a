import { execFile } from 'node:child_process';
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { accountFor } from '../../../host/development/postgres/place.ts';
import type { ServiceUnderFault, Stage } from '../../lab/stage/stage.ts';
import { until } from '../../stage/until.ts';
import type { Row } from '../run-row.ts';

const run = promisify(execFile);

/** In each trial PostgreSQL takes no writes: those are 503, reads 200, and writing resumes by itself. */
async function refuseWrites(
  { tries, claim, recovered }: Stage,
  service: ServiceUnderFault,
  bringAbout: () => Promise<() => unknown>,
): Promise<void> {
  for (const _ of tries()) {
    const caller = service.caller();
    const name = () => crypto.randomUUID();
    const create = () => caller.create({ email: `${name()}@example.com`, full_name: 'x'.repeat(200) });
    const { id } = JSON.parse((await create()).body);
    const undo = await bringAbout();
    await until('writes are 503', async () => (await create()).status === 503, { every: 0 });
    // A connection that was ended meanwhile may cost one more.
    await until('reads are 200', async () => (await caller.read(id)).status === 200);
    const reads = await Promise.all(Array.from({ length: 20 }, () => caller.read(id)));
    const statuses = [...new Set(reads.map(({ status }) => status))];
    claim('reads are 200', statuses.join() === '200', statuses);
    await undo();
    const undone = performance.now();
    await until('writes are 201', async () => (await create()).status === 201);
    recovered((performance.now() - undone) / 1000);
    caller.close();
  }
  await service.checkBooks();
}

export const readOnly: Row = {
  name: 'read-only',
  promise: 'PostgreSQL is read-only, as after a failover: writes 503, reads 200, recovery by itself.',
  trials: 20,
  brief: 3,
  async run(stage) {
    const { postgres } = stage;
    const service = await stage.startService();
    await refuseWrites(stage, service, async () => {
      await postgres.query('ALTER DATABASE postgres SET default_transaction_read_only = on');
      await postgres.terminate();
      // Sessions keep what they began with, as those at a server do that is no longer the primary.
      return () =>
        postgres.query([
          'SET default_transaction_read_only = off',
          'ALTER DATABASE postgres RESET default_transaction_read_only',
        ]);
    });
  },
};

export const diskFull: Row = {
  name: 'disk-full',
  promise: 'The disk is full: writes 503, reads 200, and writes resume when there is room.',
  trials: 5,
  async run(stage) {
    const { postgres, defer } = stage;
    const folder = await mkdtemp(join(tmpdir(), 'user-management-small-'));
    await run('mount', ['-t', 'tmpfs', '-o', 'size=40m', 'tmpfs', folder]);
    defer(async () => {
      await run('umount', ['--lazy', folder]);
      await rm(folder, { recursive: true });
    });
    // The tables lie on the small disk, the log of writes does not: without that one PostgreSQL would end.
    const place = join(folder, 'tables');
    await mkdir(place);
    const { uid = 0, gid = 0 } = await accountFor(postgres.dataFolder);
    await chown(place, uid, gid);
    await chmod(folder, 0o755);
    await postgres.query([
      `CREATE TABLESPACE small LOCATION '${place}'`,
      'CREATE DATABASE full_of TABLESPACE small',
    ]);
    const service = await stage.startService({ SVC_POSTGRES_DB: 'full_of' });
    await refuseWrites(stage, service, async () => {
      const filling = join(folder, 'filling');
      await writeFile(filling, Buffer.alloc(64 * 1024 * 1024)).catch(() => {});
      return () => rm(filling);
    });
  },
};
