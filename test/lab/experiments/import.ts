import { become } from '../../stage/run-chosen.ts';
import { defineExperiment } from '../experiment.ts';

export const experiment = defineExperiment({
  promise: 'Measures how fast the command users imports, exports, compares and relays, and its memory.',
  takes: 'a few minutes',
  needs: 'the npm registry, and a quiet machine',
  run: ({ words }) =>
    become('node infra/client/prepare.mjs && exec node test/client/import-export.ts', words),
});
