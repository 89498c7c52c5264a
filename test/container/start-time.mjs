// Runs inside the image: starts a bare server of Node and the service in turns, and prints the milliseconds until the
// first response of each, as pairs. Its argument is the limit for the service.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { get } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

const BARE =
  "require('node:http').createServer((_, response) => response.end()).listen(process.env.SVC_PORT)";

const limit = Number(process.argv[1]);
const pairs = [];
// On a machine with busy processors, one quick start among many is sufficient.
while (pairs.length < 7 || (pairs.every(([, time]) => time >= limit) && pairs.length < 20)) {
  const port = 8001 + 2 * pairs.length;
  pairs.push([await timeOf(['--eval', BARE], port), await timeOf(['/app/main.mjs'], port + 1)]);
}
process.stdout.write(JSON.stringify(pairs));

async function timeOf(program, port) {
  const since = performance.now();
  const server = spawn(process.execPath, program, {
    env: { ...process.env, SVC_PORT: String(port) },
    stdio: 'ignore',
  });
  while ((await statusOf(port)) !== 200) await pause(1);
  const time = Math.round(performance.now() - since);
  server.kill('SIGKILL');
  await once(server, 'exit');
  return time;
}

function statusOf(port) {
  return new Promise((resolve) => {
    const request = get({ port, path: '/health', agent: false });
    request.on('response', (response) => resolve(response.resume().statusCode));
    request.on('error', resolve);
  });
}
