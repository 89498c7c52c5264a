import { KeySet } from '../../lib/auth/key-set.ts';
import { TokenVerifier } from '../../lib/auth/token-verifier.ts';
import { Problem } from '../../lib/http/problem.ts';
import type { Settings } from '../../lib/settings/settings.ts';
import type { Ending } from './ending.ts';
import { startIssuer } from './tokens.ts';
import { timed, until } from './until.ts';

type Options = {
  /** Milliseconds between two refreshes in the background. */
  readonly refreshEvery?: number;
  readonly algorithms?: Settings['oauth']['algorithms'];
  /** Whether only `pass` moves the clock, however long the test takes. */
  readonly isClockStopped?: boolean;
};

/**
 * A verifier of tokens with a key set and an issuer of its own, until the test ends. It fetches nothing before its
 * first use.
 */
export async function startVerifier(
  { onTestFinished }: Ending,
  { refreshEvery = 300_000, algorithms = ['RS256', 'ES256', 'EdDSA'], isClockStopped }: Options = {},
) {
  const begun = Date.now();
  let passed = 0;
  const issuer = await startIssuer();
  const settings: Settings['oauth'] = {
    jwksUri: issuer.jwksUri,
    issuer: issuer.issuer,
    audience: ['another', issuer.audience],
    rolesClaim: 'roles',
    deleteRole: 'users.write',
    algorithms,
    clockTolerance: 0,
    jwksRefresh: refreshEvery / 1000,
  };
  const now = () => (isClockStopped ? begun : Date.now()) + passed;
  const keySet = new KeySet(settings, () => {}, now);
  const tokenVerifier = new TokenVerifier(settings, keySet);
  onTestFinished(async () => {
    keySet.stop();
    await issuer.stop();
  });

  /** 200 for an accepted token, otherwise the status of the refusal. */
  async function judge(token: string): Promise<number> {
    try {
      await tokenVerifier.verify(token);
      return 200;
    } catch (refusal) {
      if (refusal instanceof Problem) return refusal.status;
      throw refusal;
    }
  }

  return {
    issuer,
    keySet,
    lookups: tokenVerifier.lookups,
    judge,
    /** Repeats until the token has this verdict. Resolves with the milliseconds that it took. */
    async untilJudged(token: string, status: number): Promise<number> {
      const isJudged = async () => (await judge(token)) === status;
      return (await timed(until(`it is ${status}`, isJudged, { seconds: 15 }))).milliseconds;
    },
    /** Moves the clock of the key set. */
    pass(seconds: number) {
      passed += 1000 * seconds;
    },
  };
}
