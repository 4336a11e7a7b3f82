/** Reads a stream of JSON objects, one a line, cut anywhere. Lines that are no objects are passed over. */
export class JsonLines<T extends object> {
  readonly #decoder = new TextDecoder();
  #rest = '';

  read(chunk: Uint8Array): T[] {
    const lines = (this.#rest + this.#decoder.decode(chunk, { stream: true })).split('\n');
    this.#rest = lines.pop() ?? '';
    const found = lines.map((line) => parse<T>(line));
    // A last message need not end its line.
    const whole = parse<T>(this.#rest);
    if (whole !== null) this.#rest = '';
    return [...found, whole].filter((value) => value !== null);
  }
}

function parse<T extends object>(line: string): T | null {
  if (line.trim() === '') return null;
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' ? (value as T | null) : null;
  } catch {
    return null;
  }
}
