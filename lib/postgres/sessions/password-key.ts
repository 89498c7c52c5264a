import crypto from 'pg/lib/crypto/utils.js';

const { deriveKey } = crypto;
let last: { readonly input: string; readonly key: Promise<ArrayBuffer> } | undefined;

/** pg counts the iterations for each session. A count holds one of the few threads of libuv, which verify tokens, too. */
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
