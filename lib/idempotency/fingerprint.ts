import { createHash } from 'node:crypto';

/** Whose request it is, and which: the scope of an idempotency key and the values sent under it. */
export type KeyedRequest = {
  /** The operation, as its route names it. */
  readonly operation: string;
  /** The caller: `sub` of its token. */
  readonly subject: string;
  readonly key: string;
};

/** What is stored of a keyed request: SHA-256 digests, so no personal data. */
export type Fingerprint = {
  /** Of operation, caller and key. */
  readonly key: Buffer;
  /** Of the key and the validated values. */
  readonly request: Buffer;
};

/** The fingerprint of a keyed request with these values. */
export function fingerprint({ operation, subject, key }: KeyedRequest, values: unknown): Fingerprint {
  return { key: sha256([operation, subject, key]), request: sha256([key, values]) };
}

function sha256(value: unknown): Buffer {
  return createHash('sha256').update(textOf(value)).digest();
}

/**
 * A text that no other value of JSON has: each list and object tells how many members follow. Without recursion, as
 * JSON.stringify has it, for a value may be nested as deep as the limit on bodies lets it.
 */
function textOf(value: unknown): string {
  const parts: string[] = [];
  const pending = [value];
  while (pending.length > 0) {
    const next = pending.pop();
    if (typeof next !== 'object' || next === null) {
      parts.push(JSON.stringify(next) ?? 'absent');
      continue;
    }
    const members = Array.isArray(next) ? next : Object.entries(next).flat();
    parts.push(`${Array.isArray(next) ? 'list' : 'object'} ${members.length}`);
    for (const member of members) pending.push(member);
  }
  return parts.join();
}
