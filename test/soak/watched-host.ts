import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fromNpm } from '../lab/stage/packages.ts';
import type { ServiceUnderFault } from '../lab/stage/stage.ts';
import { START_OPTIONS } from '../stage/start-command.ts';
import { until } from '../stage/until.ts';

const GAUGE = join(import.meta.dirname, 'gauge.mjs');
const BYTES_PER_MB = 1024 * 1024;

/** Calls functions of the C library. */
const KOFFI = 'koffi@3.3.4';

/** What the process holds while it goes on, as the system reports it; memory in megabytes. */
type Held = { readonly memory: number; readonly descriptors: number; readonly threads: number };

/**
 * What it holds when its garbage has been collected: objects on the heap, by what they are; memory without compiled code and
 * what the C library keeps.
 */
export type Settled = Held & {
  /** Resident before the collection; in megabytes. */
  readonly withGarbage: number;
  /** On the heap of V8 and beside it, without compiled code; in megabytes. */
  readonly live: number;
  /** Resident of what V8 has compiled: machine code, bytecode, and what describes either; in megabytes. */
  readonly compiled: number;
  /** Resident, and not in use: what the C library keeps for the next who asks; in megabytes. */
  readonly kept: number;
  readonly timers: number;
  /** Those that are open: to PostgreSQL, and from callers. */
  readonly sockets: number;
};

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

/** What a host that was started so holds. */
export function watch({ processId, signal }: Pick<ServiceUnderFault, 'processId' | 'signal'>, file: string) {
  let readings = 0;

  function held(): Held {
    const status = readFileSync(`/proc/${processId}/status`, 'utf8');
    const figure = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1]);
    return {
      memory: figure('VmRSS') / 1024,
      descriptors: readdirSync(`/proc/${processId}/fd`).length,
      threads: figure('Threads'),
    };
  }

  return {
    /** Has the garbage collected first, which frees nothing that is still reachable: a leak stays. */
    async settled(): Promise<Settled> {
      readings += 1;
      const withGarbage = held().memory;
      signal('SIGUSR2');
      const isWritten = () => {
        const read = existsSync(file) && JSON.parse(readFileSync(file, 'utf8'));
        return read && read.readings >= readings && read;
      };
      const reading = await until('the gauge is written', isWritten, { seconds: 20 });
      const { heapUsed, external, compiledUsed, timers, resources } = reading;
      const compiled = reading.compiledResident / BYTES_PER_MB;
      const kept = (reading.free - absentFromArenas(processId)) / BYTES_PER_MB;
      const { memory, ...others } = held();
      return {
        ...others,
        memory: memory - kept - compiled,
        withGarbage,
        kept,
        compiled,
        live: (heapUsed + external - compiledUsed) / BYTES_PER_MB,
        timers,
        sockets: resources.filter((name: string) => name === 'TCPSocketWrap').length,
      };
    },
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
