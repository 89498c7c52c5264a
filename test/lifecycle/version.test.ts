import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { BUILD_VERSION, VERSION } from '../../lib/version.ts';
import packageJson from '../../package.json' with { type: 'json' };

const ROOT = join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const { version } = packageJson;

test('the version is that of package.json in all places', () => {
  const lock = JSON.parse(read('package-lock.json'));
  const compose = parse(read('infra/compose.yaml'));
  const release = parse(read('infra/kubernetes/components/release/kustomization.yaml'));

  expect({
    lock: lock.version,
    lockedPackage: lock.packages[''].version,
    module: [VERSION, BUILD_VERSION],
    document: JSON.parse(read('infra/openapi.json')).info.version,
    image: /^ARG VERSION=(.+)$/m.exec(read('Dockerfile'))?.[1],
    compose: compose.services.service.build.args.VERSION,
    kubernetes: release.images[0].newTag,
  }).toEqual({
    lock: version,
    lockedPackage: version,
    module: [version, version],
    document: version,
    image: version,
    compose: `\${SERVICE_VERSION:-${version}}`,
    kubernetes: version,
  });
});

test('the changelog has a section for the version, with its date', () => {
  expect(read('CHANGELOG.md')).toMatch(
    new RegExp(`^## ${version.replaceAll('.', '\\.')} - \\d{4}-\\d\\d-\\d\\d$`, 'm'),
  );
});

test('infra/build-version.ts prints the version, with the commit in a clone', () => {
  const options = { cwd: ROOT, encoding: 'utf8' } as const;
  const printed = execFileSync(process.execPath, ['infra/build-version.ts'], options);
  expect(printed.split(/[+\n]/)[0]).toBe(version);
  expect(printed).toMatch(/^[\d.]+(\+[0-9a-f]{7})?\n$/);
});
