"""steps.py: a lease table as clients see it from outside, for linear.py.

    for after in STEPS["grant"](state, op, low, high): ...

Each step yields every state that the call may leave behind, when it was decided
between low and high (ns of the boot clock) and its answer, if there is one, is
true. No state: it cannot have been. Written from the rules of a lease, not from
the statements.

Leases end by time. Of an instant we know only in which call it lies, so a state
keeps for each lease the earliest and the latest end that is possible, and every
answer narrows it: "refused" at 10 to 12 ms says that the lease ran beyond 10.
HTTP tells the end itself; then the two are one. No true history is refused.
What is let pass is at most the length of a call too early.
"""

from collections import namedtuple

MS = 1_000_000

# until, and the second of each of tokens: (earliest, latest) end. before: the
# until before the last renewal, and the end of that call; or None.
Tenure = namedtuple("Tenure", "number holder capacity key until tokens before")
# now: the writes so far were decided no earlier than that.
State = namedtuple("State", "tenures over_keys top now")
EMPTY = State((), frozenset(), 0, 0)


# --- what a call can do to a state -------------------------------------------

def judged(tenures, low, high):
    """Every way to call these tenures in force or over at one instant from low
    to high: (low, high, in force, over), narrowed to where it is true."""
    if not tenures:
        yield low, high, (), ()
        return
    first, rest = tenures[0], tenures[1:]
    begin, end = first.until
    if end > low:
        alive = first._replace(until=(max(begin, low), end))
        for a, b, active, over in judged(rest, low, min(high, end)):
            yield a, b, (alive, *active), over
    if begin <= high:
        dead = first._replace(until=(begin, min(end, high)))
        for a, b, active, over in judged(rest, max(low, begin), high):
            yield a, b, active, (dead, *over)


def proof(state, token):
    """The tenure that the token belongs to, from when to when it ends to be a
    proof, and whether that is the end of the tenure; or thrice None."""
    for tenure in state.tenures:
        for place, (own, until) in enumerate(tenure.tokens):
            if own == token:
                whole = place in (0, len(tenure.tokens) - 1)
                return tenure, tenure.until if whole else until, whole
    return None, None, None


def end_window(op, low, high, least=(0, 0)):
    """From when to when a lease decided at low to high may end; None when the
    answer says something else. With an answer, low follows from it."""
    ttl = round(op.args["ttl"] * 1000) * MS
    window = max(least[0], low + ttl), max(least[1], high + ttl + MS)
    told = op.result.get("expires")
    if told is None:
        return window, low
    if not window[0] <= told <= window[1]:
        return None, low
    fresh = told > least[1]
    return (told, told), max(low, told - ttl - MS) if fresh else low


def put(state, tenures, now):
    return state._replace(tenures=tuple(sorted(tenures)), now=now)


def without(state, tenure):
    keys = state.over_keys
    if tenure.key is not None:
        keys |= {tenure.key}
    return state._replace(over_keys=keys, tenures=tuple(
        t for t in state.tenures if t.number != tenure.number))


def swap(state, old, new):
    return tuple(new if t.number == old.number else t for t in state.tenures)


def grant(state, op, low, high):
    key = op.args.get("key")
    if key is not None and key in state.over_keys:
        if op.outcome == "refused":
            yield state
        return
    mine = [t for t in state.tenures if key is not None and t.key == key]
    if mine:
        yield from grant_again(state, op, mine[0], low, high)
        return
    if op.outcome == "refused" and op.result.get("why"):
        return
    if op.outcome == "refused" and op.result.get("ahead"):
        yield state
        return
    for a, b, active, over in judged(state.tenures, low, high):
        if a > b:
            continue
        room = min([op.args.get("capacity", 1)] + [t.capacity for t in active])
        held = len(active) >= room or any(
            t.holder == op.args["holder"] for t in active)
        if held and op.outcome == "refused":
            yield put(state, active + over, a)
        elif not held and op.outcome != "refused":
            yield from granted(state, op, a, b, active, over)


def grant_again(state, op, mine, low, high):
    """The same request_id as before."""
    for a, b, active, _ in judged((mine,), low, high):
        if a > b or op.outcome == "unknown":
            continue
        if not active and op.outcome == "refused":
            yield state
        elif active and op.outcome == "ok":
            yield from bound(put(state, swap(state, mine, active[0]), a),
                             active[0], op.token)


def granted(state, op, low, high, active, over):
    token = op.token or op.result.get("likely")
    window, now = end_window(op, low, high)
    if window is None or (token is not None and token <= state.top):
        return
    keys = state.over_keys | {t.key for t in over if t.key is not None}
    new = Tenure(op.number, op.args["holder"], op.args.get("capacity", 1),
                 op.args.get("key"), window, ((token, window),), None)
    yield State(tuple(sorted(active + (new,))), keys, token or state.top, now)


def bound(state, tenure, token):
    """The newest token is seen: it is that one, or was not known before."""
    newest, window = tenure.tokens[-1]
    if newest == token:
        yield state
    elif newest is None and all(
            t is None or t < token for t, _ in tenure.tokens[:-1]):
        tokens = (*tenure.tokens[:-1], (token, window))
        yield state._replace(tenures=swap(state, tenure, tenure._replace(
            tokens=tokens)))


def proved(state, op, low, high):
    """(low, high, tenure or None) for each way to judge the token."""
    tenure, window, whole = proof(state, op.args["token"])
    if tenure is None:
        yield low, high, None, state
        return
    for a, b, active, over in judged((tenure._replace(until=window),), low,
                                     high):
        if a <= b:
            found = (active or over)[0] if whole else tenure
            yield (a, b, found if active else None,
                   put(state, swap(state, tenure, found), a))


def renew(state, op, low, high):
    for a, b, tenure, after in proved(state, op, low, high):
        if tenure is None:
            if op.outcome == "refused":
                yield after._replace(now=a)
            continue
        if op.outcome == "refused":
            continue
        window, now = end_window(op, a, b, tenure.until)
        if window is None or (op.token is not None and op.token <= state.top):
            continue
        new = tenure._replace(
            until=window, tokens=(*tenure.tokens, (op.token, window)),
            before=(tenure.until, op.end))
        yield after._replace(tenures=swap(after, tenure, new), now=now,
                             top=op.token or state.top)


def release(state, op, low, high):
    said = op.outcome == "unknown" or op.result["released"]
    for a, _, tenure, after in proved(state, op, low, high):
        if tenure is None:
            if not said:
                yield after._replace(now=a)
        elif said:
            yield without(after, tenure)._replace(now=a)


def revoke(state, op, low, high):
    holder = op.args.get("holder")
    asked = tuple(t for t in state.tenures if holder in (None, t.holder))
    others = tuple(t for t in state.tenures if holder not in (None, t.holder))
    for a, b, active, over in judged(asked, low, high):
        if a > b or (op.outcome == "unknown" and not active):
            continue
        if op.outcome != "unknown" and op.result["revoked"] != len(active):
            continue
        after = put(state, active + over + others, a)
        for tenure in active:
            after = without(after, tenure)
        yield after


# --- reads: what they saw lies within the call, changes nothing ---------------

def seen(state, tenure, op, alive, window, whole=True):
    """The state after a read found the tenure alive or not."""
    begin, end = window
    if alive:
        if end <= op.start:
            return
        window = max(begin, op.start), end
    elif begin <= op.end:
        window = begin, min(end, op.end)
    elif not (tenure.before and op.start <= tenure.before[1]
              and tenure.before[0][0] <= op.end):
        return
    if whole:
        state = state._replace(tenures=swap(
            state, tenure, tenure._replace(until=window)))
    yield state


def check(state, op, _low, _high):
    tenure, window, whole = proof(state, op.args["token"])
    if tenure is not None:
        yield from seen(state, tenure, op, op.outcome == "ok", window, whole)
    elif op.outcome == "refused":
        yield state


def listed(state, op, _low, _high):
    shown = dict(op.result["leases"])
    states = [state]
    for tenure in state.tenures:
        token = shown.pop(tenure.holder, None)
        after = []
        for s in states:
            for t in seen(s, tenure, op, token is not None, tenure.until):
                now = next(x for x in t.tenures if x.number == tenure.number)
                after += bound(t, now, token) if token is not None else [t]
        states = after
    return [] if shown else states


STEPS = {"grant": grant, "renew": renew, "release": release, "revoke": revoke,
         "check": check, "list": listed}
