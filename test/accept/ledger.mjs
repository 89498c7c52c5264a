import { randomBytes } from 'node:crypto';
import { USERS } from './deployment.mjs';

/**
 * The email addresses of this run. After any responses, the users with these addresses are deleted at the end. No other
 * user is ever changed or deleted.
 */
export function createLedger(send) {
  const run = randomBytes(5).toString('hex');
  const addresses = [];
  return {
    /** An unused address. `form` gives it another form. */
    address(form = (unique) => `${unique}@example.com`) {
      const address = form(`accept-${run}-${addresses.length}`);
      addresses.push(address);
      return address;
    },
    async cleanUp({ report }) {
      const left = [];
      for (const address of addresses) if (!(await remove(address))) left.push(`left: ${address}`);
      if (left.length === 0) report.held('nothing is left of this run');
      else report.failed('nothing is left of this run', left);
    },
  };

  /** Whether no user has this address any more. Repeated after each deletion. */
  async function remove(address) {
    for (let attempts = 0; attempts < 3; attempts += 1) {
      try {
        const { status, body } = await send('GET', `${USERS}?email=${encodeURIComponent(address)}`);
        if (status === 422) return true;
        // A service that lists other users than requested must not lose them.
        const own =
          status === 200 && body.filter(({ email }) => email?.toLowerCase() === address.toLowerCase());
        if (own?.length === 0) return true;
        for (const { id } of own) await send('DELETE', USERS + id, { headers: { 'if-match': '*' } });
      } catch {}
    }
    return false;
  }
}
