// Loaded into the host (`node --import`): at SIGUSR2 it collects the garbage, and writes down what is left. The service
// has no part in it, and needs no change for it.
import { renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const { SOAK_GAUGE: file, SOAK_KOFFI: koffiFolder } = process.env;

// Node tells only of timers that keep a process alive; those that do not are in its own lists (`--expose-internals`). To
// count them as objects (`v8.queryObjects`) stops a process for seconds.
const { timerListMap } = createRequire(import.meta.url)('internal/timers');

// What the C library tells of its heaps (mallinfo2(3), of all of them in glibc): `uordblks` is what is in use.
const koffi = createRequire(import.meta.url)(koffiFolder);
const FIELDS = 'arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost'.split(' ');
const Mallinfo2 = koffi.struct(Object.fromEntries(FIELDS.map((name) => [name, 'size_t'])));
const mallinfo2 = koffi.load('libc.so.6').func('mallinfo2', Mallinfo2, []);

let readings = 0;

process.on('SIGUSR2', () => {
  readings += 1;
  // All that can be given back to the system is (`--expose-gc`): a third of a second, and the same size each time.
  globalThis.gc({ type: 'major', flavor: 'last-resort' });
  const { heapUsed, external } = process.memoryUsage();
  const timers = Object.values(timerListMap).reduce((sum, list) => sum + lengthOf(list), 0);
  const resources = process.getActiveResourcesInfo();
  const { uordblks: inUse } = mallinfo2();
  writeFileSync(`${file}.draft`, JSON.stringify({ readings, timers, heapUsed, external, inUse, resources }));
  renameSync(`${file}.draft`, file);
});

function lengthOf(list) {
  let length = 0;
  for (let timer = list._idlePrev; timer !== list; timer = timer._idlePrev) length += 1;
  return length;
}
