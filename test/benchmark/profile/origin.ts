import { existsSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { CpuProfile } from './inspector.ts';

type Frame = CpuProfile['nodes'][number]['callFrame'];

/** Where a function belongs: a folder of ours, a package, Node, V8; and what to call it. */
export type Origin = { readonly module: string; readonly name: string };

/** V8's and Node's own machine code, with what the kernel does for it. */
export const NATIVE = 'native code';

/** What V8 tells apart from functions; `(program)` is native code that no JavaScript has called. */
const SPECIAL: ReadonlyMap<string, string> = new Map([
  ['(garbage collector)', 'garbage collection'],
  ['(program)', NATIVE],
  ['(root)', NATIVE],
]);

/** Finds the origins of functions of the built host, by its source maps. */
export function originFinder(): (frame: Frame) => Origin | undefined {
  const maps = new Map<string, SourceMap | undefined>();

  return ({ functionName, url, lineNumber, columnNumber }) => {
    if (functionName === '(idle)') return undefined;
    const special = SPECIAL.get(functionName);
    if (special) return { module: special, name: functionName };
    const name = functionName || '(anonymous)';
    if (url === '') return { module: NATIVE, name };
    if (url.startsWith('node:')) return { module: "Node's own JavaScript", name: `${name} ${url}` };
    const file = url.startsWith('file:') ? fileURLToPath(url) : url;
    if (!maps.has(file)) maps.set(file, mapOf(file));
    const entry = maps.get(file)?.findEntry(lineNumber, columnNumber);
    const source = entry && 'originalSource' in entry ? sourceOf(file, entry.originalSource) : file;
    const line = entry && 'originalLine' in entry ? `:${entry.originalLine + 1}` : '';
    return { module: moduleOf(source), name: `${name} ${source}${line}` };
  };
}

function mapOf(file: string): SourceMap | undefined {
  const map = `${file}.map`;
  return existsSync(map) ? new SourceMap(JSON.parse(readFileSync(map, 'utf8'))) : undefined;
}

/** A path within the project, or from the last `node_modules` on. */
function sourceOf(file: string, original: string): string {
  const path = resolve(dirname(file), original);
  const inPackage = path.lastIndexOf('node_modules/');
  if (inPackage >= 0) return path.slice(inPackage);
  const place = /\/((?:lib|host|handlers|infra)\/.*)$/.exec(path)?.[1];
  return place ?? relative(join(import.meta.dirname, '../../..'), path);
}

function moduleOf(source: string): string {
  const [, name] = /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source) ?? [];
  return name ? `package ${name}` : dirname(source);
}
