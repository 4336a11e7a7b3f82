import type { Container, ContainerState } from '../../src/domain/container.ts';
import { BrokerError } from '../../src/domain/errors.ts';
import { asContainerId, asEngineMark, type ContainerId, type EngineMark } from '../../src/domain/ids.ts';
import { parseContainerName } from '../../src/domain/names.ts';
import type { Profile } from '../../src/domain/profile.ts';
import type { ContainerChange, PostMortem, Watcher } from '../../src/runtime/container-runtime.ts';
import { FakeRuntime } from './fake-runtime.ts';

/** One container inside the fake engine; tests may change its fields. */
export interface FakeContainer {
  readonly id: ContainerId;
  name: string;
  /** Null: somebody else's, without labels. */
  readonly deployment: string | null;
  readonly profile: Profile | null;
  readonly labels: Container['labels'];
  readonly createdAt: number;
  state: ContainerState;
  /** The published port; a new one at each start. */
  port: number | null;
  end: PostMortem | null;
}

export interface FakeEngineOptions {
  readonly now?: () => number;
}

/**
 * A container engine in memory, shared by the replicas that a test makes of it. It has no timers: what happens,
 * happens in a call or by a test's hand.
 */
export class FakeEngine {
  readonly now: () => number;
  /** What its machine has. */
  resources = { memoryBytes: 64 * 2 ** 30, cpus: 16 };
  /** Images that are not there; any other one is. */
  readonly #missing = new Map<string, 'pullable' | 'unpullable'>();
  readonly #watchers = new Set<{ readonly deployment: string; readonly changed: Watcher['changed'] }>();
  readonly #containers = new Map<ContainerId, FakeContainer>();
  readonly #marks = new Map<string, EngineMark>();
  readonly #shared = new Set<string>();
  readonly #neverReady = new Set<string>();
  #serial = 0;
  #port = 20_000;

  constructor({ now = () => 1_700_000_000_000 }: FakeEngineOptions = {}) {
    this.now = now;
  }

  /** Never the same twice; hexadecimal. */
  serial(): string {
    this.#serial += 1;
    return this.#serial.toString(16);
  }

  /** A replica's handle. Each has its own points at which calls can be stopped or made to fail. */
  replica(deployment: string, namePrefix = 'sandbox'): FakeRuntime {
    return new FakeRuntime({ engine: this, deployment, namePrefix });
  }

  get containers(): readonly FakeContainer[] {
    return [...this.#containers.values()];
  }

  get(container: ContainerId): FakeContainer {
    const found = this.#containers.get(container);
    if (found === undefined) throw new Error(`no container ${container} in the fake engine`);
    return found;
  }

  find(container: ContainerId): FakeContainer | undefined {
    return this.#containers.get(container);
  }

  named(name: string): FakeContainer | undefined {
    return this.containers.find((container) => container.name === name);
  }

  /** A name that is taken is the caller's matter. */
  add(fields: Pick<FakeContainer, 'name' | 'deployment' | 'profile' | 'labels'>): FakeContainer {
    const id = asContainerId(this.serial().padStart(12, '0').padEnd(64, 'f'));
    const createdAt = Math.floor(this.now() / 1000) * 1000;
    const container: FakeContainer = { ...fields, id, createdAt, state: 'created', port: null, end: null };
    this.#containers.set(id, container);
    return container;
  }

  /** Tells every watcher of the deployment. */
  tell(container: FakeContainer, kind: ContainerChange['kind'], exitCode: number | null = null): void {
    for (const { deployment, changed } of this.#watchers) {
      if (deployment === container.deployment) changed({ container: container.id, kind, exitCode });
    }
  }

  /** Until the returned function is called. */
  watch(deployment: string, changed: Watcher['changed']): () => void {
    const watcher = { deployment, changed };
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  rename(container: FakeContainer, name: string): void {
    container.name = name;
    this.tell(container, 'renamed');
  }

  /** A running container of somebody else. */
  addForeign(name: string): FakeContainer {
    const labels = { profile: null, spec: null, owner: null, fence: null, userId: null, threadId: null };
    const container = this.add({ name, deployment: null, profile: null, labels });
    this.run(container.id);
    return container;
  }

  run(container: ContainerId): void {
    const found = this.get(container);
    this.#port += 1;
    Object.assign(found, { state: 'running', port: this.#port, end: null });
    this.tell(found, 'started');
  }

  /** It ends by itself. */
  kill(container: ContainerId, end: Partial<PostMortem> = {}): void {
    const whole = { exitCode: 137, reason: 'killed', endedAt: this.now(), logTail: '', ...end };
    const found = this.get(container);
    Object.assign(found, { state: 'exited', port: null, end: whole });
    this.tell(found, 'ended', whole.exitCode);
  }

  pause(container: ContainerId): void {
    this.get(container).state = 'paused';
    this.tell(this.get(container), 'paused');
  }

  unpause(container: ContainerId): void {
    this.get(container).state = 'running';
    this.tell(this.get(container), 'started');
  }

  /** Removed without a trace, as by `docker rm -f`. */
  vanish(container: ContainerId): void {
    const found = this.#containers.get(container);
    if (found === undefined) return;
    this.#containers.delete(container);
    if (found.state === 'running') this.tell(found, 'ended', 137);
    this.tell(found, 'removed');
  }

  /** Containers of this profile never answer their readiness path, until `letReady`. */
  neverReady(profile: string): void {
    this.#neverReady.add(profile);
  }

  letReady(profile: string): void {
    this.#neverReady.delete(profile);
  }

  isReady(container: FakeContainer): boolean {
    return container.state === 'running' && !this.#neverReady.has(container.profile?.name ?? '');
  }

  mark(deployment: string): EngineMark {
    const mark = this.#marks.get(deployment) ?? asEngineMark(`mark-${this.serial()}`);
    this.#marks.set(deployment, mark);
    return mark;
  }

  sharedNote(deployment: string, leave: boolean): string | null {
    if (leave) this.#shared.add(deployment);
    return this.#shared.has(deployment) ? `shared-${deployment}` : null;
  }

  /** Another engine stands at the same address. */
  forgetMarks(): void {
    this.#marks.clear();
    this.#shared.clear();
  }

  view(container: FakeContainer, namePrefix: string): Container {
    const { id, name, state, labels, createdAt, port } = container;
    const url = state === 'running' && port !== null ? `http://127.0.0.1:${port}` : null;
    return { id, name, role: parseContainerName(namePrefix, name, id), state, labels, createdAt, url };
  }

  hasImage(image: string): boolean {
    return !this.#missing.has(image);
  }

  missImage(image: string, how: 'pullable' | 'unpullable'): void {
    this.#missing.set(image, how);
  }

  pull(image: string): void {
    if (this.#missing.get(image) === 'unpullable') {
      throw new BrokerError('image_unavailable', `image ${image} cannot be pulled`);
    }
    this.#missing.delete(image);
  }
}
