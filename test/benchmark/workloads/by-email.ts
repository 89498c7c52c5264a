import { emailOf } from '../stage/users.ts';
import { USERS, type Workload } from './workload.ts';

/** Any user by address. */
export const byEmail: Workload = {
  name: 'by-email',
  title: 'lookup by email',
  status: 200,
  async prepare(ask) {
    // A target that knows no filter gives all users.
    const { status, body } = await ask(`${USERS}?email=${encodeURIComponent(emailOf(1))}`);
    return status === 200 && JSON.parse(body).length === 1 ? 'has it' : undefined;
  },
  requests({ anyUser, token }) {
    return () => ({
      method: 'GET',
      target: `${USERS}?email=${encodeURIComponent(emailOf(anyUser()))}`,
      token,
    });
  },
};
