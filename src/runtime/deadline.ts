/**
 * Settles by `limitMs`, whatever `work` does: past it the signal aborts and the promise rejects with what `expired`
 * makes. Work that settles later is not listened to any more.
 */
export async function withDeadline<T>(
  limitMs: number,
  work: (signal: AbortSignal) => Promise<T>,
  expired: () => Error,
  closed?: AbortSignal,
): Promise<T> {
  const controller = new AbortController();
  const { promise, reject } = Promise.withResolvers<never>();
  const end = (error: Error): void => {
    reject(error);
    controller.abort(error);
  };
  const onClose = (): void => end(closed?.reason as Error);
  const timer = setTimeout(() => end(expired()), Math.max(0, limitMs));
  closed?.addEventListener('abort', onClose, { once: true });
  try {
    return await Promise.race([work(controller.signal), promise]);
  } finally {
    clearTimeout(timer);
    closed?.removeEventListener('abort', onClose);
  }
}
