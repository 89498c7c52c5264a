import { expect, onTestFinished, test } from 'vitest';
import { startBuiltService } from '../stage/built-service.ts';

/** Has the process tell on standard error, at each listening and in a row, whether Node's HTTP client is loaded. */
const TELL_AT_LISTENING = `import net from 'node:net';
  const { listen } = net.Server.prototype;
  const isLoaded = () => process.moduleLoadList.some((name) => name.endsWith('deps/undici/undici'));
  net.Server.prototype.listen = function (...given) {
    this.once('listening', () => process.stderr.write(isLoaded() + ' '));
    return listen.apply(this, given);
  };
  process.once('SIGUSR2', () => process.stderr.write(isLoaded() + ' '));`;

test('is not loaded before the host listens, which would make each start last a fifth longer', async () => {
  const service = await startBuiltService({
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(TELL_AT_LISTENING)}`,
  });
  onTestFinished(service.remove);
  expect(service.errors()).toBe('false ');

  // It has fetched the keys since.
  service.signal('SIGUSR2');
  await expect.poll(service.errors).toBe('false true ');
});
