import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { crc32, inflateRawSync } from 'node:zlib';

const END_LENGTH = 22;
const ENTRY_LENGTH = 46;
const HEADER_LENGTH = 30;

/** Unpacks a zip into `folder`, by its directory alone, as AWS Lambda would; throws when a file is not as it says. */
export async function unpack(file: string, folder: string): Promise<void> {
  const zip = await readFile(file);
  const end = zip.subarray(-END_LENGTH);
  let at = end.readUInt32LE(16);
  for (let left = end.readUInt16LE(10); left > 0; left -= 1) {
    const entry = zip.subarray(at);
    const nameLength = entry.readUInt16LE(28);
    const name = entry.toString('utf8', ENTRY_LENGTH, ENTRY_LENGTH + nameLength);
    const header = zip.subarray(entry.readUInt32LE(42));
    const begin = HEADER_LENGTH + header.readUInt16LE(26) + header.readUInt16LE(28);
    const content = inflateRawSync(header.subarray(begin, begin + entry.readUInt32LE(20)));
    if (crc32(content) !== entry.readUInt32LE(16)) throw new Error(`${name} in ${file} is broken`);
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), content);
    at += ENTRY_LENGTH + nameLength + entry.readUInt16LE(30) + entry.readUInt16LE(32);
  }
}
