import { parseArgs } from 'node:util';
import type { Experiment } from '../../lab/experiment.ts';
import { experiment as overloadExperiment } from '../../lab/experiments/overload.ts';
import { experiment as rollingExperiment } from '../../lab/experiments/rolling.ts';
import { openStage, type Stage, type Totals } from '../../lab/stage/stage.ts';
import type { Row } from '../run-row.ts';

/** Carries out an experiment that judges by itself. The totals that it prints last, as JSON, are those of the row. */
async function carryOut({ claim, tried, counted, defer }: Stage, { name, options, run }: Experiment) {
  let last = '';
  const isKept = await run({
    options: parseArgs({ args: [], options: options ?? {} }).values,
    words: [],
    print(line) {
      last = line;
      process.stderr.write(`${line}\n`);
    },
    defer,
    async openStage(given) {
      const stage = await openStage(given);
      defer(stage.close);
      return stage;
    },
  });
  claim(`npm run lab -- ${name} keeps its promise`, isKept);
  const totals: Totals & { readonly table_faults?: number } = JSON.parse(last);
  claim(`npm run lab -- ${name} sends requests`, totals.sent > 0, last);
  counted({ ...totals, lost: (totals.lost ?? 0) + (totals.table_faults ?? 0) });
  tried();
}

export const rollingRestarts: Row = {
  name: 'rolling-restarts',
  promise:
    'Two instances behind haproxy are restarted under callers that keep their connections: no request is lost.',
  trials: 1,
  run: (stage) => carryOut(stage, rollingExperiment),
};

export const overload: Row = {
  name: 'overload',
  promise:
    'At 1, 2, 5 and 10 times the capacity goodput is at least 80 % of the peak, /ready is 200 within a second, and all is normal two seconds after.',
  trials: 1,
  minutes: 25,
  run: (stage) => carryOut(stage, overloadExperiment as Experiment),
};
