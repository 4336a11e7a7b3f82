/** How much of a container's last output is told. */
export const LOG_LINES = 20;
const LOG_BYTES = 4096;
const HEADER_BYTES = 8;

/** The text in a reply of the engine's log call, both streams in the order in which they were written. */
export function demultiplex(reply: Buffer): string {
  const parts: Buffer[] = [];
  for (let at = 0; at < reply.length; ) {
    const kind = reply[at] ?? 0;
    const framed = reply.length - at >= HEADER_BYTES && kind <= 2 && reply.readUIntBE(at + 1, 3) === 0;
    if (!framed) {
      parts.push(reply.subarray(at));
      break;
    }
    const end = at + HEADER_BYTES + reply.readUInt32BE(at + 4);
    parts.push(reply.subarray(at + HEADER_BYTES, end));
    at = end;
  }
  return Buffer.concat(parts).toString('utf8');
}

/** One kind of line end, and no other control characters but tabs. */
export function plainText(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, '');
}

/**
 * The last lines of plain text, at most 4 kB; cut at the beginning. What a sandbox writes is made by somebody who may
 * mean harm: the time taken grows with the text, and with nothing else.
 */
export function lastLines(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === '\n') end -= 1;
  const lines = text.slice(0, end).split('\n').slice(-LOG_LINES).join('\n');
  const bytes = Buffer.from(lines, 'utf8');
  if (bytes.length <= LOG_BYTES) return lines;
  let start = bytes.length - LOG_BYTES;
  while (((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return bytes.subarray(start).toString('utf8');
}
