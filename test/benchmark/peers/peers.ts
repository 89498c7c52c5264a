import { execFile } from 'node:child_process';
import { globSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Variables } from '../../../lib/settings/settings.ts';
import { fromDebian, fromNpm } from '../../lab/stage/packages.ts';
import type { Stage } from '../stage/stage.ts';
import type { Target } from '../targets/target.ts';

/** Puts the sources of the peers beside the packages that they import. */
async function withSources(installing: Promise<string>): Promise<string> {
  const folder = await installing;
  await cp(import.meta.dirname, folder, { recursive: true });
  return folder;
}

/** What every peer is started with: see settings.mjs. */
function variablesOf(stage: Stage, database: string, port: number): Variables {
  const { issuer, publicKey } = stage.credentials;
  return {
    PATH: process.env.PATH,
    NODE_ENV: 'production',
    PORT: String(port),
    POSTGRES_URL: stage.urlOf(database),
    ISSUER: issuer.issuer,
    AUDIENCE: issuer.audience,
    PUBLIC_KEY: publicKey,
  };
}

const onNode = (name: string, title: string, packages: readonly string[]): Target => ({
  name,
  title,
  async install(stage) {
    const folder = await withSources(fromNpm(packages));
    return (database, port) => ({
      command: process.execPath,
      options: [`${name}.mjs`],
      folder,
      variables: variablesOf(stage, database, port),
    });
  },
});

const go: Target = {
  name: 'go',
  title: 'Go: fasthttp, pgx',
  async install(stage) {
    const folder = await withSources(
      fromDebian([
        'golang-1.19-go',
        'golang-github-jackc-pgx-v4-dev',
        'golang-github-valyala-fasthttp-dev',
        'golang-github-golang-jwt-jwt-dev',
      ]),
    );
    // What the system has installed itself is not unpacked once more.
    const roots = [join(folder, 'root'), '/'];
    const [compiler = 'go'] = roots.flatMap((root) => globSync(join(root, 'usr/lib/go-1.*/bin/go')));
    await promisify(execFile)(compiler, ['build', '-o', 'server', ...globSync(join(folder, 'go/*.go'))], {
      cwd: folder,
      env: {
        PATH: process.env.PATH,
        GOROOT: join(compiler, '../..'),
        GOPATH: roots.map((root) => join(root, 'usr/share/gocode')).join(':'),
        GOCACHE: join(folder, 'cache'),
        GO111MODULE: 'off',
        CGO_ENABLED: '0',
      },
    });
    return (database, port) => ({
      command: join(folder, 'server'),
      options: [],
      folder,
      variables: variablesOf(stage, database, port),
    });
  },
};

const bun: Target = {
  name: 'bun',
  title: 'Bun: Bun.serve, Bun.sql',
  async install(stage) {
    const folder = await withSources(fromNpm(['bun@1.4.5']));
    const [program] = globSync(join(folder, 'node_modules/@oven/*/bin/bun'));
    if (!program) throw new Error('there is no Bun for this machine');
    return (database, port) => ({
      command: program,
      options: ['bun.mjs'],
      folder,
      variables: variablesOf(stage, database, port),
    });
  },
};

const fastapi: Target = {
  name: 'fastapi',
  title: 'FastAPI: SQLAlchemy, asyncpg',
  async install(stage) {
    const modules = ['fastapi', 'uvicorn', 'uvloop', 'httptools', 'sqlalchemy', 'greenlet', 'asyncpg', 'jwt'];
    const folder = await withSources(
      fromDebian(modules.map((name) => `python3-${name}`).concat('python3-cryptography')),
    );
    const variables = {
      PYTHONPATH: join(folder, 'root/usr/lib/python3/dist-packages'),
      LD_LIBRARY_PATH: globSync(join(folder, 'root/usr/lib/*-linux-gnu')).join(':'),
    };
    return (database, port) => ({
      command: '/usr/bin/python3',
      options: ['fastapi_peer.py'],
      folder,
      variables: { ...variablesOf(stage, database, port), ...variables },
    });
  },
};

/** Compared in `get`, too: what a request costs that does none of the work. */
const hollow = { workloads: ['health', 'get'], isHollow: true } as const;

/** What users could take in our place, each as one would write it with care. */
export const peers: readonly Target[] = [
  go,
  bun,
  { ...onNode('hello', 'node:http "hello"', []), ...hollow },
  onNode('fastify', 'Fastify', ['fastify@5.12.8', 'fast-jwt@6.3.6', 'pg@8.23.1', 'uuid@14.0.3']),
  fastapi,
];
