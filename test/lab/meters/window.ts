import { cpuOf, cpuOfFamily, cpuOfMachine } from './cpu.ts';

/** The processes whose CPU time is counted separately. */
export type Watched = {
  readonly server: number;
  readonly postgres: number;
  /** What makes the load, and what started it. */
  readonly load: readonly number[];
};

/** Begins to count CPU seconds. The function that it returns ends that, and returns those that were used. */
export function openWindow(watched: Watched) {
  const begin = read(watched);
  return () => {
    const end = read(watched);
    const used = (name: keyof typeof end) => end[name] - begin[name];
    const [seconds, server, postgres, load] = [
      used('seconds'),
      used('server'),
      used('postgres'),
      used('load'),
    ];
    /** What everything else on the machine used, in cores. */
    const others = Math.max(0, (used('machine') - server - postgres - load) / seconds);
    return { seconds, server, postgres, load, others };
  };
}

const read = ({ server, postgres, load }: Watched) => ({
  seconds: performance.now() / 1000,
  server: cpuOf(server),
  postgres: cpuOfFamily(postgres),
  load: load.reduce((sum, processId) => sum + cpuOf(processId), 0),
  machine: cpuOfMachine(),
});
