import type { Role } from '../auth/role.ts';
import type { GatewayEvent } from '../http/gateway.ts';
import type { Problem } from '../http/problem.ts';
import type { Reply } from '../http/reply.ts';
import type { SiblingRoutes } from './sibling-routes.ts';
import type { RequestSchemas } from './validate.ts';

/** The declaration of an endpoint. Router, validation, documentation, bundles and infrastructure read it. */
export type Route = RequestSchemas &
  Access & {
    /** Its name in the documentation, and the name of its function bundle. */
    readonly operationId: string;
    readonly summary: string;
    readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
    /** A parameter is a segment in braces. A trailing slash makes no difference. */
    readonly path: `/${string}`;
    /** For a path that ends in a parameter: other paths at this place, which a gateway may not know. */
    readonly siblings?: SiblingRoutes;
    /** Whether an orchestrator calls it. A probe is not counted as a request in flight, and has no span. */
    readonly isProbe?: true;
    /**
     * Whether `If-Match` and `If-None-Match` are evaluated (RFC 9110 section 13): those of a read against the `ETag` of
     * its reply, those of a write by the statement that writes.
     */
    readonly conditional?: 'reading' | 'writing';
    /** Whether a request needs many times the memory of a read by id. Few such requests are served at once. */
    readonly isMemoryIntensive?: (event: Pick<GatewayEvent, 'rawQueryString'>) => boolean;
    /** Whether a request may wait for changes. A waiting request is not in flight. */
    readonly waits?: true;
    /** 200 if it is absent. */
    readonly success?: 200 | 201 | 204;
    // biome-ignore lint/suspicious/noExplicitAny: a reply takes what its own endpoint returns, which endpoint() checks
    readonly reply: Reply<any>;
    /** The functions that make its own refusals. Those of its checks are not listed. */
    readonly problems?: readonly (() => Problem)[];
  };

/**
 * The role that a caller needs, and the part of the service that the route needs. A route without a token reaches no
 * user.
 */
type Access =
  | { readonly role: Role; readonly needs: 'users' | 'changes' }
  | { readonly role: 'public'; readonly needs: 'nothing' | 'readiness' };
