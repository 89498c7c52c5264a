import { demand } from './expect.mjs';

/** The target of the link to the next page, or undefined. @throws {Mismatch} if the header is not such a link */
export function nextOf({ request, headers: { link }, follow }) {
  if (link === undefined) return undefined;
  const [, target] = /^<([^>]+)>; rel="next"$/.exec(link) ?? [];
  demand(target, `${request}: the header link is ${link}, expected <…>; rel="next"`);
  return follow(target);
}

/** Compares values that another caller can change in between. The check fails only at its third failure. */
export async function steadily(compare) {
  for (let attempts = 1; ; attempts += 1) {
    try {
      return await compare();
    } catch (error) {
      if (attempts === 3) throw error;
    }
  }
}
