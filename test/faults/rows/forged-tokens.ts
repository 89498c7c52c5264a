import { createCaller } from '../../lab/load/caller.ts';
import { startIssuer } from '../../stage/tokens.ts';
import { FORGERIES, goodTokenParts } from '../forgeries.ts';
import type { Row } from '../run-row.ts';

const CALLERS = 32;

export const forgedTokens: Row = {
  name: 'forged-tokens',
  promise:
    'Of forged tokens of every published class none is accepted, none has keys fetched from where it says, and beside each class the good one is accepted.',
  trials: 20_000,
  brief: 2000,
  async run({ startService, issuer, trials, claim, random, defer, trySideBySide }) {
    const service = await startService();
    const elsewhere = await startIssuer();
    defer(elsewhere.stop);
    const parts = goodTokenParts(issuer, elsewhere.jwksUri);
    const classes = Object.entries(FORGERIES);
    const fetches = issuer.fetches;
    const begun = performance.now();
    for (const [name, forge] of classes) {
      let token = '';
      const forger = createCaller({ ...service, token: async () => token, connections: CALLERS });
      const attempt = async () => {
        const tampered = forge(parts, random);
        token = tampered;
        const { status } = await forger.read('?limit=1');
        claim(`${name} is refused`, status === 401 || status === 431, { status, tampered });
      };
      await trySideBySide(CALLERS, attempt, Math.ceil(trials / classes.length));
      forger.close();
      const good = service.caller();
      claim(`beside ${name} a good token is accepted`, (await good.read('?limit=1')).status === 200);
      good.close();
    }
    const seconds = (performance.now() - begun) / 1000;
    claim('the keys are fetched now and then alone', issuer.fetches - fetches <= seconds / 2 + 2);
    claim('no key is fetched from elsewhere', elsewhere.fetches === 0, elsewhere.fetches);
  },
};
