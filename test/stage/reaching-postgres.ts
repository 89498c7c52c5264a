import { globSync, readFileSync } from 'node:fs';
import { join, matchesGlob } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

/** What starts the service over the PostgreSQL of the tests. */
const STAGES = /\/stage\/(service|service-under-test|composition|gate|built-service|postgres)\.ts'/;

/** Files of tests, by a pattern, and why they are left out where others run once more. */
export type LeftOut = Readonly<Record<string, string>>;

/** What is the same whatever PostgreSQL stands behind: it runs once. */
const NOT_ABOUT_POSTGRES: LeftOut = {
  'test/{accept,benchmark,client,container,examples,lambda,monitoring,pooled,restore,upgrade}/**':
    'a command of its own, or figures of its own',
  'test/{observability,lifecycle}/**': 'about logs, spans, signals and the way it is started',
  'test/auth/!(delete-role).test.ts': 'about tokens',
  'test/http/{openapi,docs}.test.ts': 'about the document and its pages',
  'test/http/{framing,parser-refusals,http-pipelining,early-answers,slow-clients,bodies,paths}.test.ts':
    'about HTTP, before there is a statement',
  'test/{http/{request-id,check-order,overload},changes/crowd,engine/crowded-executor}.test.ts':
    'about HTTP, tokens and the load that an instance takes',
  'test/{changes,engine}/*plans.test.ts': 'about plans, which a connection of the test’s own asks for',
  'test/http-rules/**': 'about HTTP messages',
  'test/parity/**': 'about the ways to run; functions have a pooler of their own in the suite lambda',
};

/** The files of tests that reach PostgreSQL, told by what they import, but for these. */
export function filesReachingPostgres(leftOut: LeftOut): readonly string[] {
  const patterns = Object.keys({ ...NOT_ABOUT_POSTGRES, ...leftOut });
  return reaching().filter((file) => !patterns.some((pattern) => matchesGlob(file, pattern)));
}

/** The patterns for which there is no such file. */
export function patternsOfNone(leftOut: LeftOut): readonly string[] {
  const files = reaching();
  return Object.keys({ ...NOT_ABOUT_POSTGRES, ...leftOut }).filter(
    (pattern) => !files.some((file) => matchesGlob(file, pattern)),
  );
}

function reaching(): readonly string[] {
  return globSync('test/**/*.test.ts', { cwd: ROOT, exclude: (name) => name === 'node_modules' })
    .filter((file) => STAGES.test(readFileSync(join(ROOT, file), 'utf8')))
    .sort();
}
