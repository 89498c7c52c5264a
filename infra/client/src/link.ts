import { isOfSamePath, requestUrlOf } from './service-response.ts';

/** The query of the link to the next page, which may be any reference of RFC 3986. Undefined without such a link. */
export function nextQuery(response: Response): Record<string, string> | undefined {
  const reference = findLink(response.headers.get('link') ?? '', 'next');
  const url = requestUrlOf(response);
  if (reference === undefined || url === undefined) return undefined;
  const target = parseUrl(reference, url);
  // Scheme and host are those of a server behind a proxy. The proxy may have removed the beginning of the path.
  const hasPath = !/^(?:[^:/?#]+:)?(?:\/\/[^/?#]*)?(?:[?#]|$)/.test(reference);
  const isRight = target && (!hasPath || isOfSamePath(target.pathname, url));
  return isRight ? Object.fromEntries(target.searchParams) : undefined;
}

const TARGET = /[\s,]*<([^>]*)>/y;
const PARAMETER = /\s*;\s*([^\s=;,]*)\s*(?:=\s*("(?:[^"\\]|\\.)*"|[^\s;,]*))?/y;

/** The target of the first link of a header that has this relation (RFC 8288, appendix B.2); undefined if none has it. */
export function findLink(header: string, relation: string): string | undefined {
  let at = 0;
  const take = (pattern: RegExp) => {
    pattern.lastIndex = at;
    const found = pattern.exec(header);
    if (found) at = pattern.lastIndex;
    return found;
  };
  for (let link = take(TARGET); link; link = take(TARGET)) {
    const parameters = new Map<string, string>();
    for (let found = take(PARAMETER); found; found = take(PARAMETER)) {
      const [, name = '', value = ''] = found;
      // If a parameter is repeated, the first one counts.
      if (!parameters.has(name.toLowerCase())) parameters.set(name.toLowerCase(), value.replaceAll('"', ''));
    }
    const relations = (parameters.get('rel') ?? '').toLowerCase().split(/\s+/);
    // A link with an anchor is about another resource.
    if (relations.includes(relation) && !parameters.has('anchor')) return link[1];
  }
  return undefined;
}

function parseUrl(reference: string, base: string): URL | undefined {
  try {
    return new URL(reference, base);
  } catch {
    return undefined;
  }
}
