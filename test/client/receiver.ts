import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import { listen } from '../stage/listening.ts';

/** A secret of `users relay`. */
export const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`;

/** A change as `users relay` sends it. */
export type Sent = {
  readonly id: string;
  readonly type: string;
  readonly subject: string;
  readonly data: { readonly version: number; readonly user?: Readonly<Record<string, unknown>> | null };
};

/** A request that the receiver got. */
export type Delivery = {
  readonly change: Sent;
  readonly body: string;
  readonly request: IncomingMessage;
  /** In milliseconds. */
  readonly at: number;
};

/** Responds to a request: with a status, or in any other way. */
export type Respond = (delivery: Delivery, response: ServerResponse, attempt: number) => number | undefined;

/**
 * Starts a receiver. `deliveries` has every request in the order of arrival. The signature of each is verified by the
 * package of Standard Webhooks with every secret.
 */
export async function startReceiver(secrets: readonly string[], tls?: ServerOptions) {
  const deliveries: Delivery[] = [];
  const faults: string[] = [];
  let respond: Respond = () => 204;
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const body = (await buffer(request)).toString();
    for (const secret of secrets) {
      try {
        new Webhook(secret).verify(body, request.headers as Record<string, string>);
      } catch (error) {
        faults.push(String(error));
      }
    }
    const delivery = { change: JSON.parse(body) as Sent, body, request, at: performance.now() };
    deliveries.push(delivery);
    const attempt = deliveries.filter(({ change }) => change.id === delivery.change.id).length;
    const status = respond(delivery, response, attempt);
    if (status !== undefined) response.writeHead(status).end();
  };
  const server = tls ? createTlsServer(tls, serve) : createServer(serve);
  const { port } = await listen(server);
  return {
    port,
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    deliveries,
    /** Signatures that are not right, since the last call of `answer`. */
    faults,
    /** The ids of the requests, in the order of arrival. */
    ids: () => deliveries.map(({ change }) => change.id),
    /** From now on requests are answered like this; a status, or undefined if it responds by itself. */
    answer(next: Respond) {
      respond = next;
      deliveries.length = 0;
      faults.length = 0;
    },
    async stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}
