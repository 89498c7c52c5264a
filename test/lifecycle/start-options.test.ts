import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { START_OPTIONS, START_VARIABLES } from '../stage/start-command.ts';

const dockerfile = readFileSync('Dockerfile', 'utf8');

test('the image starts the host with the options of Node.js that npm start gives it', () => {
  const commands = [...dockerfile.matchAll(/^CMD (.+)$/gm)].map(([, words = '']) => JSON.parse(words));

  expect(commands).toContainEqual([...START_OPTIONS, '/app/main.mjs']);
});

test('the image starts the C library and libuv with the options of npm start', () => {
  expect(START_VARIABLES).toEqual([
    'MALLOC_ARENA_MAX=2',
    expect.stringMatching(/^MALLOC_MMAP_THRESHOLD_=\d+$/),
    'UV_THREADPOOL_SIZE=2',
  ]);
  expect(dockerfile).toMatch(new RegExp(`^ENV .*\\b${START_VARIABLES.join(' ')}$`, 'm'));
});

test('the young generation of the heap has the same limit in every deployment, and a thread of its own collects it', () => {
  expect(START_OPTIONS).toEqual([
    expect.stringMatching(/^--max-semi-space-size=\d+$/),
    '--no-parallel-scavenge',
  ]);
});
