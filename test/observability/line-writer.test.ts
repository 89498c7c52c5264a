import { mkdtempDisposableSync, openSync, readFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { LineWriter } from '../../lib/observability/line-writer.ts';
import { createPipe } from '../stage/pipe.ts';
import { BUSY_S } from '../stage/until.ts';

let pipe: ReturnType<typeof createPipe>;
let writing: Socket;
let lines: LineWriter;
let resumed: number[];

beforeEach(() => {
  pipe = createPipe();
  // Node sets the pipe to non-blocking, as it does with standard output, and closes it at the end.
  writing = new Socket({ fd: pipe.writeEnd, readable: false });
  resumed = [];
  lines = Object.assign(new LineWriter(pipe.writeEnd), { onResumed: (count: number) => resumed.push(count) });
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

test('each time that the reader recovers, the number of lines dropped since the last time is reported', async () => {
  for (const _time of ['first', 'second']) {
    writeLines(2 * MANY);
    await endWhileReading();
  }

  const [first, second] = resumed;
  expect(resumed).toHaveLength(2);
  expect(first).toBeGreaterThan(MANY / 2);
  expect(Number(first) + Number(second)).toBe(lines.dropped);
});

test('a file gets every line of a pass of the event loop, however many there are', () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'user-management-lines-'));
  const file = join(folder.path, 'log');
  lines = new LineWriter(openSync(file, 'a'));
  writeLines(5 * MANY);
  lines.flush();
  const text = readFileSync(file, 'utf8');

  expect(text.split('\n').map(summaryOf)).toEqual([...inOrder(5 * MANY), END]);
});

test('standard output has one listener for errors with any number of writers', () => {
  const listeners = ['first', 'second'].map(() => {
    new LineWriter();
    return process.stdout.listenerCount('error');
  });

  expect(listeners[1]).toBe(listeners[0]);
});

test('a stalled reader causes few attempts to write', async () => {
  writeLines(MANY);
  await sleep(200);
  const begun = process.cpuUsage();
  await sleep(1000);
  const { user, system } = process.cpuUsage(begun);

  expect((user + system) / 1_000_000).toBeLessThan(0.5);
});

test('at the end a slow reader gets every line', async () => {
  writeLines(MANY);
  await endWhileReading({ every: 20 });

  expect(read()).toEqual([...inOrder(MANY), END]);
});

test('the end is in time with any slow reader', async () => {
  writeLines(MANY);
  await endWhileReading({ every: 100, seconds: 0.5 });

  expect(read().length).toBeLessThan(MANY);
});

test.each([300, 3000])(
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
