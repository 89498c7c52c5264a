import type { GatewayEvent } from '../http/gateway.ts';

/** The methods that the semantic conventions list. Any other one would make an endless number of series and span names. */
const KNOWN_METHODS = new Set('GET HEAD POST PUT DELETE CONNECT OPTIONS TRACE PATCH'.split(' '));

export type RequestHead = Pick<GatewayEvent, 'headers' | 'requestContext'>;

/** The attributes that all metrics and spans of a request share; the method is `_OTHER` if it is unknown. */
export function requestAttributes({ headers, requestContext: { http } }: RequestHead) {
  return {
    'http.request.method': KNOWN_METHODS.has(http.method) ? http.method : '_OTHER',
    // A gateway or balancer ends TLS, and reports it in this header.
    'url.scheme': headers['x-forwarded-proto'] === 'https' ? 'https' : 'http',
  };
}
