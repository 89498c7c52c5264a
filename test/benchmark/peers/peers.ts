import { execFile } from 'node:child_process';
import { globSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Variables } from '../../../lib/settings/environment.ts';
import { fromDebian, fromNpm } from '../../lab/stage/packages.ts';
import type { Stage } from '../stage/stage.ts';
import type { Program, Target } from '../targets/target.ts';

/** A peer whose sources are put beside its packages. `program` finds or builds what runs them. */
const peer = (
  name: string,
  title: string,
  packages: () => Promise<string>,
  program: (folder: string) => Promise<Pick<Program, 'command' | 'options'> & Partial<Program>>,
): Target => ({
  name,
  title,
  async install(stage) {
    const folder = await packages();
    await cp(import.meta.dirname, folder, { recursive: true });
    const { variables, ...rest } = await program(folder);
    return (database, port) => ({
      folder,
      ...rest,
      variables: { ...variablesOf(stage, database, port), ...variables },
    });
  },
});

/** What every peer is started with. `PUBLIC_KEY` is the identity provider's key, in PEM. */
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

const onNode = (file: string) => async () => ({ command: process.execPath, options: [file] });

const GO_PACKAGES = ['jackc-pgx-v4', 'valyala-fasthttp', 'golang-jwt-jwt'];

async function buildGo(folder: string) {
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
  return { command: join(folder, 'server'), options: [] };
}

async function findBun(folder: string) {
  const [command] = globSync(join(folder, 'node_modules/@oven/*/bin/bun'));
  if (!command) throw new Error('there is no Bun for this machine');
  return { command, options: ['bun.mjs'] };
}

const PYTHON_MODULES = [
  'fastapi',
  'uvicorn',
  'uvloop',
  'httptools',
  'sqlalchemy',
  'greenlet',
  'asyncpg',
  'jwt',
];

const onPython = async (folder: string) => ({
  command: '/usr/bin/python3',
  options: ['fastapi_peer.py'],
  variables: {
    PYTHONPATH: join(folder, 'root/usr/lib/python3/dist-packages'),
    LD_LIBRARY_PATH: globSync(join(folder, 'root/usr/lib/*-linux-gnu')).join(':'),
  },
});

/** What users could take in our place, each as one would write it with care. */
export const peers: readonly Target[] = [
  peer(
    'go',
    'Go: fasthttp, pgx',
    () => fromDebian(['golang-1.19-go', ...GO_PACKAGES.map((name) => `golang-github-${name}-dev`)]),
    buildGo,
  ),
  peer('bun', 'Bun: Bun.serve, Bun.sql', () => fromNpm(['bun@1.4.5']), findBun),
  {
    ...peer('hello', 'node:http "hello"', () => fromNpm([]), onNode('hello.mjs')),
    // Compared in `get`, too: the cost of a request that does none of the work.
    ...{ workloads: ['health', 'get'], isHollow: true },
  },
  peer(
    'fastify',
    'Fastify',
    () => fromNpm(['fastify@5.12.8', 'fast-jwt@6.3.6', 'pg@8.23.1', 'uuid@14.0.3']),
    onNode('fastify.mjs'),
  ),
  peer(
    'fastapi',
    'FastAPI: SQLAlchemy, asyncpg',
    () => fromDebian([...PYTHON_MODULES, 'cryptography'].map((name) => `python3-${name}`)),
    onPython,
  ),
];
