import { codeOf } from '../domain/errors.ts';

/** How one call of a port went: `ok`, or the problem's code. */
export type ObserveCall = (call: string, outcome: string, durationMs: number) => void;

/** The port, with every asynchronous call of it timed. Answers, errors and order are the port's own. */
export function instrument<T extends object>(port: T, now: () => number, observe: ObserveCall): T {
  const timed = new Map<string | symbol, unknown>();
  const time =
    (name: string, method: (...args: unknown[]) => unknown) =>
    (...args: unknown[]): unknown => {
      const began = now();
      const result = Reflect.apply(method, port, args);
      if (!(result instanceof Promise)) return result;
      result.then(
        () => observe(name, 'ok', now() - began),
        (error: unknown) => observe(name, codeOf(error) ?? 'internal_error', now() - began),
      );
      return result;
    };
  return new Proxy(port, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function' || typeof name !== 'string') return value;
      if (!timed.has(name)) timed.set(name, time(name, value as (...args: unknown[]) => unknown));
      return timed.get(name);
    },
  });
}
