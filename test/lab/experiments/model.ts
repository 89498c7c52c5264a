import { become } from '../../stage/run-chosen.ts';
import { defineExperiment } from '../experiment.ts';

export const experiment = defineExperiment({
  name: 'model',
  promise: 'The models of the feed and of the keys hold, find planted faults, and accept real histories.',
  takes: 'a minute for small, faults, windows and histories each; large and all-histories an hour or more',
  needs: 'spin and gcc',
  run: ({ words }) => become('exec node test/model/model.ts', words),
});
