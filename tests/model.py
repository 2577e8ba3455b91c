"""model.py: the rules of a lease in plain Python, to compare the engine with.

    state = model.State()
    world = model.World(boot_ms=0, wall_ms=1_700_000_000_000, boot_id="b")
    state.grant(world, "shard/0", "w1", 30)                # 1, the token
    state.active(world)                                    # rows, one each

One State is what one snapshot of a database holds; copy() stands for BEGIN
and SAVEPOINT. Seconds outside, milliseconds inside. A refusal is None or 0, a
misuse raises Misuse with "error" or "constraint". No SQL in here: this is
written from the rules, not from the statements.
"""

from dataclasses import dataclass, field, replace

TRIM_EVERY, TRIM_STEP = 64, 128
DEFAULT_CONFIG = {"min_ttl": 100, "max_ttl": 86_400_000, "event_rows": 100_000}


class Misuse(Exception):
    """What a function answers with an SQL error, and which kind."""


@dataclass
class World:
    """The kernel's clocks, as a test sets them."""
    boot_ms: int
    wall_ms: int
    boot_id: str


@dataclass(frozen=True)
class Event:
    token: int
    at: int
    event: str
    resource: str = None
    holder: str = None
    epoch: int = None
    ttl: int = None
    capacity: int = None
    data: str = None
    request_id: str = None
    reason: str = None
    expires_at: int = None


@dataclass(frozen=True)
class Lease:
    resource: str
    holder: str
    token: int
    epoch: int
    capacity: int
    ttl: int
    granted_at: int
    renewed_at: int
    expires_at: int
    data: str


@dataclass
class State:
    schema: bool = False
    events: dict = field(default_factory=dict)   # token -> Event, ascending
    leases: dict = field(default_factory=dict)   # (resource, holder) -> Lease
    fences: dict = field(default_factory=dict)
    config: dict = field(default_factory=lambda: dict(DEFAULT_CONFIG))
    last: int = 0                                # highest number issued
    boot_id: str = None
    anchor: int = 0
    trim_from: int = 0
    trim_to: int = 0
    mine: list = field(default_factory=list)     # the host's own table
    writes: int = 0                              # changes so far
    doubts: int = 0                              # what may have been one

    def copy(self):
        return replace(self, events=dict(self.events),
                       leases=dict(self.leases), fences=dict(self.fences),
                       config=dict(self.config), mine=list(self.mine))

    # --- time ---------------------------------------------------------------

    def _anchor_now(self, world):
        """The anchor in force, or the one that a write would store now."""
        if self.boot_id == world.boot_id:
            return self.anchor
        instant = world.wall_ms
        if self.events:
            instant = max(instant, self.events[max(self.events)].at)
        return instant - world.boot_ms

    def now_ms(self, world):
        return self._anchor_now(world) + world.boot_ms

    def now(self, world):
        return self.now_ms(world) / 1000

    def _start(self, world):
        """What every writing function does first: the schema, the clock."""
        self.init()
        if self.boot_id != world.boot_id:
            self.anchor = self._anchor_now(world)
            self.boot_id = world.boot_id
            self.writes += 1
        return self.now_ms(world)

    # --- the log and its projection -----------------------------------------

    def _append(self, event, token=None, **more):
        token = token or self.last + 1
        self.events[token] = Event(token=token, event=event, **more)
        self.last = max(self.last, token)
        self.writes += 1
        if token % TRIM_EVERY == 0:
            self._trim(self.events[token])
        return token

    def _needed(self, event, now):
        lease = self.leases.get((event.resource, event.holder))
        return lease is not None and lease.epoch == event.epoch and (
            event.token in (lease.epoch, lease.token)
            or event.expires_at > now)

    def _trim(self, newest):
        limit = newest.token - self.config["event_rows"]
        step = sorted(t for t in self.events
                      if self.trim_to < t <= limit)[:TRIM_STEP]
        self.trim_from = self.trim_to
        self.trim_to = step[-1] if step else 0
        for token in step:
            if not self._needed(self.events[token], newest.at):
                del self.events[token]
        if not any(self.trim_to < t <= limit for t in self.events):
            self.trim_to = 0

    def _end(self, event, lease, now, **more):
        token = self._append(event, at=now, resource=lease.resource,
                             holder=lease.holder, epoch=lease.epoch,
                             expires_at=lease.expires_at, **more)
        del self.leases[lease.resource, lease.holder]
        return token

    def _of(self, resource):
        return [l for (r, _), l in sorted(self.leases.items())
                if r == resource]

    def _ttl_ms(self, ttl):
        ms = round(ttl * 1000)
        if not self.config["min_ttl"] <= ms <= self.config["max_ttl"]:
            raise Misuse("error")
        return ms

    def _proved(self, resource, token, now):
        """The lease in force that this token proves, or None."""
        event = self.events.get(token)
        if event is None or event.resource != resource \
                or event.event not in ("granted", "renewed"):
            return None
        lease = self.leases.get((resource, event.holder))
        if lease is None or lease.epoch != event.epoch \
                or lease.expires_at <= now:
            return None
        if token in (lease.epoch, lease.token) or event.expires_at > now:
            return lease
        return None

    # --- the functions ------------------------------------------------------

    def init(self):
        self.writes += not self.schema
        self.schema = True
        return 1

    def grant(self, world, resource, holder, ttl, capacity=1, data=None,
              request_id=None):
        self.init()
        ttl = self._ttl_ms(ttl)
        now = self._start(world)
        before = [e for e in self.events.values()
                  if request_id is not None and e.request_id == request_id
                  and (e.resource, e.holder) == (resource, holder)]
        if before:
            if (before[0].ttl, before[0].capacity, before[0].data) \
                    != (ttl, capacity, data):
                raise Misuse("constraint")
            lease = self.leases.get((resource, holder))
            alive = lease is not None and lease.epoch == before[0].token \
                and lease.expires_at > now
            return lease.token if alive else None
        mine = self._of(resource)
        active = [l for l in mine if l.expires_at > now]
        if any(l.holder == holder for l in active) or \
                len(active) >= min([capacity] + [l.capacity for l in active]):
            return None
        for lease in mine:
            if lease.expires_at <= now:
                self._end("expired", lease, now)
        token = self.last + 1
        self._append("granted", at=now, resource=resource, holder=holder,
                     epoch=token, ttl=ttl, capacity=capacity, data=data,
                     request_id=request_id, expires_at=now + ttl)
        self.leases[resource, holder] = Lease(
            resource, holder, token, token, capacity, ttl, now, now,
            now + ttl, data)
        return token

    def renew(self, world, resource, token, ttl=None):
        now = self._start(world)
        ttl = None if ttl is None else self._ttl_ms(ttl)
        lease = self._proved(resource, token, now)
        if lease is None:
            return None
        ttl = lease.ttl if ttl is None else ttl
        until = max(lease.expires_at, now + ttl)
        new = self._append("renewed", at=now, resource=resource,
                           holder=lease.holder, epoch=lease.epoch, ttl=ttl,
                           expires_at=until)
        self.leases[resource, lease.holder] = replace(
            lease, token=new, ttl=ttl, renewed_at=now, expires_at=until)
        return new

    def release(self, world, resource, token):
        now = self._start(world)
        lease = self._proved(resource, token, now)
        if lease is None:
            return 0
        self._end("released", lease, now)
        return 1

    def revoke(self, world, resource, holder=None, reason=None):
        now = self._start(world)
        taken = [l for l in self._of(resource)
                 if l.expires_at > now and holder in (None, l.holder)]
        for lease in taken:
            self._end("revoked", lease, now, reason=reason)
        return len(taken)

    def sweep(self, world, limit=1000):
        now = self._start(world)
        over = sorted((l for l in self.leases.values()
                       if l.expires_at <= now),
                      key=lambda l: (l.expires_at, l.epoch))
        for lease in over[:limit]:
            self._end("expired", lease, now)
        return len(over[:limit])

    def restore(self, world, margin=None):
        now = self._start(world)
        newest = self.events[max(self.events)].at if self.events else now
        margin = margin or 1000 * max(1000, now - newest)
        return self._append("restored", token=self.last + margin, at=now)

    def fence(self, resource, token):
        self.init()
        highest = self.fences.get(resource, 0)
        if token < highest:
            raise Misuse("constraint")
        self.writes += token > highest
        self.fences[resource] = token
        return token

    def set(self, name, value):
        self.init()
        new = dict(self.config)
        new[name] = value if name == "event_rows" else round(value * 1000)
        if new["min_ttl"] > new["max_ttl"]:
            raise Misuse("error")
        self.writes += new != self.config
        self.config = new
        return value

    def check(self, world, resource, token, min_remaining=0):
        now = self.now_ms(world)
        lease = self._proved(resource, token, now)
        return int(lease is not None
                   and lease.expires_at - now >= round(min_remaining * 1000))

    def why(self, world, resource, token):
        event = self.events.get(token)
        if event is None or event.resource != resource \
                or event.event not in ("granted", "renewed"):
            return "unknown"
        if self._proved(resource, token, self.now_ms(world)):
            return "active"
        for end in self.events.values():
            if end.epoch == event.epoch and end.event in (
                    "released", "revoked", "expired"):
                return end.event
        return "expired"

    def active(self, world):
        now = self.now_ms(world)
        return [(l.resource, l.holder, l.token, l.epoch, l.capacity,
                 l.ttl / 1000, l.granted_at / 1000, l.renewed_at / 1000,
                 l.expires_at / 1000, (l.expires_at - now) / 1000, l.data)
                for _, l in sorted(self.leases.items())
                if l.expires_at > now]

    def log(self):
        return [(e.token, e.at, e.event, e.resource, e.holder, e.epoch,
                 e.ttl, e.capacity, e.data, e.request_id, e.reason,
                 e.expires_at) for e in self.events.values()]
