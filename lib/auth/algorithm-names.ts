import type { Algorithm } from '../settings/setting-forms.ts';

/** All names of an algorithm. `Ed25519` (RFC 9864 section 2.2) is another name of `EdDSA`, in a key and in a token. */
export function listNames(algorithm: Algorithm): readonly string[] {
  return algorithm === 'EdDSA' ? ['EdDSA', 'Ed25519'] : [algorithm];
}

export function isNameOf(algorithm: Algorithm, name: unknown): boolean {
  return listNames(algorithm).some((known) => known === name);
}
