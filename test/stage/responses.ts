import { expect } from 'vitest';
import type { GatewayResult } from '../../lib/http/gateway.ts';
import { createServiceResponse, type ServiceResponse } from './service-response.ts';

export { readResponse, type ServiceResponse } from './service-response.ts';

export const USERS = '/api/v1/users/';
export const BATCH = '/api/v1/users/batch';

/** The refusals: code, status and title. Written again, so that a mistake in the service's table is visible. */
const REFUSALS = {
  bad_request_error: [400, 'Bad Request'],
  unauthorized_error: [401, 'Unauthorized'],
  forbidden_error: [403, 'Forbidden'],
  not_found_error: [404, 'Not Found'],
  method_not_allowed_error: [405, 'Method Not Allowed'],
  request_timeout_error: [408, 'Request Timeout'],
  conflict_error: [409, 'Conflict'],
  idempotency_key_in_use_error: [409, 'Conflict'],
  gone_error: [410, 'Gone'],
  cursor_expired_error: [410, 'Gone'],
  precondition_failed_error: [412, 'Precondition Failed'],
  payload_too_large_error: [413, 'Payload Too Large'],
  unsupported_media_type_error: [415, 'Unsupported Media Type'],
  validation_error: [422, 'Unprocessable Entity'],
  idempotency_key_reused_error: [422, 'Unprocessable Entity'],
  precondition_required_error: [428, 'Precondition Required'],
  request_header_fields_too_large_error: [431, 'Request Header Fields Too Large'],
  internal_server_error: [500, 'Internal Server Error'],
  service_unavailable_error: [503, 'Service Unavailable'],
} as const;

export type Refusal = keyof typeof REFUSALS;

const HEADERS_OF: Partial<Record<Refusal, () => Record<string, string>>> = {
  unauthorized_error: () => ({ 'www-authenticate': 'Bearer' }),
  idempotency_key_in_use_error: () => ({ 'retry-after': expect.stringMatching(/^[1-9]\d*$/) }),
  service_unavailable_error: () => ({ 'retry-after': expect.stringMatching(/^[1-9]\d*$/) }),
};

const UUID_7 = /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;
export const UUID_4 = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;
export const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const someText = () => expect.stringMatching(/./);

/** The headers of every response. The request ID is a generated one. */
const everyHeader = () => ({
  'x-content-type-options': 'nosniff',
  'x-request-id': expect.stringMatching(UUID_4),
});

export function responseFromResult({
  statusCode,
  headers,
  body,
  isBase64Encoded,
}: GatewayResult): ServiceResponse {
  const bytes = Buffer.from(body.toString(), isBase64Encoded ? 'base64' : 'utf8');
  const lowerCase = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  return createServiceResponse(statusCode, Object.fromEntries(lowerCase), bytes);
}

type Particulars = {
  readonly detail?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The pointer (`#…`), the parameter or the header field of each fault, in order. */
  readonly errors?: readonly string[] | 'any';
};

/** The complete response of a refusal: five members, their headers, and the faults of a 422. */
export function refusal(
  code: Refusal,
  instance: string,
  { detail, headers, errors }: Particulars = {},
): ServiceResponse {
  const [status, title] = REFUSALS[code];
  const isStatusText = code === 'unauthorized_error' || code === 'forbidden_error';
  return {
    status,
    headers: {
      ...everyHeader(),
      'content-type': 'application/problem+json',
      'cache-control': 'no-store',
      ...HEADERS_OF[code]?.(),
      ...headers,
    },
    body: {
      type: `urn:svc:error:${code}`,
      title,
      status,
      detail: detail ?? (isStatusText ? title : someText()),
      instance,
      ...(errors && { errors: errors === 'any' ? expect.any(Array) : errors.map(faultAt) }),
    },
  };
}

/** The response 422 that names these faults, in order. */
export function invalid(instance: string, ...errors: readonly string[]): ServiceResponse {
  return refusal('validation_error', instance, { errors });
}

function faultAt(place: string) {
  const kind = place.startsWith('#') ? 'pointer' : /^[A-Z]/.test(place) ? 'header' : 'parameter';
  return { [kind]: place, detail: someText() };
}

/** The response 403, which names the role. */
export function forbidden(role: string, instance: string): ServiceResponse {
  const challenge = `Bearer error="insufficient_scope", scope="${role}"`;
  return refusal('forbidden_error', instance, { headers: { 'www-authenticate': challenge } });
}

/** The complete response of a successful user operation. */
export function success(
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): ServiceResponse {
  return {
    status,
    headers: {
      ...everyHeader(),
      ...(status !== 204 && { 'content-type': 'application/json; charset=utf-8' }),
      'cache-control': 'private, no-cache',
      ...headers,
    },
    body,
  };
}

export function probe(status: 'healthy' | 'ready'): ServiceResponse {
  return success(200, { status }, { 'cache-control': 'no-store' });
}

/** The Accept-Patch of a resource with PATCH, in responses to OPTIONS and to bodies of another type. */
export const ACCEPT_PATCH = { 'accept-patch': 'application/json, application/merge-patch+json' };

/** The complete response to OPTIONS. */
export function options(allow: string): ServiceResponse {
  const acceptPatch = allow.includes('PATCH') ? ACCEPT_PATCH : {};
  return { status: 204, headers: { ...everyHeader(), allow, ...acceptPatch }, body: '' };
}

export interface UserBody {
  readonly id: string;
  readonly email: string;
  readonly full_name: string | null;
  readonly is_active: boolean;
  readonly created_at: string;
  readonly updated_at: string;
  readonly external_id?: string;
}

/** A user as in a response, by default new and without a name. */
export function user(given: Partial<UserBody> & { readonly email: string }): UserBody {
  return {
    id: expect.stringMatching(UUID_7),
    full_name: null,
    is_active: true,
    created_at: expect.stringMatching(TIMESTAMP),
    updated_at: expect.stringMatching(TIMESTAMP),
    ...given,
  };
}

let addresses = 0;

/** An email that no other test of the file uses. */
export function freshAddress(): string {
  addresses += 1;
  return `user-${addresses}@example.com`;
}
