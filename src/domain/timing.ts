/**
 * Time as the broker sees it. Nothing outside the composition root reads a clock of its own.
 */
export interface Clock {
  /** Milliseconds since the epoch, for what people read. May jump. */
  wall(): number;
  /** Milliseconds since an arbitrary moment, never going back. For every wait, age and deadline of this process. */
  monotonic(): number;
  /**
   * Resolves after `ms` milliseconds, or as soon as `signal` aborts; never rejects. The caller looks at the signal.
   */
  pause(ms: number, signal?: AbortSignal): Promise<void>;
}

/** Uniform in [0, 1). */
export type Random = () => number;
/** A new universally unique id. */
export type NewId = () => string;
