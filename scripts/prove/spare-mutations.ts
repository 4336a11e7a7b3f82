import { MEMORY, type Mutation, rulesOf } from './mutation.ts';

const SPARES = ['spares', 'spare-plan', 'abandoned-starts', 'holds-up-nobody'].map(
  (name) => `test/unit/${name}.test.ts`,
);

/** How spares are made, taken once, and removed. */
// biome-ignore format: one row a rule
export const SPARE_MUTATIONS: readonly Mutation[] = [
  ...rulesOf('src/leases/memory-spares.ts', MEMORY, [
    ['spares: one that was taken out stays out', 'if (!this.#taken.has(spare.container)) ', ''],
    ['spares: of two one gets it', '    this.#waiting.delete(container);\n', ''],
    ['spares: of the same profile and spec', 'if (spare.profile !== profile || spare.spec !== spec) continue;', ''],
    ['spares: the oldest first', 'first === null || isBefore(spare, first)', 'first === null || isBefore(first, spare)'],
    ['spares: one that was claimed is not retired', "if (this.#taken.get(container)?.by === 'start') return false;", ''],
    ['spares: one tends the pool', 'if (this.#tender !== null && this.#tender.owner !== owner && this.#tender.until > now) return false;', ''],
    ['spares: whoever does not tend it leaves nothing', 'if (this.#tender?.owner === owner) this', 'this'],
  ]),
  ...rulesOf('src/leases/memory-store.ts', MEMORY, [
    ['spares: to my start of this fence only', "isMine(stored, at, 'starting', fence) ? spares", 'stored !== null ? spares'],
  ]),
  ...rulesOf('src/lifecycle/spare-plan.ts', SPARES, [
    ['spares: one that does not run is no use', '.filter(({ container }) => running.has(container))', ''],
    ['spares: nor one of an older spec', ' && spare.spec === spec', ''],
    ['spares: nor one of another engine', ' && spare.engine === scene.engine', ''],
    ['spares: they have what sandboxes leave', 'Math.max(0, maxSandboxes - pool.sandboxes)', 'maxSandboxes'],
    ['spares: what is left is shared out', '    room -= wanted;\n', ''],
    ['spares: the oldest go first', '.sort((a, b) => b.createdAt - a.createdAt)', '.sort((a, b) => a.createdAt - b.createdAt)'],
    ['spares: one that is being started is left', '.filter(({ id }) => scene.isForgotten(id))', ''],
    ['spares: what is of no use goes', 'pool.spares.filter(({ container }) => !used.has(container))', '[] as typeof forgotten'],
  ]),
  ...rulesOf('src/lifecycle/spares.ts', SPARES, [
    ['spares: one replica at a time', 'return this.#tending ? plan : null;', 'return plan;'],
    ['spares: a slow start keeps the pool', 'if (this.#tending) await', 'if (false as boolean) await'],
    ['spares: demand goes first', 'if (starter.idle) {', 'if (true as boolean) {'],
    ['spares: those that end at once are not made again and again', ' || left === 0', ''],
    ['spares: not again at once after a failure', 'this.#pauses.failed(profile.name, clock.monotonic());', ''],
    ['spares: the pause ends with a success', 'this.#pauses.succeeded(profile.name);', ''],
    ['spares: a start that failed is removed', 'if (made !== null) await teardown.removeSpare(made);', ''],
    ["spares: no peer's at shutdown", " && labels.owner === store.owner", ''],
    ['spares: forgotten after a lease', '>= leaseMs', '>= 0'],
  ]),
  ...rulesOf('src/lifecycle/teardown.ts', SPARES, [
    ['spares: one that was claimed is not removed', "if (!retired && !forgotten) return 'kept';", ''],
    ['spares: one whose claimer is gone is removed', ' && !forgotten', ''],
    ['spares: one that has another name is not removed', "if (!(await runtime.condemnSpare(spare))) return 'kept';", 'await runtime.condemnSpare(spare);'],
  ]),
  ...rulesOf('src/lifecycle/starts.ts', SPARES, [
    ['spares: nor is whatever else has the name', ' && seen.container.id === container', ''],
    ['spares: a start that found its spare dead goes on', 'if (!fit) return lookAgain(reply);', "if (!fit) return 'moved';"],
    ['spares: none but those of a profile that wants some', 'if (profile.spares === 0) return null;', ''],
    ['spares: a start that fails names it', '    made(container);\n', ''],
  ]),
  ...rulesOf('src/lifecycle/shutdown.ts', SPARES, [
    ['spares: a peer may tend the pool at once', '    await spares.leave();\n', ''],
    ['spares: those of a replica go with it', 'const removed = spares.removeOwn()', 'const removed = Promise.resolve()'],
  ]),
];
