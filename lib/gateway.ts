import type { StandAside } from './stand-aside.ts';

/**
 * What an endpoint receives: of an API Gateway HTTP API event (payload format 2.0) the members that the
 * service reads. Header names are lower case; repeated headers are joined with a comma.
 *
 * The container host has not read the body yet when it calls an endpoint, so that a refused caller costs
 * nothing: its events carry `receiveBody` in place of `body`.
 */
export type GatewayEvent = {
  readonly rawPath: string;
  readonly rawQueryString: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly pathParameters?: Readonly<Record<string, string | undefined>> | undefined;
  readonly requestContext: { readonly http: { readonly method: string } };
  readonly isBase64Encoded: boolean;
  readonly body?: string | null | undefined;
  /** Resolves with the whole body; rejects with a Problem: 413 past `limit` bytes, 400 or 408 when it does not come. */
  readonly receiveBody?: (limit: number) => Promise<Buffer>;
  /** The container's: how a request waits for news without being in flight. */
  readonly standAside?: StandAside | undefined;
};

/** What an endpoint answers: an API Gateway HTTP API result (payload format 2.0). */
export type GatewayResult = {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly isBase64Encoded: boolean;
};

/** An endpoint bound to a service. It never rejects: every fault is a problem document. */
export type Handler = (event: GatewayEvent, invocation?: Invocation) => Promise<GatewayResult>;

/** What a handler may know of its invocation; the context of AWS Lambda is one. */
export type Invocation = { readonly getRemainingTimeInMillis?: () => number };
