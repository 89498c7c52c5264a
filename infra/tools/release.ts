import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

// `node infra/tools/release.ts` checks that one version is named everywhere, and that a commit with the version of a release is
// this release. `node infra/tools/release.ts 1.3.0` sets the version: see RELEASING.md.

const RELEASE = /^\d+\.\d+\.\d+$/;
const PACKAGE = /(?<="name": "user-management-(?:service|client)",\n\s*"version": ")[^"]+/g;

/** Where the version is written by hand. `infra/openapi.json` is generated from package.json. */
const PLACES: Readonly<Record<string, RegExp>> = {
  'package.json': PACKAGE,
  'package-lock.json': PACKAGE,
  'infra/client/package.json': PACKAGE,
  'infra/client/package-lock.json': PACKAGE,
  'infra/client/README.md': /(?<=user-management-client-).+?(?=\.tgz)/g,
  Dockerfile: /(?<=^ARG VERSION=).+/gm,
  'infra/compose.yaml': /(?<=SERVICE_VERSION:-)[^}]+/g,
  'infra/kubernetes/components/release/kustomization.yaml': /(?<=newTag: ).+/g,
  'infra/kubernetes/examples/production/kustomization.yaml': /(?<=newTag: ).+/g,
};

/** The first heading of a version in the changelog, and the first one of a release. */
const HEADING = /^## .+$/m;
const HEADING_OF_RELEASE = /^## (\d+\.\d+\.\d+) - (\S+)$/m;
/** The latest release, in README.md. */
const LATEST = /(?<=The latest release is )\S+ of \S+(?=\.\s)/;

const headingOf = (version: string) =>
  RELEASE.test(version) ? `## ${version} - ` : `## Unreleased (${version.split('-', 1)})`;

function setVersion(version: string): void {
  for (const [file, places] of Object.entries(PLACES))
    writeFileSync(file, readFileSync(file, 'utf8').replace(places, version));
  const changelog = readFileSync('CHANGELOG.md', 'utf8');
  if (changelog.match(HEADING)?.[0].startsWith(headingOf(version))) return;
  const date = new Date().toISOString().slice(0, 10);
  const heading = headingOf(version) + (RELEASE.test(version) ? date : '\n\n$&');
  writeFileSync('CHANGELOG.md', changelog.replace(HEADING, heading));
  writeFileSync('README.md', readFileSync('README.md', 'utf8').replace(LATEST, latestRelease()));
}

function latestRelease(): string {
  const [, version, date] = HEADING_OF_RELEASE.exec(readFileSync('CHANGELOG.md', 'utf8')) ?? [];
  return `${version} of ${date}`;
}

function* findFaults(): Generator<string> {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
  for (const [file, places] of Object.entries(PLACES)) {
    const found = readFileSync(file, 'utf8').match(places) ?? ['no version'];
    for (const other of found)
      if (other !== version) yield `${file} has ${other}, and package.json ${version}.`;
  }
  const [heading = ''] = HEADING.exec(readFileSync('CHANGELOG.md', 'utf8')) ?? [];
  if (!heading.startsWith(headingOf(version)))
    yield `CHANGELOG.md begins with "${heading}", not with "${headingOf(version)}".`;
  const [latest] = LATEST.exec(readFileSync('README.md', 'utf8')) ?? [];
  if (latest !== latestRelease())
    yield `README.md names the release ${latest}, and CHANGELOG.md ${latestRelease()}.`;
  yield* findFaultsOfCommit(version);
}

/** A version that is not committed yet is one that is being prepared. Without git there is nothing to compare. */
function* findFaultsOfCommit(version: string): Generator<string> {
  if (git('rev-parse', '--show-prefix') !== '\n') return;
  const committed: unknown = JSON.parse(git('show', 'HEAD:package.json') ?? '{}').version;
  const subject = git('log', '-1', '--format=%s')?.trim() ?? '';
  const isRelease = RELEASE.test(version) ? subject === `Release ${version}` : !/^Release \d/.test(subject);
  if (committed === version && !isRelease)
    yield `The version is ${version}, and the commit is "${subject}": only "Release X.Y.Z" has the version X.Y.Z.`;
}

function git(...words: string[]): string | undefined {
  try {
    return execFileSync('git', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch {
    return undefined;
  }
}

process.chdir(`${import.meta.dirname}/../..`);
const [version] = process.argv.slice(2);
if (version) setVersion(version);
const faults = [...findFaults()];
for (const fault of faults) process.stderr.write(`${fault}\n`);
process.exitCode = faults.length > 0 ? 1 : 0;
