import { createHash } from 'node:crypto';
import { type BigIntStats, fstatSync, lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { EXIT, Failure } from './failure.ts';

/** A place without links. `stats` is undefined if nothing is there yet. */
export type Place = {
  /** A descriptor of this process, to which a path such as `/dev/stdout` leads. */
  readonly descriptor?: number;
  readonly place: string;
  readonly stats: BigIntStats | undefined;
};

const DESCRIPTOR = new RegExp(`^/(?:dev|proc/${process.pid})/fd/(\\d+)$`);
/** In bytes, of Linux and macOS. */
const MAX_NAME_BYTES = 255;

/**
 * Where a path leads by its links, also by one to nothing.
 *
 * @throws {Failure} for a folder
 */
export function findPlace(path: string): Place {
  const folder = realpathSync(dirname(path));
  const place = join(folder, basename(path));
  const [, descriptor] = DESCRIPTOR.exec(place) ?? [];
  if (descriptor !== undefined)
    return { descriptor: Number(descriptor), place, stats: fstatSync(Number(descriptor), { bigint: true }) };
  // Links that lead to each other are an error here.
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  if (stats?.isDirectory() || path.endsWith('/'))
    throw new Failure(`${path} is a folder, and must be a file`, EXIT.wrongUse);
  if (!lstatSync(place, { throwIfNoEntry: false })?.isSymbolicLink()) return { place, stats };
  return findPlace(resolve(folder, readlinkSync(place)));
}

/** The path of a file beside a place, whose name ends like this. */
export function nameBeside(place: string, end: string): string {
  if (Buffer.byteLength(basename(place) + end) <= MAX_NAME_BYTES) return place + end;
  return join(dirname(place), createHash('sha256').update(basename(place)).digest('hex') + end);
}
