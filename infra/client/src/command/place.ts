import { createHash } from 'node:crypto';
import { type BigIntStats, fstatSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { EXIT, Failure } from './failure.ts';

/** Where a path leads by its links: a descriptor of this process, or a name in a folder, which may not exist yet. */
export type Place = {
  readonly descriptor: number | undefined;
  readonly folder: string;
  readonly name: string;
  /** Undefined if it does not exist. */
  readonly stats: BigIntStats | undefined;
};

/** The descriptors of this process, as `realpath` returns them for `/dev/stdout` and `/dev/fd/3`. */
const DESCRIPTOR = new RegExp(`^/(?:dev|proc/(?:self|${process.pid}))/fd/(\\d+)$`);

/** As many links as Linux follows. */
const MAX_LINKS = 40;

/** @throws {Failure} for a folder */
export function findPlace(path: string): Place {
  if (path.endsWith('/')) throw isFolder(path);
  let at = path;
  for (let links = 0; ; links += 1) {
    const folder = realpathSync(dirname(at));
    const name = basename(at);
    const [, text] = DESCRIPTOR.exec(join(folder, name)) ?? [];
    const descriptor = text === undefined ? undefined : Number(text);
    const target = descriptor === undefined ? readLink(join(folder, name)) : undefined;
    if (target !== undefined && links < MAX_LINKS) {
      at = resolve(folder, target);
      continue;
    }
    const stats =
      descriptor === undefined
        ? statSync(path, { bigint: true, throwIfNoEntry: false })
        : fstatSync(descriptor, { bigint: true });
    if (stats?.isDirectory()) throw isFolder(path);
    return { descriptor, folder, name, stats };
  }
}

function isFolder(path: string): Failure {
  return new Failure(`${path} is a folder, and must be a file`, EXIT.wrongUse);
}

/** Undefined if the path is not a link. */
function readLink(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

/**
 * What is wrong with the paths of these options: one is empty, or two name one regular file, by links or as a standard stream.
 * A path that leads nowhere is reported when it is opened.
 */
export function faultOfPaths(options: Readonly<Record<string, string | undefined>>): string | undefined {
  const streams = { 'standard output': '/dev/fd/1', 'standard error': '/dev/fd/2' };
  const known = new Map<string, { readonly option: string; readonly descriptor: number | undefined }>();
  for (const [option, path] of Object.entries({ ...options, ...streams })) {
    if (path === '') return `${option} must not be empty`;
    const place = path === undefined ? undefined : tryToFind(path);
    if (!place || (place.stats && !place.stats.isFile())) continue;
    const { descriptor, folder, name, stats } = place;
    const key = stats ? `${stats.dev}:${stats.ino}` : join(folder, name);
    const other = known.get(key);
    // An option may name a stream itself, and both streams may go to one file.
    if (other && !(option in streams && (other.descriptor === descriptor || other.option in streams)))
      return `${other.option} and ${option} must name two files`;
    if (!other) known.set(key, { option, descriptor });
  }
  return undefined;
}

function tryToFind(path: string): Place | undefined {
  try {
    return findPlace(path);
  } catch {
    return undefined;
  }
}

/** In bytes, of Linux and macOS. */
const MAX_NAME_BYTES = 255;

/** The name of a file that belongs to a file, beside it. */
export function nameBeside(name: string, end: string): string {
  if (Buffer.byteLength(name + end) <= MAX_NAME_BYTES) return name + end;
  return createHash('sha256').update(name).digest('hex') + end;
}

/** In bytes: maximum length of the path of a folder, so that the names in it do not exceed the limit of the system. */
const MAX_FOLDER_BYTES = 3800;

/** Does something in a folder, whose path may exceed the limit. `at` is what precedes a name in it. */
export function inFolder<Value>(
  folder: string,
  work: (at: string) => Value,
  maxFolderBytes = MAX_FOLDER_BYTES,
): Value {
  if (Buffer.byteLength(folder) <= maxFolderBytes) return work(`${folder}/`);
  const here = process.cwd();
  process.chdir(folder);
  try {
    return work('');
  } finally {
    process.chdir(here);
  }
}
