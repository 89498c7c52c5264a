import { subscribe } from 'node:diagnostics_channel';

// Makes what nobody needs at each request.
subscribe('http.server.request.start', () => {
  waste = Array.from({ length: 500 }, (_, number) => ({ number }));
});

let waste: readonly unknown[] = [];
process.on('exit', () => waste.length);
