import { subscribe } from 'node:diagnostics_channel';
import type { ServerResponse } from 'node:http';

// Adds a field to the head of each response, and sends the head by itself.
subscribe('http.server.request.start', (message) => {
  const { response } = message as { response: ServerResponse };
  response.setHeader('X-Waste', 'x'.repeat(100));
  const { writeHead } = response;
  response.writeHead = ((...head: Parameters<typeof writeHead>) => {
    const written = writeHead.apply(response, head);
    response.flushHeaders();
    return written;
  }) as typeof writeHead;
});
