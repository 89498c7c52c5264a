import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { copyOfProject, removeProject } from '../stage/project-copy.ts';
import { docker, images } from './docker.ts';

const manifest = JSON.parse(readFileSync('package.json', 'utf8'));
/** With the commit in a clone. */
const VERSION = new RegExp(String.raw`^${manifest.version.replaceAll('.', '\\.')}(\+[0-9a-f]{7})?$`);
let image: Inspected;
let base: Inspected;

const run = promisify(execFile);

/** A program that prints the hash of every file in a folder by its path, except for compiled code. */
const hashesOf = (folder: string) => `
  const { globSync, readFileSync, statSync } = require('node:fs');
  const { createHash } = require('node:crypto');
  const names = globSync('**', { cwd: '${folder}', exclude: (name) => name === 'compiled' });
  const files = names.sort().filter((name) => statSync('${folder}/' + name).isFile());
  const hash = (name) => createHash('sha256').update(readFileSync('${folder}/' + name)).digest('hex');
  console.log(JSON.stringify(Object.fromEntries(files.map((name) => [name, hash(name)]))));
`;

type Inspected = {
  Size: number;
  RootFS: { Layers: readonly string[] };
  Config: Record<string, unknown> & { Healthcheck: { Test: string[] }; Labels: Record<string, string> };
};

beforeAll(async () => {
  [image, base] = JSON.parse(await docker('image', 'inspect', images.service, images.base));
});

describe('the image', () => {
  test('is the unchanged base image with the bundle added', () => {
    const megabytes = [image.Size, base.Size].map((bytes) => `${Math.round(bytes / 1e6)} MB`);
    process.stdout.write(`The image has ${megabytes[0]}, of which ${megabytes[1]} are its base.\n`);

    expect(image.RootFS.Layers.slice(0, base.RootFS.Layers.length)).toEqual(base.RootFS.Layers);
    expect(image.Size - base.Size).toBeLessThan(15_000_000);
  });

  test('starts Node.js without a shell, as a user that is not root, and is stopped by SIGTERM', () => {
    expect(image.Config).toMatchObject({
      User: '65532:65532',
      Entrypoint: ['/nodejs/bin/node'],
      Cmd: ['--max-semi-space-size=16', '--no-parallel-scavenge', '/app/main.mjs'],
      StopSignal: 'SIGTERM',
      ExposedPorts: { '8000/tcp': {} },
    });
  });

  test('has the settings for production, for memory and for threads', () => {
    expect(image.Config.Env).toEqual(
      expect.arrayContaining([
        'SVC_ENV=production',
        'MALLOC_ARENA_MAX=2',
        'MALLOC_MMAP_THRESHOLD_=131072',
        'UV_THREADPOOL_SIZE=2',
      ]),
    );
  });

  test('checks its health without a shell', () => {
    expect(image.Config.Healthcheck.Test.slice(0, 3)).toEqual(['CMD', '/nodejs/bin/node', '-e']);
  });

  test('has OCI labels', () => {
    expect(image.Config.Labels).toEqual({
      'org.opencontainers.image.title': manifest.name,
      'org.opencontainers.image.description': manifest.description,
      'org.opencontainers.image.version': expect.stringMatching(VERSION),
      'org.opencontainers.image.revision': expect.stringMatching(/^[0-9a-f]{40}$|^unknown$/),
      'org.opencontainers.image.created': expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      'org.opencontainers.image.licenses': 'LicenseRef-Proprietary',
      'org.opencontainers.image.base.name': images.base,
    });
  });

  test('has the same files under /app as a build in another folder, except for the compiled code', async () => {
    const folder = copyOfProject();
    const version = String(image.Config.Labels['org.opencontainers.image.version']);
    const options = { cwd: folder, maxBuffer: 1e8 };
    await run(process.execPath, ['esbuild.config.mjs', `--version=${version}`], options);
    const { stdout } = await run(process.execPath, ['infra/tools/sbom.ts'], options);
    const inFolder = JSON.parse((await run(process.execPath, ['-e', hashesOf('dist/host')], options)).stdout);
    const { 'sbom.cdx.json': bill, ...inImage } = JSON.parse(
      await docker('run', '--rm', images.service, '-e', hashesOf('/app')),
    );
    removeProject(folder);

    expect(Object.keys(inImage).length).toBeGreaterThan(10);
    expect(inImage).toEqual(inFolder);
    // It names the parts of Node.js, which may be different here.
    const isSameNode =
      `v${process.versions.node}` === (await docker('run', '--rm', images.service, '--version'));
    if (isSameNode) expect(bill).toBe(createHash('sha256').update(stdout).digest('hex'));
  });

  test('the image of the command relays changes', async () => {
    expect(await docker('run', '--rm', images.users, 'relay', '--help')).toMatch(
      /^Usage: users relay --cursor/,
    );
  });

  test('contains no shell, no package manager and no source', async () => {
    const program = `
      const files = require('node:fs').globSync('{app,bin,sbin,usr/bin,usr/sbin}/**', { cwd: '/', withFileTypes: true });
      const names = files.filter((file) => !file.isDirectory()).map((file) => file.name);
      console.log(JSON.stringify(names.filter((name) => /^(sh|bash|dash|busybox|npm|apt.*|dpkg)$|\\.ts$/.test(name))));
    `;
    expect(JSON.parse(await docker('run', '--rm', images.service, '-e', program))).toEqual([]);
  });

  test('contains a software bill of materials of Node.js and its packages', async () => {
    const program = "process.stdout.write(require('node:fs').readFileSync('/app/sbom.cdx.json'))";
    const bill = JSON.parse(await docker('run', '--rm', images.service, '-e', program));

    expect(bill).toMatchObject({
      bomFormat: 'CycloneDX',
      metadata: { component: { name: manifest.name, version: manifest.version } },
    });
    const listed = bill.components.map(({ purl }: { purl: string }) => decodeURIComponent(purl));
    const names = [
      ...['@middy/core', '@opentelemetry/sdk-node', 'jose', 'kysely', 'pg', 'redoc', 'swagger-ui-dist'],
      'zod',
    ];
    const wanted = names.map((name) => `pkg:npm/${name}@${manifest.dependencies[name]}`);
    expect(listed).toEqual(expect.arrayContaining(wanted));
    expect(listed).not.toContainEqual(expect.stringMatching(/vitest|typescript|esbuild/));
    const runtime = await docker('run', '--rm', images.service, '--version');
    expect(listed).toContain(`pkg:generic/node@${runtime.slice(1)}`);
  });
});
