// npm run lab -- soak: an hour of mixed load, with a fault every half a minute. See README.md in this folder.
import { randomInt } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { abandonSoak, runSoak } from '../../soak/run.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(randomInt(1_000_000)) },
    /** Seconds from one fault to the next. */
    every: { type: 'string', default: '30' },
    /** The file of the plot. */
    svg: { type: 'string', default: join(tmpdir(), 'user-management-soak.svg') },
    /** Only these faults. */
    fault: { type: 'string', multiple: true },
  },
});
const [minutes, seed, every] = [values.minutes, values.seed, values.every].map(Number) as [
  number,
  number,
  number,
];
if (![minutes, seed, every].every(Number.isFinite))
  throw new Error('--minutes, --seed and --every take a number');

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void abandonSoak().finally(() => process.exit(1)));
}

const print = (text: string) => process.stdout.write(`${text}\n`);

const { findings, table, plot } = await runSoak({ minutes, seed, every, only: values.fault }, (line) =>
  print(JSON.stringify(line)),
);
await writeFile(values.svg, plot);
print(`\n${table}\n\nThe plot is in ${values.svg}.`);
for (const { sentence, seen, holds } of findings) if (!holds) print(`failed: ${sentence}: ${seen}`);
const passed = findings.filter(({ holds }) => holds).length;
print(`seed ${seed}`);
print(`${passed} passed, ${findings.length - passed} failed`);
process.exit(passed === findings.length ? 0 : 1);
