import type { ServicePrincipal } from '../../auth/principal.ts';
import type { GatewayEvent, Invocation } from '../gateway.ts';

/** What the middlewares of one request pass on to later ones, and to the handler. */
export type RequestContext = Invocation & {
  principal?: ServicePrincipal;
  values?: RequestValues;
};

/** The checked values of a request that its route declares. */
export type RequestValues = {
  readonly headers: unknown;
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
};

/** A response while the middlewares still write it. */
export type ResponseDraft = {
  statusCode: number;
  headers: Record<string, string>;
  body: string | Buffer;
};

/** A request in middy's stack. */
export type RequestInStack = {
  event: GatewayEvent;
  context: RequestContext;
  response: ResponseDraft;
  error: unknown;
};

/** Refuses a request by throwing a Problem, or passes something on. */
export type Check = (request: RequestInStack) => void | Promise<void>;
