import { expect, test } from 'vitest';
import { startBuiltService } from '../stage/built-service.ts';
import { forThisTest } from '../stage/for-all-tests.ts';

/** Makes the process log, at each listen, whether Node's HTTP client is loaded. */
const LOG_AT_LISTENING = `import net from 'node:net';
  const { listen } = net.Server.prototype;
  const isLoaded = () => process.moduleLoadList.some((name) => name.endsWith('deps/undici/undici'));
  net.Server.prototype.listen = function (...given) {
    this.once('listening', () => process.stderr.write(isLoaded() + ' '));
    return listen.apply(this, given);
  };
  process.once('SIGUSR2', () => process.stderr.write(isLoaded() + ' '));`;

test('the HTTP client is not loaded before the host listens, because a start would take a fifth longer', async () => {
  const service = await forThisTest(startBuiltService, {
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(LOG_AT_LISTENING)}`,
  });
  expect(service.errors()).toBe('false ');

  // The service has fetched the keys since.
  service.signal('SIGUSR2');
  await expect.poll(service.errors).toBe('false true ');
});
