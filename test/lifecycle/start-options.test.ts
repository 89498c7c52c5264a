import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { START_OPTIONS, START_VARIABLES } from '../stage/start-command.ts';

test('the image starts the host with the options of Node.js that npm start gives it', () => {
  const lines = readFileSync('Dockerfile', 'utf8').match(/^CMD .+$/gm) ?? [];
  const [command] = lines.map((line) => JSON.parse(line.slice('CMD'.length))).filter(endsInHost);

  expect(command).toEqual([...START_OPTIONS, '/app/main.mjs']);
});

test('the image starts the C library and libuv with the options of npm start', () => {
  expect(START_VARIABLES).toEqual([
    'MALLOC_ARENA_MAX=2',
    expect.stringMatching(/^MALLOC_MMAP_THRESHOLD_=\d+$/),
    'UV_THREADPOOL_SIZE=2',
  ]);
  expect(readFileSync('Dockerfile', 'utf8')).toMatch(
    new RegExp(`^ENV .*\\b${START_VARIABLES.join(' ')}$`, 'm'),
  );
});

test('the young generation of the heap has the same limit in every deployment, and a thread of its own collects it', () => {
  expect(START_OPTIONS).toEqual([
    expect.stringMatching(/^--max-semi-space-size=\d+$/),
    '--no-parallel-scavenge',
  ]);
});

function endsInHost(words: readonly string[]): boolean {
  return words.at(-1) === '/app/main.mjs';
}
