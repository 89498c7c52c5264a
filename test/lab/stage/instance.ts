import type { Variables } from '../../../lib/settings/settings.ts';
import { startBuiltHost } from '../../stage/built-host.ts';
import { untilReady } from '../../stage/built-service.ts';
import { drainEvents, endedBy } from '../../stage/shutdown.ts';

/** One place behind the balancer: the built host on a port of its own, which can be restarted. */
export async function startInstance(port: number, variables: Variables) {
  const start = async () => {
    const host = await startBuiltHost({ ...variables, SVC_PORT: String(port) });
    await untilReady(`http://127.0.0.1:${port}`);
    return host;
  };
  let host = await start();

  /** Ends the host as an orchestrator does, and expects that it goes in order. */
  async function stop(): Promise<number> {
    const { code, seconds } = await endedBy('SIGTERM', host);
    const drains = drainEvents(host).map(({ event }) => event);
    const errors = host.errors();
    await host.remove();
    if (code !== 0 || drains.join() !== 'shutdown_drained') {
      throw new Error(`an instance ended with code ${code}, ${drains}: ${errors}`);
    }
    return seconds;
  }

  return {
    /** Resolves with the seconds that the old host took to end, once the new one is ready. */
    async restart(): Promise<number> {
      const seconds = await stop();
      host = await start();
      return seconds;
    },
    stop,
  };
}
