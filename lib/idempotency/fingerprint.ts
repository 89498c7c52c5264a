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

/** The fingerprint of a keyed request with these values. JSON keeps the parts apart: no two lists read alike. */
export function fingerprint({ operation, subject, key }: KeyedRequest, values: unknown): Fingerprint {
  return { key: sha256([operation, subject, key]), request: sha256([key, values]) };
}

function sha256(parts: readonly unknown[]): Buffer {
  return createHash('sha256').update(JSON.stringify(parts)).digest();
}
