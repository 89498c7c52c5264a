import crypto from 'pg/lib/crypto/utils.js';

const { deriveKey } = crypto;
let last: { readonly input: string; readonly key: Promise<ArrayBuffer> } | undefined;

/**
 * Makes pg count the iterations of SCRAM once for all sessions of one password, and one count at a time. Each count holds a
 * thread of libuv, and the signatures of tokens are verified by the same few threads.
 */
export function shareKeys(): void {
  crypto.deriveKey = (password, salt, iterations) => {
    const input = JSON.stringify([password, salt, iterations]);
    if (last?.input === input) return last.key;
    const count = () => deriveKey(password, salt, iterations);
    const key = last ? last.key.then(count, count) : count();
    last = { input, key };
    return key;
  };
}
