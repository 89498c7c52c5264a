import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** An example of the client's README: a program, and the documented lines of its output. */
export type Example = {
  readonly title: string;
  readonly program: string;
  readonly prints: readonly string[];
};

const README = join(import.meta.dirname, '../../infra/client/README.md');
const PLACES = { service: 'https://users.example.com', tokens: 'https://identity.example.com/oauth2/token' };

/** All examples, each complete: they begin with the client that the first one creates. */
export function examples(url: string, tokenEndpoint: string): readonly Example[] {
  const text = readFileSync(README, 'utf8')
    .replaceAll(PLACES.service, url)
    .replaceAll(PLACES.tokens, tokenEndpoint);
  const sections = text.split(/^## /m).slice(1);
  const found = sections.flatMap((section) => {
    const title = section.split('\n', 1)[0] as string;
    return [...section.matchAll(/^```ts\n(.*?)^```/gms)].map(([, code = '']) => ({ title, code }));
  });
  const [first] = found;
  const begin = `${first?.code.split('\n});\n')[0]}\n});\n`;
  return found.map(({ title, code }, index) => ({
    title: `${index + 1}. ${title}`,
    program: index === 0 ? code : begin + code,
    prints: printed(code),
  }));
}

/** The text after `//` of a call that prints, with several lines for several calls. */
function printed(code: string): readonly string[] {
  return [...code.matchAll(/console\.log\(.*?\/\/ (.*)$/gm)].flatMap(([, lines = '']) => lines.split(' // '));
}
