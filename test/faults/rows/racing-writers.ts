import { readPage } from '../../lab/ledger/changes.ts';
import { userIn } from '../../lab/ledger/ledger.ts';
import { sideBySide } from '../../lab/load/callers.ts';
import type { Row } from '../run-row.ts';

export const sameAddress: Row = {
  name: 'same-address',
  promise: '100 callers create one address at once: one gets 201, the others 409, in every round.',
  trials: 1000,
  brief: 60,
  async run({ startService, tries, claim }) {
    const service = await startService();
    const callers = service.caller(100);
    for (const trial of tries()) {
      const email = `same-${trial}@example.com`;
      const responses = await Promise.all(
        Array.from({ length: 100 }, (_, n) => callers.create({ email: n % 2 ? email : email.toUpperCase() })),
      );
      const created = responses.filter(({ status }) => status === 201).length;
      const refused = responses.filter(({ status }) => status === 409).length;
      claim('one is 201 and 99 are 409', created === 1 && refused === 99, { created, refused });
    }
    callers.close();
    await service.checkBooks();
  },
};

export const partialUpdates: Row = {
  name: 'partial-updates',
  promise: 'Callers change different fields of one user at once: no change is lost.',
  trials: 5000,
  brief: 500,
  async run({ startService, claim, trySideBySide }) {
    const service = await startService();
    const callers = service.caller(30);
    await trySideBySide(10, async (n) => {
      const { id } = userIn(await callers.create({ email: `partial-${n}@example.com` }));
      const given = { email: `changed-${n}@example.com`, full_name: `name ${n}`, is_active: false };
      await Promise.all(Object.entries(given).map(([name, value]) => callers.update(id, { [name]: value })));
      const user = userIn(await callers.read(id));
      const isWhole = Object.entries(given).every(([name, value]) => user[name as 'email'] === value);
      claim('none is lost', isWhole, user);
    });
    callers.close();
    await service.checkBooks();
  },
};

export const paging: Row = {
  name: 'paging',
  promise: 'Walks by links while users are created and deleted: each user that stays is seen exactly once.',
  trials: 60,
  brief: 6,
  async run({ startService, tries, claim, random, postgres }) {
    const service = await startService();
    await postgres.query(
      `INSERT INTO users (id, email, created_at)
       SELECT gen_random_uuid(), 'page-' || n || '@example.com', now() - n * interval '1 second' FROM generate_series(1, 3000) AS n`,
    );
    const doomed = await postgres.query("SELECT id FROM users WHERE right(email, 14) LIKE '%7@example.com'");
    const lasting = await postgres.query(
      "SELECT id FROM users WHERE right(email, 14) NOT LIKE '%7@example.com'",
    );
    const callers = service.caller(4);
    let isOver = false;
    const writing = sideBySide(4, 1_000_000, async (n) => {
      if (isOver) return;
      const victim = doomed[n];
      if (victim) await callers.remove(String(victim.id));
      else await callers.create({ email: `new-${n}@example.com` });
    });
    for (const _ of tries()) {
      const seen = await walk(
        `/api/v1/users/?limit=${50 + random.below(200)}&sort=${random.pick(['created_at', '-created_at'])}`,
      );
      const counts = new Map<string, number>();
      for (const id of seen) counts.set(id, (counts.get(id) ?? 0) + 1);
      const missed = lasting.filter(({ id }) => !counts.has(String(id))).length;
      const repeated = [...counts.values()].filter((count) => count > 1).length;
      claim('none is skipped and none repeated', missed === 0 && repeated === 0, { missed, repeated });
    }
    isOver = true;
    await writing;
    callers.close();

    async function walk(first: string): Promise<readonly string[]> {
      const ids: string[] = [];
      for (let path: string | undefined = first; path; ) {
        const page: Awaited<ReturnType<typeof readPage<{ id: string }>>> = await readPage(service, path);
        ids.push(...(page?.items ?? []).map(({ id }) => id));
        path = page?.next;
      }
      return ids;
    }
  },
};
