import { Problem } from './problem.ts';

/** The header `Allow` of a resource with these methods (RFC 9110 section 10.2.1). HEAD is allowed wherever GET is. */
export function formatAllow(declared: readonly string[]): string {
  const methods = declared.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return [...methods, 'OPTIONS'].join(', ');
}

/** The refusal of another method on a known path. `allow` lists the allowed ones (RFC 9110 section 15.5.6). */
export function refuseMethod(allow: string): Problem {
  return new Problem('method_not_allowed_error', {
    detail: `This resource supports only these methods: ${allow}.`,
    headers: { Allow: allow },
  });
}
