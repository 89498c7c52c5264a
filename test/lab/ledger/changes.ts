import { setTimeout as sleep } from 'node:timers/promises';

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

export type Service = { readonly url: string; readonly token: () => Promise<string> };

/** Where reading begins. */
export const FIRST_CHANGES = '/api/v1/users/changes?limit=1000';

const PAUSE_MS = 20;

/**
 * Reads a page of changes, again until there is a response other than 503, or 401, as while a new key is not known yet.
 * Resolves with the changes, the path of the next page, and when the request was sent; undefined if the signal aborts it.
 */
export async function readPage({ url, token }: Service, path: string, signal?: AbortSignal) {
  for (;;) {
    const request = { headers: { authorization: `Bearer ${await token()}` }, ...(signal && { signal }) };
    const sent = performance.now();
    const response = await fetch(url + path, request).catch(() => undefined);
    const text = await response?.text().catch(() => undefined);
    if (response && text !== undefined && response.status === 200)
      return { items: JSON.parse(text) as readonly Change[], next: nextIn(response), sent };
    if (response && text !== undefined && response.status !== 503 && response.status !== 401)
      throw new Error(`${path} is ${response.status}: ${text}`);
    if (signal?.aborted) return undefined;
    await sleep(PAUSE_MS);
  }
}

/** The target of the link to the next page; undefined without one. */
export const nextIn = ({ headers }: Response): string | undefined =>
  /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1];

export async function allChanges(service: Service): Promise<readonly Change[]> {
  const all: Change[] = [];
  for (let path = FIRST_CHANGES; ; ) {
    const page = await readPage(service, path);
    if (!page?.next) throw new Error(`${path} has no next link`);
    if (page.items.length === 0) return all;
    all.push(...page.items);
    path = page.next;
  }
}
