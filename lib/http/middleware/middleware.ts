import type { GatewayEvent } from '../gateway.ts';

/** A request in middy's stack. Its middlewares still write the response. */
export type RequestInStack = {
  readonly event: GatewayEvent;
  readonly response: {
    readonly statusCode: number;
    readonly headers: Record<string, string>;
    body: string | Buffer;
  };
  error: unknown;
};
