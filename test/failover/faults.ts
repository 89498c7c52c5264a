import { until } from '../stage/until.ts';
import type { Cluster, Writer } from './cluster.ts';

export type ClusterFault = {
  readonly name: string;
  bringAbout(primary: Writer, cluster: Cluster): Promise<unknown>;
  /** What brings the node back, once another has taken over. */
  undo?(primary: Writer): unknown;
};

/** All that a failover can come of, and a restart, after which the same one is the primary. */
export const clusterFaults: readonly ClusterFault[] = [
  { name: 'switchover', bringAbout: switchOver },
  { name: 'restart', bringAbout: async ({ node }) => void node.ask('restart', {}).catch(() => {}) },
  { name: 'kill', bringAbout: ({ node }) => node.kill(), undo: ({ node }) => node.start() },
  { name: 'freeze', bringAbout: async ({ node }) => node.freeze(), undo: ({ node }) => node.thaw() },
];

/** Patroni answers 503 while no standby has caught up, after which it may have switched over all the same. */
async function switchOver({ node }: Writer, cluster: Cluster): Promise<unknown> {
  const asked = () => node.ask('switchover', { leader: node.name }).then(() => true);
  const isDone = async () => (await cluster.primary()).node !== node;
  return until('Patroni switches over', () => asked().catch(() => isDone().catch(() => false)), {
    seconds: 60,
    every: 500,
  });
}
