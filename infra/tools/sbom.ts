// Prints the software bill of materials (CycloneDX 1.6) of the built host: node infra/tools/sbom.ts. `npm sbom` would list
// all installed packages, which are more than the bundle contains, and would leave out packages that tests also use.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

type Locked = { readonly version: string; readonly integrity?: string; readonly license?: string };

const root = join(import.meta.dirname, '../..');
const project = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const locked: Readonly<Record<string, Locked>> = JSON.parse(
  readFileSync(join(root, 'package-lock.json'), 'utf8'),
).packages;

/** Copied beside the bundle unchanged. */
const COPIED = ['node_modules/redoc', 'node_modules/swagger-ui-dist'];

const places = [...new Set([...COPIED, ...bundled()])].filter((place) => place in locked).sort();
const bill = {
  $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
  bomFormat: 'CycloneDX',
  specVersion: '1.6',
  version: 1,
  metadata: {
    component: { type: 'application', name: project.name, version: project.version, purl: purl(project) },
  },
  components: [runtime(), ...places.map(library)],
};
process.stdout.write(`${JSON.stringify(bill, null, 2)}\n`);

/** The source maps name every file of the bundle. */
function bundled(): string[] {
  const maps = globSync('dist/host/**/*.map', { cwd: root });
  if (maps.length === 0) throw new Error('dist/host has no source maps: run "npm run build" first');
  return maps.flatMap((map) => {
    const { sources } = JSON.parse(readFileSync(join(root, map), 'utf8')) as { sources: string[] };
    return sources.flatMap(
      (source) => /(node_modules\/(@[^/]+\/)?[^/]+\/)+/.exec(source)?.[0].slice(0, -1) ?? [],
    );
  });
}

function library(place: string) {
  const { version, integrity, license } = locked[place] as Locked;
  const name = place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length);
  const content = integrity && Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex');
  return {
    type: 'library',
    name,
    version,
    purl: purl({ name, version }),
    'bom-ref': place,
    ...(content && { hashes: [{ alg: 'SHA-512', content }] }),
    ...(license && {
      licenses: [/ /.test(license) ? { expression: license } : { license: { id: license } }],
    }),
  };
}

/** Node.js and its parts, for example OpenSSL. */
function runtime() {
  const { node, modules: _, napi: __, ...parts } = process.versions;
  const part = (name: string, version = '') => ({ name, version, purl: `pkg:generic/${name}@${version}` });
  return {
    type: 'platform',
    ...part('node', node),
    components: Object.entries(parts).map(([name, version]) => ({ type: 'library', ...part(name, version) })),
  };
}

function purl({ name, version }: { name: string; version: string }): string {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`;
}
