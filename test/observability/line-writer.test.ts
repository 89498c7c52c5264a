import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { LineWriter } from '../../lib/observability/line-writer.ts';
import { createPipe } from '../stage/pipe.ts';
import { BUSY_S, until } from '../stage/until.ts';

let pipe: ReturnType<typeof createPipe>;
let writing: Socket;
let lines: LineWriter;

beforeEach(() => {
  pipe = createPipe();
  // Node sets the pipe to non-blocking, as it does with standard output, and closes it at the end.
  writing = new Socket({ fd: pipe.writeEnd, readable: false });
  const onResumed = (count: number) => lines.write(`${count} dropped`);
  lines = new LineWriter({ descriptor: pipe.writeEnd, onResumed });
});

afterEach(async () => {
  // Lines that are still queued would be written to the next pipe, which has the same descriptor.
  await endWhileReading();
  writing.destroy();
  pipe.remove();
});

/** More bytes than a pipe holds, and fewer than the queue. */
const MANY = 1000;
const LENGTH = 1000;

/** Writes this many lines, numbered from `first`. */
function writeLines(count: number, { first = 0, length = LENGTH } = {}): void {
  for (let index = first; index < first + count; index += 1) lines.write(`${index} `.padEnd(length, 'x'));
}

async function endWhileReading({ every = 5, seconds = 10 } = {}): Promise<void> {
  const reading = setInterval(() => pipe.read(), every);
  await lines.end(seconds);
  clearInterval(reading);
}

/** The beginning and the length of each line, which keep the output of a failure short. */
const summaryOf = (line: string) => `${line.replace(/x+$/, '')}(${line.length})`;

/** The lines that have been read, with the part of a last line. */
const read = () => pipe.read().split('\n').map(summaryOf);

const END = summaryOf('');
const inOrder = (count: number, length = LENGTH) =>
  Array.from({ length: count }, (_, index) => `${index} (${length})`);

test('a slow reader gets every line', async () => {
  const [bursts, burst] = [40, 128];
  for (let first = 0; first < bursts * burst; first += burst) {
    writeLines(burst, { first });
    for (let reads = 0; reads < 10; reads += 1) {
      await sleep(2);
      pipe.read();
    }
  }
  await endWhileReading();

  expect(lines.dropped).toBe(0);
  expect(read()).toEqual([...inOrder(bursts * burst), END]);
});

test('a stalled reader causes few attempts to write', async () => {
  writeLines(MANY);
  await sleep(200);
  const begun = process.cpuUsage();
  await sleep(1000);
  const { user, system } = process.cpuUsage(begun);

  expect((user + system) / 1_000_000).toBeLessThan(0.5);
});

test('a reader that recovers gets the number of dropped lines once', async () => {
  writeLines(2 * MANY);
  lines.flush();
  const dropped = lines.dropped;
  const kept = 2 * MANY - dropped;
  const report = `${dropped} dropped(${`${dropped} dropped`.length})`;
  await until('their number', () => read().includes(report));
  lines.write('later');
  await endWhileReading();

  expect(dropped).toBeGreaterThan(MANY / 2);
  expect(read()).toEqual([...inOrder(kept), report, summaryOf('later'), END]);
});

test('at the end the reader gets every line', async () => {
  writeLines(MANY);
  await endWhileReading({ every: 20 });

  expect(read()).toEqual([...inOrder(MANY), END]);
});

test('at the end the reader also gets the number of dropped lines', async () => {
  writeLines(2 * MANY);
  await endWhileReading();
  const dropped = lines.dropped;

  expect(dropped).toBeGreaterThan(MANY / 2);
  expect(read().slice(-2)).toEqual([summaryOf(`${dropped} dropped`), END]);
});

test('a file gets every line of any number', () => {
  const file = join(mkdtempSync(join(tmpdir(), 'user-management-lines-')), 'log');
  const descriptor = openSync(file, 'a');
  const toFile = new LineWriter({ descriptor });
  const line = 'x'.repeat(LENGTH);
  for (let index = 0; index < 5 * MANY; index += 1) toFile.write(line);
  toFile.flush();
  closeSync(descriptor);
  const text = readFileSync(file, 'utf8');
  rmSync(dirname(file), { recursive: true });

  expect(toFile.dropped).toBe(0);
  expect(text === `${line}\n`.repeat(5 * MANY)).toBe(true);
});

test('lines longer than the buffer of a pipe arrive complete', async () => {
  writeLines(8, { length: 100_000 });
  await endWhileReading();

  expect(read()).toEqual([...inOrder(8, 100_000), END]);
});

test.each([300, 1000, 3000])(
  'at the end a stalled reader is left between two lines of %i bytes each',
  async (length) => {
    writeLines(300, { length });
    const begun = performance.now();
    await lines.end(10);

    expect(performance.now() - begun).toBeLessThan(3000 + 1000 * BUSY_S);
    const taken = read();
    expect(taken.length).toBeGreaterThan(10);
    expect(taken.length).toBeLessThan(300);
    expect(taken).toEqual([...inOrder(taken.length - 1, length), END]);
  },
);

test('standard output has one listener for errors with any number of writers', () => {
  new LineWriter();
  const listeners = process.stdout.listenerCount('error');
  for (const _writer of ['other', 'third']) new LineWriter();

  expect(process.stdout.listenerCount('error')).toBe(listeners);
});

test('the end is in time with any slow reader', async () => {
  writeLines(MANY);
  const begun = performance.now();
  await endWhileReading({ every: 100, seconds: 0.5 });

  expect(performance.now() - begun).toBeGreaterThan(450);
  expect(read().length).toBeLessThan(MANY);
});
