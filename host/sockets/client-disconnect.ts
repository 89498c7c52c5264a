import type { ServerResponse } from 'node:http';

/**
 * Calls back when the client of a request disconnects or ends its side, until the returned function is called. The
 * server serves half-open connections, so a client that disconnects closes nothing by itself. Only the end of its data
 * shows it.
 */
export function onceCallerLeft(response: ServerResponse, onLeft: () => void): () => void {
  const { socket } = response.req;
  if (socket.readableEnded || response.destroyed) queueMicrotask(onLeft);
  socket.on('end', onLeft);
  response.on('close', onLeft);
  return () => {
    socket.off('end', onLeft);
    response.off('close', onLeft);
  };
}
