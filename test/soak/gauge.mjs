// Loaded into the host (`node --import`): at SIGUSR2 it collects the garbage, and writes down what is left. The service
// has no part in it, and needs no change for it.
import { renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { getHeapSpaceStatistics } from 'node:v8';

const { SOAK_GAUGE: file, SOAK_KOFFI: koffiFolder } = process.env;

// Node reports only timers that keep a process alive; those that do not are in its own lists (`--expose-internals`). Counting
// them as objects (`v8.queryObjects`) stops a process with a heap of 40 MB for one to three seconds.
const { timerListMap } = createRequire(import.meta.url)('internal/timers');

// What the C library reports about its heaps (mallinfo2(3), of all of them in glibc): `fordblks` is what is free.
const koffi = createRequire(import.meta.url)(koffiFolder);
const FIELDS = 'arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost'.split(' ');
const Mallinfo2 = koffi.struct(Object.fromEntries(FIELDS.map((name) => [name, 'size_t'])));
const mallinfo2 = koffi.load('libc.so.6').func('mallinfo2', Mallinfo2, []);

// Where V8 keeps machine code, and bytecode and what describes either.
const COMPILED = /^(code|trusted)_/;

let readings = 0;

process.on('SIGUSR2', () => {
  readings += 1;
  // All that can be given back to the system is (`--expose-gc`): a third of a second, and the same size each time.
  globalThis.gc({ type: 'major', flavor: 'last-resort' });
  const { heapUsed, external } = process.memoryUsage();
  const timers = sum(Object.values(timerListMap).map(lengthOf));
  const sockets = process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
  const { fordblks: free } = mallinfo2();
  const compiled = getHeapSpaceStatistics().filter(({ space_name: name }) => COMPILED.test(name));
  const reading = {
    readings,
    timers,
    sockets,
    free,
    heapUsed,
    external,
    compiledUsed: sum(compiled.map(({ space_used_size: size }) => size)),
    compiledResident: sum(compiled.map(({ physical_space_size: size }) => size)),
  };
  writeFileSync(`${file}.draft`, JSON.stringify(reading));
  renameSync(`${file}.draft`, file);
});

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

function lengthOf(list) {
  let length = 0;
  for (let timer = list._idlePrev; timer !== list; timer = timer._idlePrev) length += 1;
  return length;
}
