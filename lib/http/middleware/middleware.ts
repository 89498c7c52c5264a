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
  body: string;
};

/** A request in middy's stack. */
export type RequestInStack = {
  event: GatewayEvent;
  context: RequestContext;
  response: ResponseDraft;
  error: unknown;
};

/** A middleware of middy: `before` runs on the way in, `after` and `onError` in reverse order on the way out. */
export type Middleware = {
  readonly before?: (request: RequestInStack) => void | Promise<void>;
  readonly after?: (request: RequestInStack) => void;
  readonly onError?: (request: RequestInStack) => void;
};
