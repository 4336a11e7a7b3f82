import { FakePoints } from '../fakes/fake-points.ts';

type Methods<T> = { [K in keyof T]: T[K] extends (...args: never[]) => Promise<unknown> ? K : never }[keyof T] & string;

/** The target with named points at its asynchronous methods: before the call, and after its effect, reply held or lost. */
export function withPoints<T extends object>(target: T): { readonly port: T; readonly points: FakePoints<Methods<T>> } {
  const points = new FakePoints<Methods<T>>();
  const port = new Proxy(target, {
    get(object, name) {
      const value: unknown = Reflect.get(object, name, object);
      if (typeof value !== 'function') return value;
      if (name === 'listen') return value.bind(object); // answers at once, with no promise
      return (...args: unknown[]) => points.run(name as Methods<T>, () => Reflect.apply(value, object, args));
    },
  });
  return { port, points };
}
