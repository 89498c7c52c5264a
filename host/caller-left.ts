import type { ServerResponse } from 'node:http';

/**
 * Calls back when the caller of a request hangs up or ends its side, until what is returned is called. Since half-open
 * connections are served, a caller that leaves closes nothing by itself: only the end of what it sends tells.
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
