import { JsonLines } from './json-lines.ts';

interface PullMessage {
  readonly id?: string;
  readonly status?: string;
  readonly error?: string;
  readonly progressDetail?: { readonly current?: number; readonly total?: number };
}

const DONE = new Set(['Pull complete', 'Already exists']);
const MB = 1_000_000;

/** Reads the engine's stream of messages about one pull. */
export class PullProgress {
  readonly #layers = new Map<string, { done: boolean; current: number; total: number }>();
  readonly #lines = new JsonLines<PullMessage>();
  #error: string | null = null;

  /** Why the pull failed, in the engine's words, if a message said so. */
  get error(): string | null {
    return this.#error;
  }

  read(chunk: Uint8Array): void {
    for (const message of this.#lines.read(chunk)) this.#note(message);
  }

  summary(): string {
    const layers = [...this.#layers.values()];
    const done = layers.filter((layer) => layer.done).length;
    const current = layers.reduce((sum, layer) => sum + layer.current, 0);
    const total = layers.reduce((sum, layer) => sum + layer.total, 0);
    return `${done} of ${layers.length} layers, ${(current / MB).toFixed(1)} of ${(total / MB).toFixed(1)} MB`;
  }

  #note(message: PullMessage): void {
    if (typeof message.error === 'string') this.#error ??= message.error;
    const { id, status, progressDetail } = message;
    if (id === undefined || status === undefined || status.startsWith('Pulling from')) return;
    const layer = this.#layers.get(id) ?? { done: false, current: 0, total: 0 };
    if (status === 'Downloading' && progressDetail !== undefined) {
      layer.current = progressDetail.current ?? layer.current;
      layer.total = progressDetail.total ?? layer.total;
    }
    if (DONE.has(status)) {
      layer.done = true;
      layer.current = layer.total;
    }
    this.#layers.set(id, layer);
  }
}
