import { spreadOf } from '../../lab/meters/percentile.ts';
import type { Results, Run, Start } from '../rounds.ts';

/** The rounds of one workload against one target; ratios are multiples of the reference in the same round. */
export type Row = ReturnType<typeof rowsOf>[number];

/** The starts of one target, and the most memory that it held in each round. */
export type StartRow = ReturnType<typeof startRowsOf>[number];

const bothOf = ({ server, postgres }: Run) => (server ?? 0) + postgres;

/** A row a workload and target, in the order in which they were run; ratios to `reference`, round by round. */
export function rowsOf({ runs }: Results, reference: string) {
  const pairs = new Map(runs.map((run) => [`${run.workload} ${run.target}`, run]));
  return [...pairs.values()].map(({ workload, target }) => {
    const own = runs.filter((run) => run.workload === workload && run.target === target);
    const ratios = (figure: (run: Run) => number | null) =>
      spreadOf(
        own.map((run) => {
          const of = runs.find(
            (other) => other.round === run.round && other.workload === workload && other.target === reference,
          );
          const [mine, theirs] = [figure(run), of ? figure(of) : null];
          return mine !== null && theirs ? mine / theirs : null;
        }),
      );
    const spread = (figure: (run: Run) => number | null) => spreadOf(own.map(figure));
    return {
      target,
      workload,
      rounds: own.length,
      server: spread(({ server }) => server),
      postgres: spread(({ postgres }) => postgres),
      both: spread(bothOf),
      requestsPerSecond: spread(({ requestsPerSecond }) => requestsPerSecond),
      p50: spread(({ p50 }) => p50),
      p99: spread(({ p99 }) => p99),
      memory: spread(({ memory }) => memory),
      serverRatio: ratios(({ server }) => server),
      bothRatio: ratios(bothOf),
      load: spread(({ load }) => load),
      others: spread(({ others }) => others),
    };
  });
}

/** A row a target. */
export function startRowsOf({ starts, runs }: Results) {
  return [...new Set(starts.map(({ target }) => target))].map((target) => {
    const own = starts.filter((start) => start.target === target);
    const spread = (figure: (start: Start) => number) => spreadOf(own.map(figure));
    const loads = runs.filter((run) => run.target === target && run.memory !== null);
    const rounds = Map.groupBy(loads, ({ round }) => round).values();
    return {
      target,
      milliseconds: spread(({ milliseconds }) => milliseconds),
      memoryAtRest: spread(({ memoryAtRest }) => memoryAtRest),
      memoryUnderLoad: spreadOf(
        [...rounds].map((round) => Math.max(...round.map(({ memory }) => memory ?? 0))),
      ),
    };
  });
}
