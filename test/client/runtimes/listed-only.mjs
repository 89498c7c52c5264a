// Runs a program with only those parts of the Web's API that the README of the client lists.
import { readFileSync } from 'node:fs';
import { createContext, SourceTextModule } from 'node:vm';
import { build } from 'esbuild';

const page = readFileSync(new URL('../../../infra/client/README.md', import.meta.url), 'utf8');
const [, needed, absent] = /of the Web's API (.*?)It does without(.*?)\n\n/s.exec(page);
const namesIn = (text) => [...text.matchAll(/`([\w.]+)`/g)].map(([, name]) => name);

for (const name of namesIn(absent)) {
  const path = name.split('.');
  const member = path.pop();
  Object.defineProperty(
    path.reduce((value, one) => value[one], globalThis),
    member,
    { value: undefined },
  );
}
const { outputFiles } = await build({
  ...{ entryPoints: [process.argv[2]], bundle: true, format: 'esm', write: false, logLevel: 'error' },
});
const listed = Object.fromEntries(namesIn(needed).map((name) => [name, globalThis[name]]));
const context = createContext({ ...listed, console });
const program = new SourceTextModule(outputFiles[0].text, { context });
await program.link(() => {});
await program.evaluate();
