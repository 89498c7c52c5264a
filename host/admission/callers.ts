import type { Socket } from 'node:net';
import type { VerifiedToken } from '../../lib/auth/token-verifier.ts';

/** The `sub` of a verified token; undefined for all requests without one together. */
export type Caller = string | undefined;

/** The caller last verified on a connection, and whether a token that is not verified yet may count as that caller. */
type LastCaller = { readonly subject: string; mayRenew: boolean };

/** The callers of the connections of one instance. */
export class Callers {
  readonly #last = new WeakMap<Socket, LastCaller>();

  /**
   * The caller whose turn a request takes. A caller that renews its token keeps its turn: after each request with a
   * verified token, one token that is not verified yet counts as the caller of its connection.
   */
  identify(socket: Socket, token: string | undefined, verified: VerifiedToken | undefined): Caller {
    const last = this.#last.get(socket);
    if (verified) {
      const { subject } = verified.principal;
      if (last?.subject === subject) last.mayRenew = true;
      else this.#last.set(socket, { subject, mayRenew: true });
      return subject;
    }
    if (!last?.mayRenew || token === undefined) return undefined;
    last.mayRenew = false;
    return last.subject;
  }
}
