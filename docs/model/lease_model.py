"""Exhaustive check of the lease protocol in DESIGN.md, section 3.

Two replicas, one sandbox id.  Every store or container call is one atomic step; the steps of
different operations interleave in every possible way.  On top: leases expire (an owner that is
paused or cut off), the store loses everything or comes back with an older state (one such disaster),
replicas crash at any step, clients release or vanish.

    python3 lease_model.py [OPERATIONS=2] [CRASHES=1] [EXPIRIES=1]    all combinations of so many operations
    python3 lease_model.py ablate [RULE ...]            take one rule away: each must be missed

Safety:
  S1  nobody but an explicit destroy removes a running container that some client holds
  S2  a container runs and is not condemned when it is handed out, unless it was destroyed on purpose
  S3  never two containers of one id held at once
  S4  a sandbox that was destroyed and whose container is gone does not come back as ready by itself
(S2 is not judged in combinations with an explicit destroy.)
"""
import itertools
import sys
from collections import namedtuple

Record = namedtuple('Record', 'state owner fence container live holds idle epoch verified')
Container = namedtuple('Container', 'id alive condemned')
World = namedtuple('World', 'record containers next_id fence epoch snapshot clients pending deleted cache '
                            'expiries disasters snapshots leaves')
# holds: fences of the handouts that count as in use; UNKNOWN stands for whoever may be using it.
# epoch: the life of the store that wrote the record last; a store that came back starts a new one.
# verified: its container was seen fit since.  clients: {(container, fence)} answered, not left.
# pending: acquires about to answer (an acquire takes less than a hold lasts).  cache[replica]: None | (fence, container)
UNKNOWN = 0

RULES = dict(confirm=True, residue=True, condemn=True, refuse_condemned=True, strict_activate=True, holds=True,
             unknown_hold=True, epoch=True, verified=True, same_life=True, tombstone=True, adopt_running=True)
HAS_DESTROY = False


class Violation(Exception):
    pass


def find(w, cid):
    return next((c for c in w.containers if c.id == cid), None)


def named(w):
    return next((c for c in w.containers if not c.condemned), None)


def change(w, cid, **kw):
    return w._replace(containers=tuple(c._replace(**kw) if c.id == cid else c for c in w.containers))


def condemn(w, cid):
    """Rename by id; True when this very call did it."""
    c = find(w, cid)
    if not c or c.condemned or not RULES['condemn']:
        return w, False
    return change(w, cid, condemned=True), True


def give_back(w, cid):
    return change(w, cid, condemned=False) if find(w, cid) and named(w) is None else w


def may_give_back(w, decided):
    """Only who renamed it, and only in the life of the store in which that was decided."""
    return decided and (decided == w.epoch or not RULES['same_life'])


def remove(w, cid, explicit=False):
    c = find(w, cid)
    if c and c.alive and not explicit and cid not in w.deleted and any(i == cid for i, _ in w.clients):
        raise Violation(f'S1 container {cid} removed while a client holds it')
    if c and explicit:
        w = w._replace(deleted=w.deleted | {cid})
    return w._replace(containers=tuple(c for c in w.containers if c.id != cid))


def track(w, R, entry):
    cache = list(w.cache)
    cache[R] = entry
    return w._replace(cache=tuple(cache))


def forget(w, R, entry):
    return track(w, R, None) if w.cache[R] == entry else w


def write(w, **kw):
    base = w.record._asdict() if w.record else dict(holds=frozenset(), idle=False, verified=False)
    base.update(kw, epoch=w.epoch)
    return w._replace(record=Record(**base))


def into_this_life(w):
    """What every store operation does first: a record from before the store came back is not trusted."""
    r = w.record
    if r is None or r.epoch == w.epoch:
        return w
    if not RULES['epoch']:
        return w._replace(record=r._replace(epoch=w.epoch))
    holds = r.holds | {UNKNOWN} if r.state == 'ready' else r.holds
    return w._replace(record=r._replace(epoch=w.epoch, verified=False, holds=holds, idle=False))


def mine(r, R, f, state):
    return r is not None and r.owner == R and r.fence == f and r.state == state


def names(r, cid):
    return r is not None and r.container == cid and r.state == 'ready'


# --- operations: step(world, replica, (pc, ...)) -> [(world, next)] ------------------------------

def acquire(w, R, st):
    pc, r = st[0], w.record
    if pc == 'take':
        if r and r.state == 'starting' and r.live and r.owner != R:
            return [(w, st)]
        f = w.fence + 1
        w = w._replace(fence=f)
        if r is None or r.state == 'gone':
            return [(write(w, state='starting', owner=R, fence=f, container=None, live=True), ('look', f, None))]
        if r.state == 'ready' or (not RULES['residue'] and r.container):
            w = write(w, state='ready', owner=R, fence=f, live=True, holds=r.holds | {f}, idle=False)
            w = track(w._replace(pending=w.pending | {f}), R, (f, r.container))
            return [(w, ('answer' if r.verified or not RULES['verified'] else 'check', f, r.container))]
        w = write(w, state='starting', owner=R, fence=f, live=True, holds=frozenset(), idle=False, verified=False)
        return [(w, ('condemn', f, r.container, w.epoch) if r.container else ('look', f, None))]
    f, cid = st[1], st[2]
    if pc == 'condemn':                      # residue: condemn, confirm, remove
        w, did = condemn(w, cid)
        return [(w, ('confirm', f, cid, did and st[3]))]
    if pc == 'confirm':
        if mine(r, R, f, 'starting'):
            return [(write(w, live=True), ('remove', f, cid))]
        return [(give_back(w, cid) if may_give_back(w, st[3]) and names(r, cid) else w, ('take',))]
    if pc == 'remove':
        return [(remove(w, cid), ('look', f, None))]
    if pc == 'look':
        c = named(w)
        if c is None:
            return [(w, ('create', f, None))]
        return [(w, ('activate', f, c.id, 'found') if c.alive else ('name', f, c.id))]
    if pc == 'name':                         # a dead container holds the name: make it my residue
        return [(write(w, container=cid, live=True), ('condemn', f, cid, w.epoch))] if mine(r, R, f, 'starting') else [(w, ('take',))]
    if pc == 'create':
        if named(w):
            return [(w, ('look', f, None))]
        cid = w.next_id
        return [(w._replace(next_id=cid + 1, containers=w.containers + (Container(cid, True, False),)), ('activate', f, cid, 'made'))]
    if pc == 'activate':
        if not mine(r, R, f, 'starting') and (RULES['strict_activate'] or r is not None):
            return [(w, ('take',))]
        holds = frozenset({f, UNKNOWN}) if st[3] == 'found' and RULES['unknown_hold'] else frozenset({f})
        w = write(w, state='ready', owner=R, fence=f, container=cid, live=True, holds=holds, idle=False, verified=st[3] == 'made')
        w = track(w._replace(pending=w.pending | {f}), R, (f, cid))
        return [(w, ('answer' if st[3] == 'made' else 'check', f, cid))]
    if pc == 'check':
        c = find(w, cid)
        if c and c.alive and c.condemned and RULES['refuse_condemned']:
            return [(w, st)]                 # its remover finishes or gives it back; in the end the caller gets a 503
        return [(w, ('verify' if c and c.alive else 'restart', f, cid))]
    if pc == 'verify':
        if names(r, cid):
            return [(write(w, verified=True), ('answer', f, cid))]
        return [(w._replace(pending=w.pending - {f}), ('take',))]
    if pc == 'restart':                      # whoever saw it dead
        w = w._replace(pending=w.pending - {f})
        if names(r, cid):
            g = w.fence + 1
            return [(write(w._replace(fence=g), state='starting', owner=R, fence=g, live=True, holds=frozenset(), verified=False),
                     ('condemn', g, cid, w.epoch))]
        return [(w, ('take',))]
    if pc == 'answer':
        w = w._replace(pending=w.pending - {f})
        if cid in w.deleted:
            return [(w, ('done',))]
        c = find(w, cid)
        if (not c or not c.alive or (c.condemned and not names(r, cid))) and not HAS_DESTROY:
            raise Violation(f'S2 handed out {cid}: {c}')
        return [(w._replace(clients=w.clients | {(cid, f)}), ('done',))]
    raise AssertionError(pc)


def teardown(w, R, st, explicit=False):
    pc, f, cid, r = st[0], st[1], st[2], w.record
    if pc == 'condemn':
        w, did = condemn(w, cid)
        return [(w, ('confirm' if RULES['confirm'] else 'remove', f, cid, did and st[3]))]
    if pc == 'confirm':
        if r is None:
            return [(write(w, state='destroying', owner=R, fence=f, container=cid, live=True), ('remove', f, cid))]
        if mine(r, R, f, 'destroying'):
            return [(write(w, live=True), ('remove', f, cid))]
        if names(r, cid):
            return [(forget(give_back(w, cid) if may_give_back(w, st[3]) else w, R, (f, cid)), ('done',))]
        if r.state == 'starting' and r.container is None:
            return [(w, st)]                 # it may have found this container: ask again
        return [(w, ('done',))]              # whoever took the id over finishes it
    if pc == 'remove':
        return [(remove(w, cid, explicit), ('drop', f, cid))]
    if pc == 'drop':
        if mine(r, R, f, 'destroying'):      # a tombstone for one lease: nobody who remembers it brings it back
            w = write(w, state='gone', container=None, holds=frozenset(), verified=False) if RULES['tombstone'] else w._replace(record=None)
        return [(forget(w, R, (f, cid)), ('done',))]
    raise AssertionError(pc)


def unheld(w):
    return not w.record.holds or not RULES['holds']


def reap(w, R, st):                          # idle: my sandboxes, decided from what I remember
    if st[0] == 'remember':
        return [(w, ('claim',) + w.cache[R])] if w.cache[R] else [(w, ('done',))]
    if st[0] == 'claim':
        f, cid, r = st[1], st[2], w.record
        if mine(r, R, f, 'ready') and r.container == cid and unheld(w) and r.idle:
            return [(write(w, state='destroying', live=True), ('condemn', f, cid, w.epoch))]
        return [(w, ('done',))]
    return teardown(w, R, st)


def evict(w, R, st):                         # capacity: any sandbox that nobody holds, whoever owns it
    r = w.record
    if st[0] == 'remember':
        return [(w, ('claim', r.fence, r.container))] if r and r.state == 'ready' and unheld(w) else [(w, ('done',))]
    if st[0] == 'claim':
        f, cid = st[1], st[2]
        if not (names(r, cid) and r.fence == f and unheld(w)):
            return [(w, ('done',))]
        g = w.fence + 1
        return [(write(w._replace(fence=g), state='destroying', owner=R, fence=g, live=True), ('condemn', g, cid, w.epoch))]
    return teardown(w, R, st)


def destroy(w, R, st):                       # a client's wish: takes over from anybody
    if st[0] == 'remember':
        r = w.record
        if r is None or r.state in ('destroying', 'gone'):
            return [(w, ('done',))]
        if r.state == 'starting' and r.live:
            return [(w, st)]
        c = named(w)                         # an expired start is taken over with what holds its name, else its residue
        cid = c.id if r.state == 'starting' and c else r.container
        g = w.fence + 1
        if cid is None:
            return [(write(w._replace(fence=g), state='gone', owner=R, fence=g, live=True, holds=frozenset()), ('done',))]
        w = write(w._replace(fence=g, deleted=w.deleted | {cid}), state='destroying', owner=R, fence=g, live=True,
                  container=cid, holds=frozenset())
        return [(w, ('condemn', g, cid, w.epoch))]
    return teardown(w, R, st, explicit=True)


def reconcile(w, R, st):
    pc, r = st[0], w.record
    if pc == 'remember':
        c = named(w)
        return [(w, ('adopt', c.id if c else None, c is not None and c.alive))]
    if pc == 'adopt':
        cid = st[1]
        if r is None:
            if cid is None:
                return [(w, ('done',))]
            f = w.fence + 1
            holds = frozenset({UNKNOWN}) if RULES['unknown_hold'] else frozenset()
            w = write(w._replace(fence=f), state='ready', owner=R, fence=f, container=cid, live=True, holds=holds)
            return [(track(w, R, (f, cid)), ('done',))]
        if r.live or r.state == 'gone':
            return [(w, ('done',))]
        if r.state == 'starting':            # a start that was cut short
            f = w.fence + 1
            if cid and st[2] and RULES['adopt_running']:     # it may have found it, not made it: somebody may be using it
                w = write(w._replace(fence=f), state='ready', owner=R, fence=f, container=cid, live=True, verified=False,
                          holds=frozenset({UNKNOWN}))
                return [(track(w, R, (f, cid)), ('done',))]
            cid = cid or r.container         # finish it with what holds its name, else with its residue
            if cid is None:
                return [(write(w._replace(fence=f), state='gone', owner=R, fence=f, live=True), ('done',))]
            return [(write(w._replace(fence=f), state='destroying', owner=R, fence=f, live=True, container=cid), ('condemn', f, cid, w.epoch))]
        if r.state == 'ready':               # state, holds, fence stay; not stamped: nothing new is known about its use
            return [(track(w._replace(record=r._replace(owner=R, live=True)), R, (r.fence, r.container)), ('done',))]
        f = w.fence + 1                      # a dead peer's teardown: finish it
        return [(write(w._replace(fence=f), owner=R, fence=f, live=True), ('condemn', f, r.container, w.epoch))]
    return teardown(w, R, st)


def sweep(w, R, st):                         # what no acquire will ever hand out: seen twice, then the same steps
    pc, r = st[0], w.record
    def stray(cid):                          # a verified record names another container
        fit = r is not None and r.state == 'ready' and r.container != cid
        return fit and (r.verified or not RULES['verified'])
    def stuck(cid):                          # condemned, and named by a record that nobody can verify
        c = find(w, cid)
        return c and c.condemned and names(r, cid) and not r.verified
    def healthy(cid):                        # condemned in an earlier life, and seen fit in this one: nobody removes it any more
        c = find(w, cid)
        return c and c.condemned and names(r, cid) and r.verified
    if pc == 'remember':
        c = next((c for c in w.containers if stray(c.id) or stuck(c.id) or healthy(c.id)), None)
        return [(w, ('again', c.id))] if c else [(w, ('done',))]
    if pc == 'again':
        cid = st[1]
        if stray(cid):
            return [(w, ('condemn stray', cid))]
        if healthy(cid):
            return [(w, ('heal', cid))]
        if stuck(cid):
            g = w.fence + 1
            return [(write(w._replace(fence=g), state='destroying', owner=R, fence=g, live=True), ('condemn', g, cid, w.epoch))]
        return [(w, ('done',))]
    cid = st[1]
    if pc == 'heal':
        return [(give_back(w, cid), ('done',))]
    if pc == 'condemn stray':
        w, did = condemn(w, cid)
        return [(w, ('confirm stray', cid, did and w.epoch))]
    if pc == 'confirm stray':
        if stray(cid):
            return [(w, ('remove stray', cid))]
        return [(give_back(w, cid) if may_give_back(w, st[2]) and names(r, cid) else w, ('done',))]
    if pc == 'remove stray':
        return [(remove(w, cid), ('done',))]
    return teardown(w, R, st)


def renew(w, R, st):
    pc, r = st[0], w.record
    if pc == 'remember':
        return [(w, ('renew',) + w.cache[R])] if w.cache[R] else [(w, ('done',))]
    f, cid = st[1], st[2]
    if w.cache[R] != (f, cid) and pc != 'forget':
        return [(w, ('done',))]              # re-acquired since, or too old to act on
    if pc == 'renew':
        if r is None:
            return [(w, ('reassert', f, cid))]
        if mine(r, R, f, 'starting'):        # I remember it ready: the store went back to before its activation
            return [(w, ('reassert', f, cid))]
        if r.owner == R and r.fence == f:    # extends the lease only; not stamped
            return [(w if r.state == 'destroying' else w._replace(record=r._replace(live=True)), ('done',))]
        return [(w, ('reassert' if r.fence < f else 'forget', f, cid))]
    if pc == 'reassert':                     # no record, or one older than what I remember: the store went back
        if r is None or r.fence < f or mine(r, R, f, 'starting'):
            if cid in w.deleted and not find(w, cid) and w.disasters:
                raise Violation(f'S4 renewal brought {cid} back')
            g = w.fence + 1
            holds = frozenset({UNKNOWN}) if RULES['unknown_hold'] else frozenset()
            w = write(w._replace(fence=g), state='ready', owner=R, fence=g, container=cid, live=True, holds=holds,
                      idle=False, verified=False)
            return [(track(w, R, (g, cid)), ('done',))]
        return [(w, ('forget', f, cid))]
    if pc == 'forget':
        return [(forget(w, R, (f, cid)), ('done',))]
    raise AssertionError(pc)


def environment(w):
    r = w.record
    if r and r.state == 'gone':
        # a lease later: who could not renew for so long has stopped acting on what it remembers
        yield w._replace(record=None, cache=(None, None)), 'tombstone goes'
    if r and r.live and w.expiries:
        yield w._replace(record=r._replace(live=False), expiries=w.expiries - 1), 'lease expires'
    if r and w.disasters:
        yield w._replace(record=None, disasters=w.disasters - 1), 'store loses everything'
    if w.snapshots:
        yield w._replace(snapshot=r, snapshots=0), 'store takes a snapshot'
    if w.disasters and not w.snapshots and w.snapshot != r:
        yield w._replace(record=w.snapshot, disasters=w.disasters - 1, epoch=w.epoch + 1), 'store comes back with the snapshot'
    if r and r.state == 'ready' and r.epoch == w.epoch:
        using = {f for c, f in w.clients if c == r.container}
        if not r.holds and not r.idle and not w.pending:
            yield w._replace(record=r._replace(idle=True)), 'idle timeout passes'
        for h in r.holds:                    # a hold lasts while its client keeps it alive; clients keep all of theirs alive
            if h not in using and not w.pending and (h != UNKNOWN or using <= r.holds):
                yield w._replace(record=r._replace(holds=r.holds - {h})), f'hold {h} runs out'
        for f in using - r.holds:
            yield write(w, holds=r.holds | {f}, idle=False), f'keepalive {f}'
    for c, f in w.clients:
        if w.leaves:
            w2 = w._replace(clients=w.clients - {(c, f)}, leaves=w.leaves - 1)
            yield w2, f'client {f} vanishes'
            w2 = into_this_life(w2)
            if names(w2.record, c):
                yield write(w2, holds=w2.record.holds - {f}), f'client {f} releases'


def start(kind, expiries=1):
    none, c = frozenset(), (Container(1, True, False),)
    idle = Record('ready', 0, 1, 1, True, none, True, 1, True)
    base = dict(record=None, containers=c, next_id=2, fence=1, epoch=1, snapshot=None, clients=none, pending=none,
                deleted=none, cache=(None, None), expiries=expiries, disasters=1, snapshots=1, leaves=1)
    if kind == 'warm':
        base.update(record=idle, cache=((1, 1), None))
    elif kind == 'active':
        base.update(record=idle._replace(holds=frozenset({1}), idle=False), cache=((1, 1), None), clients=frozenset({(1, 1)}))
    elif kind == 'dead':
        base.update(record=idle._replace(verified=False), containers=(Container(1, False, False),), cache=((1, 1), None))
    elif kind == 'none':
        base.update(containers=(), next_id=1, fence=0)
    return World(**base)                     # 'orphan': a container, no record


STARTS = ('warm', 'active', 'orphan', 'dead', 'none')
OPERATIONS = dict(acquire=acquire, reap=reap, evict=evict, destroy=destroy, reconcile=reconcile, sweep=sweep, renew=renew)


def check(names_, kind, crashes, expiries=1, faults=None):
    global HAS_DESTROY
    HAS_DESTROY = any(n == 'destroy' for n, _ in names_)
    actors = [(OPERATIONS[n], R, ('take',) if n == 'acquire' else ('remember',)) for n, R in names_]
    world = start(kind, expiries)
    if faults:
        world = world._replace(**faults)
    first = (world, tuple(a[2] for a in actors), crashes)
    came_from, todo = {first: None}, [first]
    while todo:
        state = todo.pop()
        w, pcs, left = state
        used = {c.id for c in w.containers if c.alive and c.id not in w.deleted and any(i == c.id for i, _ in w.clients)}
        if len(used) > 1:
            return len(came_from), path(came_from, state) + [f'S3 two containers held: {used}']
        following = [((w2, pcs, left), why) for w2, why in environment(w)]
        for i, (step, R, _) in enumerate(actors):
            pc = pcs[i][0]
            if pc in ('done', 'crashed'):
                continue
            if left and pc not in ('take', 'remember'):
                gone = w._replace(pending=w.pending - {pcs[i][1]}) if step is acquire else w
                following.append(((gone, pcs[:i] + (('crashed',),) + pcs[i + 1:], left - 1),
                                  f'{step.__name__}{R} crashes at {pc}'))
            try:
                for w2, nxt in step(into_this_life(w), R, pcs[i]):
                    following.append(((w2, pcs[:i] + (nxt,) + pcs[i + 1:], left), f'{step.__name__}{R}: {pc}'))
            except Violation as v:
                return len(came_from), path(came_from, state) + [f'{step.__name__}{R}: {pc}  => {v}']
        for nxt, why in following:
            if nxt not in came_from:
                came_from[nxt] = (state, why)
                todo.append(nxt)
    return len(came_from), None


def path(came_from, state):
    lines = []
    while came_from[state]:
        before, why = came_from[state]
        r = state[0].record
        shown = r and f'{r.state} owner {r.owner} fence {r.fence} container {r.container} {"live" if r.live else "expired"} holds {set(r.holds)} idle {r.idle} epoch {r.epoch} verified {r.verified}'
        lines.append(f'{why:36} {shown}  {[tuple(c) for c in state[0].containers]}  clients {set(state[0].clients)}')
        state = before
    return lines[::-1]


def combinations(k):
    ops = [(n, R) for n in OPERATIONS for R in (0, 1)]
    for chosen in itertools.combinations_with_replacement(ops, k):
        if all(chosen.count(('acquire', R)) < 2 for R in (0, 1)):    # a replica runs one acquire of an id at a time
            yield chosen


def run(k, crashes, expiries=1, quiet=False, faults=None, progress=False):
    states = bad = 0
    for chosen in combinations(k):
        for kind in STARTS:
            n, trace = check(chosen, kind, crashes, expiries, faults)
            states += n
            if trace:
                bad += 1
                if not quiet and bad <= 3:
                    print(kind, chosen, *trace, sep='\n  ', flush=True)
                if quiet:
                    return states, chosen
        if progress:
            print(f'  {chosen}: {states} states so far, {bad} violating', file=sys.stderr, flush=True)
    return states, bad


if __name__ == '__main__':
    if sys.argv[1:2] == ['ablate']:
        missed = []
        for rule in sys.argv[2:] or RULES:
            RULES[rule] = False
            states, found = run(2, 0, quiet=True)
            if not found:
                states, found = run(3, 0, quiet=True)
            RULES[rule] = True
            print(f'without {rule:16}', 'violates with ' + str(found) if found else 'NOT MISSED', flush=True)
            if not found:
                missed.append(rule)
        sys.exit(1 if missed else 0)
    numbers = [int(a) for a in sys.argv[1:]] + [2, 1, 1][len(sys.argv) - 1:]
    states, bad = run(*numbers, progress=numbers[0] > 2)
    print(f'{numbers[0]} operations: {states} states, {bad} violating combinations')
    sys.exit(1 if bad else 0)
