import { setTimeout as sleep } from 'node:timers/promises';
import type { UserBody } from '../../stage/responses.ts';
import { changesPage, nextIn } from './changes.ts';
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

  async function get(path: string): Promise<{ body: UserBody[]; next: string | undefined }> {
    for (;;) {
      const headers = { authorization: `Bearer ${await service.token()}` };
      const response = await fetch(service.url + path, { headers }).catch(() => undefined);
      const text = response?.status === 200 && (await response.text().catch(() => undefined));
      if (response && text) {
        return { body: JSON.parse(text), next: nextIn(response) };
      }
      if (response && response.status !== 200 && response.status !== 503) {
        throw new Error(`${path} is ${response.status}`);
      }
      await sleep(20);
    }
  }

  async function follow(): Promise<void> {
    let { next: path } = await get('/api/v1/users/changes?cursor=now&limit=0');
    for (let list: string | undefined = '/api/v1/users/?limit=1000'; list; ) {
      const { body, next } = await get(list);
      for (const user of body) users.set(user.id, pictured(user));
      list = next;
    }
    for (;;) {
      const isLast = isStopped;
      const page = await changesPage(service, String(path));
      if (!page) {
        await sleep(20);
        continue;
      }
      const named = [...new Set(page.changes.map(({ subject }) => subject))];
      for (let at = 0; at < named.length; at += USERS_PER_READ)
        await readAgain(named.slice(at, at + USERS_PER_READ));
      path = page.next;
      if (page.changes.length === 0) {
        if (isLast) return;
        await sleep(20);
      }
    }
  }

  async function readAgain(ids: readonly string[]): Promise<void> {
    const { body } = await get(`/api/v1/users/?ids=${ids.join()}`);
    for (const id of ids) users.delete(id);
    for (const user of body) users.set(user.id, pictured(user));
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
