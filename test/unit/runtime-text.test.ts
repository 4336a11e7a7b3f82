import { expect, test } from 'vitest';
import { demultiplex, lastLines as lastPlainLines, plainText } from '../../src/runtime/log-tail.ts';
import { Redaction } from '../../src/runtime/redaction.ts';
import { tinyProfile } from '../support/profiles.ts';

const lastLines = (text: string): string => lastPlainLines(plainText(text));

function frame(kind: number, text: string): Buffer {
  const body = Buffer.from(text);
  const head = Buffer.alloc(8);
  head[0] = kind;
  head.writeUInt32BE(body.length, 4);
  return Buffer.concat([head, body]);
}

test('[R-18] log frames of both streams are read in order; a raw or cut-off reply is text too', () => {
  expect(demultiplex(Buffer.concat([frame(1, 'out\n'), frame(2, 'err\n'), frame(1, 'é')]))).toBe('out\nerr\né');
  expect(demultiplex(frame(1, 'whole').subarray(0, 11))).toBe('who');
  expect(demultiplex(Buffer.from('plain terminal text'))).toBe('plain terminal text');
  expect(demultiplex(Buffer.alloc(0))).toBe('');
});

test('[R-18] at most 20 lines and 4 kB are told, whole characters, nothing a terminal would act on', () => {
  const lines = Array.from({ length: 30 }, (_, index) => `line ${index + 1}`);
  expect(lastLines(`${lines.join('\r\n')}\n`)).toBe(lines.slice(10).join('\n'));
  expect(lastLines('a\u001b[31mred\u0000')).toBe('a[31mred');
  expect(lastLines('a\u009b31mred\u0085é')).toBe('a31mredé');
  const long = lastLines(`start${'é'.repeat(5000)}!`);
  expect(Buffer.byteLength(long)).toBe(4095);
  expect(long).toMatch(/^é+!$/);
});

test('[R-18] [R-10] a log that is written to take long is told at once: the broker does nothing else meanwhile', () => {
  const began = performance.now();
  expect(lastLines(`${'\r'.repeat(100_000)}y\n\n`)).toBe(`${'\n'.repeat(19)}y`);
  expect(lastLines(`x${'\r\n'.repeat(100_000)}`)).toBe('x');
  expect(lastLines('\n'.repeat(100_000))).toBe('');
  expect(performance.now() - began).toBeLessThan(1_500);
});

test('[R-15] environment values and passwords are hidden, the longest first, and line by line', () => {
  const redaction = new Redaction([
    tinyProfile('i', {
      environment: { TOKEN: 'secret', LONG: 'secret-and-more', KEY: 'first line\nsecond line', SHORT: 'on' },
      registryAuth: { username: 'robot', password: 'hunter22' },
    }),
  ]);
  const text = 'secret-and-more secret hunter22 on, then second line';
  expect(redaction.apply(text)).toBe('[redacted] [redacted] [redacted] on, then [redacted]');
});

test('[R-15] what a container really has is hidden too, also if the profile changed since; ordinary words are not', () => {
  const redaction = new Redaction([]);
  const environment = ['TOKEN=old=secret', 'HOME=/root', 'PATH=/usr/bin', 'BROKEN'];
  expect(redaction.apply('old=secret in /root and /usr/bin', environment)).toBe('[redacted] in /root and /usr/bin');
});
