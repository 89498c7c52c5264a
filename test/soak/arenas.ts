import { readFileSync } from 'node:fs';

/** What the C library's heaps may take at most, and lie at multiples of, but for the one at the program's break. */
const HEAP = 64 * 1024 * 1024;

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
export function absentFromArenas(processId: number): number {
  const mappings = mappingsIn(readFileSync(`/proc/${processId}/smaps`, 'utf8'));
  return mappings
    .filter((mapping, index) => mapping.name === '[heap]' || isHeap(mapping, mappings[index + 1]))
    .reduce((sum, { from, to, resident }) => sum + (to - from - resident), 0);
}

/** One that begins at such a multiple, and behind which the rest of it is reserved. */
function isHeap({ from, name }: Mapping, next: Mapping | undefined): boolean {
  return name === '' && from % HEAP === 0 && next?.access === '---p' && next.to === from + HEAP;
}

function mappingsIn(smaps: string): readonly Mapping[] {
  return smaps.split(/\n(?=[\da-f]+-[\da-f]+ )/).map((text) => {
    const [range = '', access = '', , , , name = ''] = text.split('\n', 1)[0]?.split(/\s+/) ?? [];
    const [from = 0, to = 0] = range.split('-').map((address) => Number.parseInt(address, 16));
    return { from, to, access, name, resident: Number(/^Rss:\s+(\d+)/m.exec(text)?.[1]) * 1024 };
  });
}
