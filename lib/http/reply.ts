import * as z from 'zod';
import type { GatewayEvent } from './gateway.ts';

/** Writes the value that an endpoint returns as a response. */
export type Reply<Value> = {
  readonly mediaType?: string;
  /** Another media type of the same body, for callers whose `Accept` names it. */
  readonly onDemand?: string;
  readonly schema?: z.ZodType;
  readonly write: (value: Value) => string | Buffer;
  /** Another success than that of the route, for some values. */
  readonly other?: {
    readonly status: 200;
    readonly description: string;
    readonly schema: z.ZodType;
    readonly appliesTo: (value: Value) => boolean;
  };
  readonly headers: Readonly<Record<string, ReplyHeader<Value>>>;
};

type ReplyHeader<Value> = {
  readonly description: string;
  /** All values that it can have. The documentation needs them. */
  readonly values?:
    | { readonly enum: readonly string[] }
    | { readonly pattern: string; readonly maxLength: number };
  readonly example?: string;
  /** Whether some responses lack it. */
  readonly isOptional?: true;
  /** The value of the header. If it is undefined, the header is left out. Every path in it begins with `basePath`. */
  readonly of: (value: Value, basePath: string) => string | undefined;
};

/** The media type of every JSON body except problems. */
export const JSON_TYPE = 'application/json; charset=utf-8';

/** The headers of a reply with this value. */
export function writeHeaders<Value>(
  { mediaType, onDemand, headers }: Reply<Value>,
  value: Value,
  { headers: { accept }, basePath = '' }: GatewayEvent,
): Record<string, string> {
  const written: Record<string, string> = {};
  if (mediaType) written['Content-Type'] = mediaType;
  if (onDemand && namesMediaType(accept, onDemand)) written['Content-Type'] = onDemand;
  for (const name in headers) {
    const text = headers[name]?.of(value, basePath);
    if (text !== undefined) written[name] = text;
  }
  return written;
}

/** `Cache-Control` with the same directives in every response. */
export function cacheControl(directives: string): { readonly 'Cache-Control': ReplyHeader<unknown> } {
  return {
    'Cache-Control': {
      description: `Always \`${directives}\`.`,
      values: { enum: [directives] },
      of: () => directives,
    },
  };
}

/** The body of a probe: its `status` alone. */
export function createProbeReply(status: string): Reply<void> {
  return {
    mediaType: JSON_TYPE,
    schema: z.object({ status: z.literal(status) }),
    write: () => JSON.stringify({ status }),
    headers: cacheControl('no-store'),
  };
}

/** Whether `Accept` names the type of `mediaType` itself, with a weight above 0 (RFC 9110 section 12.5.1). */
function namesMediaType(accept: string | undefined, mediaType: string): boolean {
  const [type = ''] = mediaType.split(';');
  return (accept ?? '').split(',').some((range) => {
    // Most ranges need no parsing. A field may have thousands of them.
    if (range.length < type.length) return false;
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    return name === type && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}
