import type { ServerResponse } from 'node:http';

/**
 * Calls back when the client of a request disconnects or ends its side, until the returned function is called. The
 * server serves half-open connections, so a client that disconnects closes nothing by itself. Only the end of its data
 * shows it.
 */
export function onceClientDisconnected(response: ServerResponse, onDisconnected: () => void): () => void {
  const { socket } = response.req;
  if (socket.readableEnded || response.destroyed) queueMicrotask(onDisconnected);
  socket.on('end', onDisconnected);
  response.on('close', onDisconnected);
  return () => {
    socket.off('end', onDisconnected);
    response.off('close', onDisconnected);
  };
}
