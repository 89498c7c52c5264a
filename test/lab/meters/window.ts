import { cpuOf, cpuOfFamily, cpuOfMachine, totalOf } from './cpu.ts';

/** The processes whose CPU time is counted separately. Without a server the load comes from within. */
export type Watched = {
  readonly server?: number;
  readonly postgres: number;
  /** What makes the load, and what started it. */
  readonly load: readonly number[];
};

/** CPU seconds used between two moments. */
export type Used = {
  readonly seconds: number;
  readonly server: number;
  readonly postgres: number;
  readonly load: number;
  /** What everything else on the machine used, in cores. */
  readonly others: number;
};

/** Begins to count; the function that it gives ends that. */
export function openWindow(watched: Watched): () => Used {
  const begin = read(watched);
  return () => {
    const end = read(watched);
    const used = (name: keyof typeof end) => end[name] - begin[name];
    const ours = used('server') + used('postgres') + used('load');
    return {
      seconds: used('seconds'),
      server: used('server'),
      postgres: used('postgres'),
      load: used('load'),
      others: Math.max(0, (used('machine') - ours) / used('seconds')),
    };
  };
}

function read({ server, postgres, load }: Watched) {
  const ofServer = server === undefined ? { user: 0, system: 0 } : cpuOf(server);
  const ofLoad = load.map(cpuOf).reduce((sum, used) => sum + totalOf(used), 0);
  return {
    seconds: performance.now() / 1000,
    server: totalOf(ofServer),
    postgres: cpuOfFamily(postgres),
    load: ofLoad,
    machine: cpuOfMachine(),
  };
}
