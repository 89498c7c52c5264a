import type { Variables } from '../../../lib/settings/environment.ts';
import type { Stage } from '../stage/stage.ts';

/** A command that runs a server, once it is installed. */
export type Program = {
  readonly command: string;
  readonly options: readonly string[];
  readonly folder: string;
  readonly variables: Variables;
};

export type Target = {
  readonly name: string;
  readonly title: string;
  /** The only workloads that it can do at all; all of them without it. */
  readonly workloads?: readonly string[];
  /** The number of users in its database, if it differs from that of the others. */
  readonly users?: number;
  /** Its response is always the same, so that there is nothing to compare. */
  readonly isHollow?: boolean;
  /** Gets what it needs, whatever that takes; rejects when it cannot be had on this machine. */
  readonly install: (stage: Stage) => Promise<(database: string, port: number) => Program>;
};
