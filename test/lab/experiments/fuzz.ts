import { become } from '../../stage/run-chosen.ts';
import { defineExperiment } from '../experiment.ts';

export const experiment = defineExperiment({
  name: 'fuzz',
  promise:
    'Requests made from infra/openapi.json, good and bad, alone and in sequences, are answered as the document says.',
  takes: '10 minutes, or less with --cases 10000; --seed <n> repeats a run, and --only <title> a part of it',
  run: ({ words }) => become('exec node test/fuzz/lab.ts', words),
});
