// Loaded into the host (`node --import`): at SIGUSR2 it collects the garbage, and writes down what is left. The service
// has no part in it, and needs no change for it.
import { renameSync, writeFileSync } from 'node:fs';
import { queryObjects } from 'node:v8';

const { SOAK_GAUGE: file } = process.env;
const timer = setTimeout(() => {}, 0);
const Timeout = timer.constructor;
clearTimeout(timer);
let readings = 0;

process.on('SIGUSR2', () => {
  readings += 1;
  // To count the objects of a kind V8 collects all garbage first. Timers that keep no process alive count, too.
  const timers = queryObjects(Timeout);
  const { heapUsed, external } = process.memoryUsage();
  const resources = process.getActiveResourcesInfo();
  writeFileSync(`${file}.draft`, JSON.stringify({ readings, timers, heapUsed, external, resources }));
  renameSync(`${file}.draft`, file);
});
