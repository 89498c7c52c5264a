import { globSync, readFileSync } from 'node:fs';
import { join, matchesGlob } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

/** Modules that start the service with the PostgreSQL of the tests. */
const STAGES =
  /\/(?:stage\/(?:service|service-under-test|composition|built-service|postgres|opened-database)|service-over)\.ts'/;

/** Patterns of files that do not run again, and the reason. */
export type LeftOut = Readonly<Record<string, string>>;

/** Tests whose result does not depend on PostgreSQL. They run once. */
const NOT_ABOUT_POSTGRES: LeftOut = {
  'test/{accept,benchmark,browser,citus,client,container,examples,faults,lambda,monitoring,pooled,project,restore,upgrade}/**':
    'have suites or measurements of their own',
  'test/{observability,lifecycle}/**': 'test logs, spans, signals and the start',
  'test/auth/!(delete-role).test.ts': 'test tokens',
  'test/http/{openapi,docs}.test.ts': 'test the document and its pages',
  'test/http/{framing,parser-refusals,http-pipelining,early-responses,slow-clients,bodies,paths,linear-time}.test.ts':
    'test HTTP, before there is a statement',
  'test/http/{http-client,silent-connections,fault-details}.test.ts':
    'test connections of clients, and requests that are refused',
  'test/http/idle-connections.test.ts': 'counts the requests that its process keeps, also for other files',
  'test/{http/{request-id,check-order,overload,fair-turns},changes/many-waiting-requests}.test.ts':
    'test HTTP, tokens and the load of an instance',
  'test/fuzz/planted-faults.test.ts': 'tests the generated requests',
  'test/{changes,engine}/*plans.test.ts': 'test plans, on a connection of their own',
  'test/engine/malformed-messages.test.ts': 'send messages in the place of PostgreSQL',
  'test/parity/**': 'test host and functions; functions run behind a pooler in the suite lambda',
  'test/http/rules/**': 'test HTTP messages',
};

/** The files that reach PostgreSQL, by their imports, except for these. */
export function filesReachingPostgres(leftOut: LeftOut): readonly string[] {
  const patterns = Object.keys({ ...NOT_ABOUT_POSTGRES, ...leftOut });
  return reaching().filter((file) => !patterns.some((pattern) => matchesGlob(file, pattern)));
}

/** The patterns that match no such file. */
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
