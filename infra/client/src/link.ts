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
      const text = value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, '$1') : value;
      // If a parameter is repeated, the first one counts.
      if (!parameters.has(name.toLowerCase())) parameters.set(name.toLowerCase(), text);
    }
    const relations = (parameters.get('rel') ?? '').toLowerCase().split(/\s+/);
    // A link with an anchor is about another resource.
    if (relations.includes(relation) && !parameters.has('anchor')) return link[1];
  }
  return undefined;
}
