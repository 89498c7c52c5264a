import * as z from 'zod';
import { MAX_HEAD_LENGTH } from './text.ts';

/** How the value that an endpoint returns is written as a response. */
export type Reply<Value> = {
  readonly mediaType?: string;
  /** Another name for the same body, for callers whose `Accept` has it. */
  readonly onDemand?: string;
  /** The body's shape, for the documentation. */
  readonly schema?: z.ZodType;
  readonly write: (value: Value) => string;
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
  /** Undefined where the header does not apply: it is left out then. */
  readonly of: (value: Value) => string | undefined;
};

/**
 * All values of a `Link` to the next page. A parameter has at most the length of the request's head, and three characters
 * for each of it where it has to be escaped.
 */
export const NEXT_LINK = { pattern: '^</[^<>]+>; rel="next"$', maxLength: 4 * MAX_HEAD_LENGTH };

/** The media type of every JSON body that is no problem. */
export const JSON_TYPE = 'application/json; charset=utf-8';

/** Gives the headers of `reply` for a value. */
export function replyHeaders<Value>({
  mediaType,
  onDemand,
  headers,
}: Reply<Value>): (value: Value, accept: string | undefined) => Record<string, string> {
  const declared = Object.entries(headers);
  return (value, accept) => {
    const written: Record<string, string> = {};
    if (mediaType) written['Content-Type'] = mediaType;
    if (onDemand && names(accept, onDemand)) written['Content-Type'] = onDemand;
    for (const [name, header] of declared) {
      const text = header.of(value);
      if (text !== undefined) written[name] = text;
    }
    return written;
  };
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
export function probeReply<Status extends string>(status: z.ZodLiteral<Status>): Reply<{ status: Status }> {
  return {
    mediaType: JSON_TYPE,
    schema: z.object({ status }),
    write: (body) => JSON.stringify(body),
    headers: cacheControl('no-store'),
  };
}

/** Whether `Accept` names the type of `mediaType` itself, with a weight above 0 (RFC 9110 section 12.5.1). */
function names(accept: string | undefined, mediaType: string): boolean {
  const [type] = mediaType.split(';');
  return (accept ?? '').split(',').some((range) => {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    return name === type && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}
