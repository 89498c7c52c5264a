import { become } from '../../stage/run-chosen.ts';
import { defineExperiment } from '../experiment.ts';

export const experiment = defineExperiment({
  name: 'overload',
  promise: 'With up to 10 times its capacity, the service continues to serve at 80 % of its peak or more.',
  takes: '10 minutes',
  needs: 'Linux and a quiet machine',
  run: ({ words }) => become('exec node test/overload/overload.ts', words),
});
