#!/usr/bin/env node
// Node loads all static imports before it runs a line, and an older Node.js refuses some of the command. This file has none.
const NEEDED = 20;
const { node } = process.versions;
if (Number.parseInt(node, 10) < NEEDED) {
  process.stderr.write(`The command users needs Node.js ${NEEDED} or later, and this is Node.js ${node}.\n`);
  process.exit(1);
}
await import('./run.ts');

export {};
