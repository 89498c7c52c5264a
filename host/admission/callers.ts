import type { Socket } from 'node:net';
import type { VerifiedToken } from '../../lib/auth/token-verifier.ts';

/** The `sub` of a verified token; undefined for all requests without one together. */
export type Caller = string | undefined;

/** The caller last verified on a connection, and the last token that counted as that caller without being verified. */
type LastCaller = { readonly subject: string; trusted: string | undefined };

/** The callers of the connections of one instance. */
export class Callers {
  readonly #last = new WeakMap<Socket, LastCaller>();

  /**
   * The caller whose turn a request takes. A caller that renews its token keeps its turn: a token that is not verified
   * yet counts once as the caller last verified on its connection.
   */
  identify(socket: Socket, token: string | undefined, verified: VerifiedToken | undefined): Caller {
    const last = this.#last.get(socket);
    if (verified) {
      const { subject } = verified.principal;
      if (last?.subject !== subject) this.#last.set(socket, { subject, trusted: undefined });
      return subject;
    }
    if (!last || token === undefined || token === last.trusted) return undefined;
    last.trusted = token;
    return last.subject;
  }
}
