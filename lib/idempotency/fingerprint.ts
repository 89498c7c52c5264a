import { createHash } from 'node:crypto';

/** An idempotency key and its scope: the operation, as named by its route, and the caller (`sub` of its token). */
export type KeyedRequest = { readonly operation: string; readonly subject: string; readonly key: string };

/** The stored part of a request with a key: SHA-256 digests of the key and of the request, so no personal data. */
export type Fingerprint = { readonly key: Buffer; readonly request: Buffer };

/** The fingerprint of a request with a key and these validated values. */
export function fingerprint({ operation, subject, key }: KeyedRequest, values: unknown): Fingerprint {
  return { key: sha256([operation, subject, key]), request: sha256([key, values]) };
}

function sha256(value: unknown): Buffer {
  return createHash('sha256').update(textOf(value)).digest();
}

/** A text that no other JSON value has: each list and object begins with its number of members. */
function textOf(value: unknown): string {
  const parts: string[] = [];
  // No recursion, because a value may be nested as deep as the limit on bodies allows.
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
