import { type Spread, spreadOf } from '../../lab/meters/percentile.ts';
import type { Run } from '../rounds.ts';

export type Figure = (run: Run) => number;

export type Place = { readonly target: string; readonly workload: string; readonly figure: Figure };

/** CPU seconds of server and PostgreSQL together. */
export const both: Figure = ({ server, postgres }) => server + postgres;

/** The figure over all rounds. */
export function spreadAt(runs: readonly Run[], { target, workload, figure }: Place): Spread | undefined {
  return spreadOf(runs.filter((run) => run.target === target && run.workload === workload).map(figure));
}

/** One figure compared with another of the same round, over all rounds that have both; by default their ratio. */
export function comparedAt(
  runs: readonly Run[],
  of: Place,
  to: Place,
  compare = (mine: number, theirs: number) => mine / theirs,
): Spread | undefined {
  const rounds = [...new Set(runs.map(({ round }) => round))];
  const at = (place: Place, round: number) =>
    spreadAt(
      runs.filter((run) => run.round === round),
      place,
    )?.median;
  return spreadOf(
    rounds.map((round) => {
      const [mine, theirs] = [at(of, round), at(to, round)];
      return mine === undefined || theirs === undefined ? null : compare(mine, theirs);
    }),
  );
}

/** Maximum memory of a target in each round, in megabytes. */
export function memoryUnderLoad(runs: readonly Run[], target: string): Spread | undefined {
  const own = runs.filter((run) => run.target === target);
  const rounds = Map.groupBy(own, ({ round }) => round).values();
  return spreadOf([...rounds].map((round) => Math.max(...round.map(({ memory }) => memory))));
}
