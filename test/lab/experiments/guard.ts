import { become } from '../../stage/run-chosen.ts';
import { defineExperiment } from '../experiment.ts';

export const experiment = defineExperiment({
  promise:
    'Counts what each kind of request costs, and writes it to test/benchmark/guard/figures.json. npm run suite -- project refuses 10 % more.',
  takes: 'half a minute',
  run: ({ words }) => become('GUARD_WRITES=true exec vitest run --mode project test/benchmark/guard', words),
});
