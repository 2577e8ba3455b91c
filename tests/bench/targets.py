"""targets.py: what was to be reached, and whether it was."""

L = "Leasehold"
EMPTY, SKETCH, REDIS = "floor: empty FastCGI", "FastAPI sketch", "Redis SET NX PX"
ETCD, SESSION = "etcd: lease and transaction", "etcd: transaction of a session"


def http(system, work, clients):
    return "http", system, work, clients


def embedded(name):
    return "embedded", name, "µs", 0


PAIR = "floor: the bare pair, "


def grown(results):
    (few, _), (many, _) = sorted(
        ((int(k[1].split()[0].replace(",", "")), k[1])
         for k in results.figures if k[:1] == ("growth",) and k[2] == "grants"))
    return f"{few:,} leases", f"{many:,} leases"


def against(results, work):
    """By 64 clients, against floor and peers."""
    own = http(L, work, 64)
    yield (f"{work}, 64 clients, of the empty program",
           results.ratio(own, http(EMPTY, work, 64)), ">=", 0.6)
    for system in (ETCD, SESSION):
        kept_alive = work == "renew" and system == ETCD
        name = "etcd's keepalive, which writes nothing" if kept_alive \
            else system
        yield (f"{work}, 64 clients, times {name}",
               results.ratio(own, http(system, work, 64)), ">=",
               None if kept_alive else 2)
    yield (f"{work}, 64 clients, times the sketch",
           results.ratio(own, http(SKETCH, work, 64)), ">=", 10)
    yield (f"{work}, 64 clients, p99 in ms",
           results.get(*own, what="p99"), "<", 25)


def of_http(results):
    yield from against(results, "fresh")
    yield from against(results, "renew")
    one = http(L, "fresh", 1)
    yield ("fresh, 1 client, times etcd",
           results.ratio(one, http(ETCD, "fresh", 1)), ">=", 1.5)
    yield ("fresh, 1 client, fsyncs a grant",
           results.get(*one, what="fsyncs"), "<=", 1.05)
    yield ("fresh, 1 client, µs of the service's processor time",
           results.get(*one, what="service_us"), "<=", None)
    yield ("fresh, 1 client, µs of lighttpd's",
           results.get(*one, what="lighttpd_us"), "<=", None)
    floor = results.get(*embedded(PAIR + "processor"))
    if floor:
        yield ("fresh, 1 client, µs without what the bare pair takes",
               results.get(*one, what="service_us") - floor, "<=", 150)
    held = http(L, "contended", 64)
    yield ("contended, 64 clients, times fresh grants",
           results.ratio(held, http(L, "fresh", 64)), ">=", 1.2)
    yield ("contended, 64 clients, fsyncs a refusal",
           results.get(*held, what="fsyncs"), "<=", 0.001)


def of_batch(results):
    rate = max(results.get("batch", L, "100 renewals", c) for c in (8, 64))
    yield "renewals a second in batches of 100", rate, ">=", 40000
    redis = results.get(*http(REDIS, "fresh", 64))
    if redis:
        yield "the same, times Redis' single commands", rate / redis, ">=", 1


def of_embedded(results):
    for name, floor, least in (
            ("lease_grant, in a transaction", "in a transaction", 0.25),
            ("lease_renew, in a transaction", "in a transaction", 0.25),
            ("lease_grant, durable each", "durable each", 0.8)):
        yield (f"embedded: {name}, of the bare pair's rate",
               results.ratio(embedded(PAIR + floor), embedded(name)), ">=",
               least)


def of_growth(results):
    few, many = grown(results)
    yield (f"grants at {many}, of those at {few}", results.ratio(
        ("growth", many, "grants", 64), ("growth", few, "grants", 64)),
        ">=", 0.7)
    yield (f"start-up with {many}, ms",
           results.get("growth", many, "start-up"), "<", 1000)
    yield (f"memory with {many}, MiB",
           results.get("growth", many, "memory"), "<", 64)


def of_waits(results):
    for name, most in (("expiry", 20), ("release", 10)):
        yield (f"from {name} to the next grant, p99 in ms",
               results.get("waits", name, "to the next grant, p99"), "<=", most)


def met(value, how, bound):
    if bound is None:
        return ""
    fine = {">=": value >= bound, "<=": value <= bound, "<": value < bound}[how]
    return "met" if fine else "NOT MET"


def tell(results):
    there = {key[0] for key in results.figures}
    print("targets")
    for section, of in (("http", of_http), ("batch", of_batch),
                        ("embedded", of_embedded), ("growth", of_growth),
                        ("waits", of_waits)):
        for text, value, how, bound in of(results) if section in there else ():
            asked = "" if bound is None else f"{how} {bound:,}"
            print(f"  {text:62} {value:10,.2f}  {asked:10} "
                  f"{met(value, how, bound)}")
