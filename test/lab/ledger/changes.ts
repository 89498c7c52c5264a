import { setTimeout as sleep } from 'node:timers/promises';

/** A change as the service returns it. */
export type Change = {
  readonly id: string;
  readonly type: 'user.created' | 'user.updated' | 'user.deleted';
  readonly subject: string;
  readonly time: string;
  readonly data: {
    readonly version: number;
    readonly changed: readonly string[];
    readonly actor: string;
    readonly request_id: string;
  };
};

/** Its position, which its id begins with. */
export const positionOf = ({ id }: Change): bigint => BigInt(id.split('-')[0] ?? '');

/** A page, and the path of the next one. */
export type ChangesPage = { readonly changes: readonly Change[]; readonly next: string };

type Service = { readonly url: string; readonly token: () => Promise<string> };

/** Where reading begins. */
export const FIRST_CHANGES = '/api/v1/users/changes?limit=1000';

/** One page of changes; undefined when there was no answer, 503, or 401, as while a new key is not known yet. */
export async function changesPage(
  { url, token }: Service,
  path: string,
  signal?: AbortSignal,
): Promise<ChangesPage | undefined> {
  const headers = { authorization: `Bearer ${await token()}` };
  const request = { headers, ...(signal && { signal }) };
  const response = await fetch(url + path, request).catch(() => undefined);
  if (!response || response.status === 503 || response.status === 401) {
    await response?.body?.cancel().catch(() => {});
    return undefined;
  }
  const text = await response.text().catch(() => undefined);
  if (text === undefined) return undefined;
  if (response.status !== 200) throw new Error(`${path} is ${response.status}: ${text}`);
  const next = nextIn(response);
  if (!next) throw new Error(`${path} has no next link`);
  return { changes: JSON.parse(text), next };
}

/** The target of the link to the next page; undefined without one. */
export const nextIn = ({ headers }: Response): string | undefined =>
  /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1];

/** All changes from the first to the head. */
export async function allChanges(service: Service): Promise<readonly Change[]> {
  const all: Change[] = [];
  for (let path = FIRST_CHANGES; ; ) {
    const page = await changesPage(service, path);
    if (!page) {
      await sleep(50);
      continue;
    }
    if (page.changes.length === 0) return all;
    all.push(...page.changes);
    path = page.next;
  }
}
