export type TarEntry =
  | { readonly path: string; readonly content: string | Buffer; readonly mode?: number }
  | { readonly path: string; readonly link: string }
  /** A folder: its path ends with a slash. */
  | { readonly path: `${string}/`; readonly mode: number };

const BLOCK = 512;

/** A tar archive of a small root file system, everything owned by root. */
export function tarOf(entries: readonly TarEntry[]): Buffer {
  const blocks = entries.flatMap((entry) => {
    const content = 'content' in entry ? Buffer.from(entry.content) : Buffer.alloc(0);
    return [header(entry, content.length), content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]);
}

function header(entry: TarEntry, size: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  const isLink = 'link' in entry;
  const mode = isLink ? 0o777 : (entry.mode ?? 0o644);
  block.write(entry.path, 0, 100);
  block.write(octal(mode, 7), 100);
  block.write(octal(0, 7), 108);
  block.write(octal(0, 7), 116);
  block.write(octal(size, 11), 124);
  block.write(octal(0, 11), 136);
  block.write('        ', 148);
  block.write(isLink ? '2' : entry.path.endsWith('/') ? '5' : '0', 156);
  if (isLink) block.write(entry.link, 157, 100);
  block.write('ustar\0' + '00', 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${octal(sum, 6)}\0 `, 148);
  return block;
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, '0');
}

/** The content of the file that an archive of one file holds. */
export function onlyFileOf(tar: Buffer): Buffer {
  const size = Number.parseInt(tar.toString('latin1', 124, 136), 8);
  return tar.subarray(512, 512 + size);
}
