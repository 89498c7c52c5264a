import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { residentMemory } from '../lab/meters/memory.ts';
import { fromNpm } from '../lab/stage/packages.ts';
import type { ServiceUnderFault } from '../lab/stage/stage.ts';
import { START_OPTIONS } from '../stage/start-command.ts';
import { until } from '../stage/until.ts';

const GAUGE = join(import.meta.dirname, 'gauge.mjs');
const BYTES_PER_MB = 1024 * 1024;

/** Calls functions of the C library. */
const KOFFI = 'koffi@3.3.4';

/** How a host is started so that `watch` can ask it: with V8's flags as in `npm start`, and the gauge, which is installed. */
export async function watchable() {
  const koffi = join(await fromNpm([KOFFI]), 'node_modules/koffi');
  const folder = mkdtempSync(join(tmpdir(), 'user-management-soak-'));
  const file = join(folder, 'gauge');
  const flags = START_OPTIONS.join(' ');
  return {
    file,
    flags,
    variables: { SOAK_GAUGE: file, SOAK_KOFFI: koffi },
    runBy: [
      'sh',
      '-c',
      `node=$1; shift; exec "$node" ${flags} --expose-gc --expose-internals --import ${GAUGE} "$@"`,
      'sh',
    ],
    remove: () => rmSync(folder, { recursive: true }),
  };
}

type Gauge = Record<'readings' | 'timers' | 'sockets' | 'free' | 'heapUsed' | 'external', number> &
  Record<'compiledUsed' | 'compiledResident', number>;

/** What a host holds when its garbage has been collected. */
export type Settled = Awaited<ReturnType<ReturnType<typeof watch>>>;

/** Reads what a host that was started so holds. A leak stays, because a collection frees nothing that is reachable. */
export function watch({ processId, signal }: Pick<ServiceUnderFault, 'processId' | 'signal'>, file: string) {
  let readings = 0;

  return async () => {
    readings += 1;
    const withGarbage = residentMemory(processId);
    signal('SIGUSR2');
    const gauge = await until(
      'the gauge is written',
      () => {
        const read: Gauge | false = existsSync(file) && JSON.parse(readFileSync(file, 'utf8'));
        return read && read.readings >= readings && read;
      },
      { seconds: 20 },
    );
    const { heapUsed, external, compiledUsed, timers, sockets } = gauge;
    const compiled = gauge.compiledResident / BYTES_PER_MB;
    const kept = (gauge.free - absentFromArenas(processId)) / BYTES_PER_MB;
    return {
      /** Resident without compiled code and what the C library keeps; in megabytes, as everything that follows. */
      memory: residentMemory(processId) - kept - compiled,
      /** Resident before the collection. */
      withGarbage,
      /** Resident, and not in use: what the C library keeps for later. */
      kept,
      /** Resident of what V8 has compiled: machine code, bytecode, and what describes either. */
      compiled,
      /** On the heap of V8 and beside it, without compiled code. */
      live: (heapUsed + external - compiledUsed) / BYTES_PER_MB,
      descriptors: readdirSync(`/proc/${processId}/fd`).length,
      threads: readdirSync(`/proc/${processId}/task`).length,
      timers,
      /** To PostgreSQL, and from callers. */
      sockets,
    };
  };
}

/** What the C library's heaps may take at most, and lie at multiples of, but for the one at the program's break. */
const HEAP_BYTES = 64 * 1024 * 1024;

type Mapping = {
  readonly from: number;
  readonly to: number;
  readonly access: string;
  readonly name: string;
  readonly resident: number;
};

/**
 * What is not resident of the C library's (glibc's) heaps, because it was not used yet or has been given back; in bytes, from
 * /proc. What the first heap gets from elsewhere, when something lies behind the program's break, is not among it: that is
 * resident as a whole, and never given back.
 */
function absentFromArenas(processId: number): number {
  const mappings = mappingsIn(readFileSync(`/proc/${processId}/smaps`, 'utf8'));
  return mappings
    .filter((mapping, index) => mapping.name === '[heap]' || isHeap(mapping, mappings[index + 1]))
    .reduce((sum, { from, to, resident }) => sum + (to - from - resident), 0);
}

/** One that begins at such a multiple, and behind which the rest of it is reserved. */
function isHeap({ from, name }: Mapping, next: Mapping | undefined): boolean {
  return name === '' && from % HEAP_BYTES === 0 && next?.access === '---p' && next.to === from + HEAP_BYTES;
}

function mappingsIn(smaps: string): readonly Mapping[] {
  return smaps.split(/\n(?=[\da-f]+-[\da-f]+ )/).map((text) => {
    const [range = '', access = '', , , , name = ''] = text.split('\n', 1)[0]?.split(/\s+/) ?? [];
    const [from = 0, to = 0] = range.split('-').map((address) => Number.parseInt(address, 16));
    return { from, to, access, name, resident: Number(/^Rss:\s+(\d+)/m.exec(text)?.[1]) * 1024 };
  });
}
