import { randomInt } from 'node:crypto';
import { become } from '../../stage/run-chosen.ts';
import { defineExperiment } from '../experiment.ts';

/** `test/fuzz/fuzz.test.ts` with more cases. A run with the same seed and number of cases has the same requests. */
export const experiment = defineExperiment({
  promise: 'Requests made from infra/openapi.json, good and bad, are answered as the document says.',
  takes: '10 minutes, or less with --cases 10000; --seed <n> repeats a run, and --only <title> a part of it',
  options: {
    cases: { type: 'string', default: '100000' },
    seed: { type: 'string', default: process.env.FUZZ_SEED || String(randomInt(1_000_000)) },
    only: { type: 'string' },
  },
  async run({ options: { cases, seed, only } }) {
    Object.assign(process.env, { FUZZ_CASES: cases, FUZZ_SEED: seed });
    return become('exec vitest run test/fuzz/fuzz.test.ts', only ? ['-t', only] : []);
  },
});
