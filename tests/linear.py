"""linear.py: could one lease table, used by one caller after another, have
given all these answers? A search for an order that says yes.

    ops = checker.read(paths)                  # what clients wrote down
    for problem in linear.problems(ops): ...

HOW IT WORKS: Wing and Gong's search with Lowe's memory of what was tried, for
each resource by itself (a history is linearizable when those of its objects
are). Whoever ended before another began comes first; an answer that never came
may have been given at any time after its question, or never. Tokens grow along
the order. What a call does, and how leases end by time, is in steps.py. No
event log is read.

Two things are as the service means them and not as a textbook would:

* A grant over HTTP is refused while others wait ahead, held or not.
* A renewal is seen when it is committed. A read that overlaps it may still go
  by the promise before: it says "over", which is the safe side.

Calls: grant, renew, release, revoke change; check and list (the holders and
newest tokens of lease_active) only read. Times are ns of the boot clock.
"""

from dataclasses import replace

from steps import EMPTY, STEPS

BUDGET = 200_000


class Undecided(Exception):
    """The search became too large."""


class Search:
    """One resource."""

    def __init__(self, ops):
        ops = sorted(ops, key=lambda op: op.start)
        for number, op in enumerate(ops):
            op.number = number
        self.known = [op for op in ops if op.outcome != "unknown"]
        self.maybe = [op for op in ops if op.outcome == "unknown"
                      and op.op in ("grant", "renew", "release", "revoke")]
        self.bit = {op.number: 1 << n
                    for n, op in enumerate(self.known + self.maybe)}
        self.all = (1 << len(self.known)) - 1
        self.ordered = self.order(ops)

    @staticmethod
    def order(ops):
        """Numbers of events, where an answer tells one, and only one can be
        meant. And what a repeated grant tells of one without an answer."""
        asked, order = {}, {}
        for op in ops:
            key = op.args.get("key")
            if op.op == "grant" and key is not None:
                asked.setdefault(key, []).append(op)
        for same in asked.values():
            told = [op.result.get("epoch", op.token) for op in same
                    if op.outcome == "ok"]
            for op in same:
                if told and op.outcome == "unknown":
                    op.result = dict(op.result, likely=told[0])
        for op in ops:
            number = op.result.get("order")
            if number is None and op.outcome == "ok" and (
                    op.op == "renew" or (op.op == "grant" and len(
                        asked.get(op.args.get("key"), "1")) == 1)):
                number = op.token
            if number is not None:
                order[op.number] = number
        return order

    def candidates(self, mask):
        """The calls that may come next, the likeliest first; and the end of
        the first to end, by which they must have come."""
        first = (~mask & (mask + 1)).bit_length() - 1
        limit, waiting = float("inf"), []
        for op in self.known[first:]:
            if op.start > limit:
                break
            if not mask & self.bit[op.number]:
                limit = min(limit, op.end)
                waiting.append(op)
        waiting = [op for op in waiting if op.start <= limit]
        orders = [self.ordered[op.number] for op in waiting
                  if op.number in self.ordered]
        least = min(orders, default=None)
        waiting = [op for op in waiting
                   if self.ordered.get(op.number, least) == least]
        waiting.sort(key=lambda op: op.end)
        return limit, waiting + [
            op for op in self.maybe
            if op.start <= limit and not mask & self.bit[op.number]]

    def moves(self, mask, state):
        limit, candidates = self.candidates(mask)
        for op in candidates:
            low = max(op.start, state.now)
            if low > limit:
                continue
            for after in STEPS[op.op](state, op, low, limit):
                yield mask | self.bit[op.number], after

    def run(self, budget=BUDGET):
        """None when there is an order; else a sentence. Undecided when the
        budget of states is spent."""
        tried, best = set(), (0, EMPTY)
        stack = [iter([(0, EMPTY)])]
        while stack:
            node = next(stack[-1], None)
            if node is None:
                stack.pop()
                continue
            mask, state = node
            if mask & self.all == self.all:
                return None
            if node in tried:
                continue
            tried.add(node)
            if len(tried) > budget:
                raise Undecided(len(tried))
            if (mask & self.all).bit_count() > (best[0] & self.all).bit_count():
                best = node
            stack.append(self.moves(mask, state))
        return self.told(*best)

    def told(self, mask, state):
        _, stuck = self.candidates(mask)
        lines = "\n  ".join(str(op) for op in stuck)
        return (f"no order explains the answers: after "
                f"{(mask & self.all).bit_count()} calls, with {state}, none of "
                f"these can come next:\n  {lines}")


def by_resource(ops):
    """The calls of each resource, without those that promise that nothing was
    done. A list is one of all of them: each gets its part of it."""
    ops = [op for op in ops if op.outcome != "failed"]
    parts = {}
    for op in ops:
        if op.resource is not None:
            parts.setdefault(op.resource, []).append(op)
    for op in ops:
        for resource, part in parts.items():
            if op.op == "list" and op.outcome == "ok" and resource.startswith(
                    op.args.get("prefix", "")):
                part.append(replace(op, result={
                    "leases": op.result["leases"].get(resource, [])}))
    return parts


def problems(ops, undecided=None, budget=BUDGET):
    """A sentence for each resource that no order explains. Those that were
    too large are added to the list undecided."""
    for resource, part in by_resource(ops).items():
        try:
            found = Search(part).run(budget)
        except Undecided:
            if undecided is None:
                raise
            undecided.append(resource)
            continue
        if found:
            yield f"{resource}: {found}"
