import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { crc32, deflateRawSync } from 'node:zlib';

/** "Version made by": Unix, format 2.0 (deflate). */
const MADE_BY = 0x0314;
const FORMAT = 20;
const DEFLATED = 8;

/** The first date that a zip can hold, so that the same files always make the same archive. */
const TIME = 0;
const DATE = 0x21;

/** AWS Lambda runs the code as another user than the owner of the files. */
const READABLE_BY_ALL = (0o100644 << 16) >>> 0;

/**
 * Packs all files of `folder` as a zip.
 *
 * @see PKWARE, APPNOTE.TXT, sections 4.3.7 (local header), 4.3.12 (central directory) and 4.3.16 (its end)
 */
export function archive(folder: string): Buffer {
  const files: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  const paths = filesIn(folder);
  for (const path of paths) {
    const content = readFileSync(join(folder, path));
    const data = deflateRawSync(content, { level: 9 });
    const name = Buffer.from(path.replaceAll(sep, '/'));
    const description = Buffer.concat([
      uint16(FORMAT, 0, DEFLATED, TIME, DATE),
      uint32(crc32(content), data.length, content.length),
      uint16(name.length, 0),
    ]);
    const file = Buffer.concat([uint32(0x04034b50), description, name, data]);
    files.push(file);
    directory.push(uint32(0x02014b50), uint16(MADE_BY), description);
    directory.push(uint16(0, 0, 0), uint32(READABLE_BY_ALL, offset), name);
    offset += file.length;
  }
  const entries = Buffer.concat(directory);
  const counts = uint16(0, 0, paths.length, paths.length);
  const end = Buffer.concat([uint32(0x06054b50), counts, uint32(entries.length, offset), uint16(0)]);
  return Buffer.concat([...files, entries, end]);
}

function filesIn(folder: string): readonly string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return files.map(({ parentPath, name }) => relative(folder, join(parentPath, name))).sort();
}

const uint16 = (...values: number[]): Buffer =>
  Buffer.concat(values.map((value) => Buffer.from([value, value >>> 8])));

const uint32 = (...values: number[]): Buffer =>
  Buffer.concat(values.map((value) => Buffer.from([value, value >>> 8, value >>> 16, value >>> 24])));
