import type { Entry, Ledger } from '../lab/ledger/ledger.ts';

/**
 * Forgets of answers what no judge looks at, since there are some hundred thousand of them in an hour: headers of
 * successes, and lists, which have been looked at by then. Begins at entry number `from`, and gives where to go on.
 */
export function thin(
  { entries }: Ledger,
  from: number,
  claim: (what: string, holds: boolean) => void,
): number {
  let at = from;
  for (let entry = entries[at]; entry && isOver(entry); entry = entries[at]) {
    at += 1;
    if (entry.status < 200 || entry.status >= 300) continue;
    const { etag, 'idempotency-replayed': replayed } = entry.answerHeaders;
    entry.answerHeaders = { etag, 'idempotency-replayed': replayed };
    if (!entry.userId?.startsWith('?')) continue;
    claim(`${entry.path} is a list`, entry.body.startsWith('[') && entry.body.endsWith(']'));
    entry.body = '';
  }
  return at;
}

const isOver = ({ status, isLost }: Entry): boolean => status !== 0 || isLost;
