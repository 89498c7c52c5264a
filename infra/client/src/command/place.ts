import { createHash } from 'node:crypto';
import { type BigIntStats, fstatSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { EXIT, Failure } from './failure.ts';

/** Where a path leads by its links: a descriptor of this process, or a place without links. */
export type Place = {
  readonly descriptor: number | undefined;
  readonly place: string;
  /** Undefined if nothing is there yet. */
  readonly stats: BigIntStats | undefined;
};

/** The descriptors of this process, to which `/dev/stdout` and `/dev/fd/3` lead. */
const DESCRIPTOR = new RegExp(`^/(?:dev|proc/(?:self|${process.pid}))/fd/(\\d+)$`);
/** As many links as Linux follows. */
const MAX_LINKS = 40;
/** In bytes, of Linux and macOS. */
const MAX_NAME_BYTES = 255;

/** @throws {Failure} for a folder */
export function findPlace(path: string): Place {
  let place = path;
  for (let links = 0; links <= MAX_LINKS; links += 1) {
    const folder = realpathSync(dirname(place));
    place = join(folder, basename(place));
    const [, descriptor] = DESCRIPTOR.exec(place) ?? [];
    if (descriptor !== undefined)
      return {
        descriptor: Number(descriptor),
        place,
        stats: fstatSync(Number(descriptor), { bigint: true }),
      };
    const target = readLink(place);
    if (target === undefined) break;
    place = resolve(folder, target);
  }
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  if (stats?.isDirectory() || path.endsWith('/'))
    throw new Failure(`${path} is a folder, and must be a file`, EXIT.wrongUse);
  return { descriptor: undefined, place, stats };
}

/** Undefined if the path is not a link. */
function readLink(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

/** The path of a file beside a place, whose name ends like this. */
export function nameBeside(place: string, end: string): string {
  if (Buffer.byteLength(basename(place) + end) <= MAX_NAME_BYTES) return place + end;
  return join(dirname(place), createHash('sha256').update(basename(place)).digest('hex') + end);
}
