import { randomFillSync } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';

/** In bytes: random part of one id, and of all ids that are drawn at once. */
const RANDOM = 16;
const POOL = 256 * RANDOM;

const pool = new Uint8Array(POOL);
let used = POOL;
let msecs = 0;
let seq = 0;

/**
 * A new UUID version 7, greater than all earlier ones of this process. Within a millisecond, and while the clock is set
 * back, the next id counts on (RFC 9562 section 6.2, method 1). Random bytes are drawn for 256 ids at once. Drawing
 * them one by one took 7 of 150 microseconds that the server spends on a create, and 270 of 1,900 of a batch.
 */
export function newUserId(): string {
  const random = randomBytes();
  const now = Date.now();
  if (now > msecs) {
    msecs = now;
    seq = new DataView(random.buffer, random.byteOffset).getUint32(6) >>> 1;
  } else {
    seq = (seq + 1) >>> 0;
    if (seq === 0) msecs += 1;
  }
  return uuidv7({ random, msecs, seq });
}

function randomBytes(): Uint8Array {
  if (used === POOL) {
    randomFillSync(pool);
    used = 0;
  }
  used += RANDOM;
  return pool.subarray(used - RANDOM, used);
}
