import { setTimeout as sleep } from 'node:timers/promises';
import type { UserBody } from '../../stage/responses.ts';
import { type Change, readPage } from './changes.ts';
import type { StoredUser } from './history.ts';

type Service = { readonly url: string; readonly token: () => Promise<string> };

/** So many users are read with one request. */
const USERS_PER_READ = 100;

/**
 * Starts a copy of the users as the text for consumers says: the head of the feed first, then the list, then the changes,
 * reading each user that is named.
 */
export function startMirror(service: Service) {
  let isStopped = false;
  const users = new Map<string, string>();

  async function follow(): Promise<void> {
    let path = (await readPage(service, '/api/v1/users/changes?cursor=now&limit=0'))?.next;
    for (let list: string | undefined = '/api/v1/users/?limit=1000'; list; ) {
      const page: Awaited<ReturnType<typeof readPage<UserBody>>> = await readPage<UserBody>(service, list);
      for (const user of page?.items ?? []) users.set(user.id, pictured(user));
      list = page?.next;
    }
    for (;;) {
      const isLast = isStopped;
      const page = await readPage<Change>(service, String(path));
      const named = [...new Set(page?.items.map(({ subject }) => subject))];
      for (let at = 0; at < named.length; at += USERS_PER_READ) {
        await readAgain(named.slice(at, at + USERS_PER_READ));
      }
      path = page?.next;
      if (named.length === 0) {
        if (isLast) return;
        await sleep(20);
      }
    }
  }

  async function readAgain(ids: readonly string[]): Promise<void> {
    const page = await readPage<UserBody>(service, `/api/v1/users/?ids=${ids.join()}`);
    for (const id of ids) users.delete(id);
    for (const user of page?.items ?? []) users.set(user.id, pictured(user));
  }

  const following = follow();
  return {
    /** Follows to the end; resolves with the number of users that are not as they are stored. */
    async differences(stored: readonly StoredUser[]): Promise<number> {
      isStopped = true;
      await following;
      const same = stored.filter((user) => users.get(user.id) === pictured(user)).length;
      return stored.length - same + (users.size - same);
    },
  };
}

const pictured = ({ email, full_name, is_active }: Pick<StoredUser, 'email' | 'full_name' | 'is_active'>) =>
  `${email} ${full_name} ${is_active}`;
