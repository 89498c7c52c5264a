import type { VerifiedToken } from '../../lib/auth/token-verifier.ts';

/** The `sub` of a verified token; undefined for all requests without one together. */
export type Caller = string | undefined;

/** The caller last verified on a connection. */
export class CallerOfConnection {
  #subject: string | undefined;
  /** Whether a token that is not verified yet may count as this caller. */
  #mayRenew = false;

  /**
   * The caller whose turn a request takes. A caller that renews its token keeps its turn: after each request with a
   * verified token, one token that is not verified yet counts as the caller of its connection.
   */
  identify(token: string | undefined, verified: VerifiedToken | undefined): Caller {
    if (verified) {
      this.#subject = verified.principal.subject;
      this.#mayRenew = true;
      return this.#subject;
    }
    if (!this.#mayRenew || token === undefined) return undefined;
    this.#mayRenew = false;
    return this.#subject;
  }
}
