/**
 * The input of an endpoint: those members of an API Gateway HTTP API event (payload format 2.0) that the service reads.
 * Header names are in lower case. Repeated headers are joined by a comma.
 *
 * The container host has not read the body when it calls an endpoint, so that a refused caller costs nothing. Its
 * events have `receiveBody` instead of `body`.
 */
export type GatewayEvent = {
  readonly rawPath: string;
  /** What a gateway put before `/api/v1/`, and `Location` and `Link` must therefore begin with. Only in a function. */
  readonly basePath?: string;
  readonly rawQueryString: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly pathParameters?: Readonly<Record<string, string | undefined>> | undefined;
  readonly requestContext: { readonly http: { readonly method: string } };
  readonly isBase64Encoded: boolean;
  readonly body?: string | null | undefined;
  /**
   * Resolves with the whole body. Rejects with a Problem: 413 beyond `limit` bytes, 400 or 408 if the body does not
   * arrive, 503 if the shutdown ends the wait.
   */
  readonly receiveBody?: (limit: number) => Promise<Buffer>;
  /** Only in the container: lets a request wait for changes without being in flight. */
  readonly waitUncounted?: WaitUncounted | undefined;
};

/**
 * Waits without being a request in flight, for at most `milliseconds`. `over` is aborted then, and earlier if the
 * client disconnects, the drain begins, or a function's time is nearly up.
 */
export type WaitUncounted = <Result>(
  milliseconds: number,
  wait: (over: AbortSignal) => Promise<Result>,
) => Promise<Result>;

/** The output of an endpoint: an API Gateway HTTP API result (payload format 2.0). */
export type GatewayResult = {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  /** A long page is bytes in UTF-8. */
  readonly body: string | Buffer;
  readonly isBase64Encoded: boolean;
};

/** An endpoint bound to a service. It never rejects: every fault becomes a problem document. */
export type Handler = (event: GatewayEvent, invocation?: Invocation) => Promise<GatewayResult>;

/** What a handler reads of its invocation. The context of AWS Lambda has it. */
export type Invocation = { readonly getRemainingTimeInMillis?: () => number };
