import { subscribe } from 'node:diagnostics_channel';

// Waits a few times at each request.
subscribe('http.server.request.start', () => void chain());

async function chain(): Promise<void> {
  for (let link = 0; link < 5; link += 1) await undefined;
}
