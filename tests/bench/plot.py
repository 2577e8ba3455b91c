"""plot.py: the rates as bars in an SVG, one panel a kind of work, on a
logarithmic scale."""

import html
import math

COLOURS = ("#1f6feb", "#8b949e", "#d29922", "#e3b341", "#cf222e", "#8250df",
           "#2da44e")
WIDTH, HEIGHT, LEFT, TOP, GAP = 960, 230, 60, 60, 46


def bar(x, y, width, height, colour, title):
    return (f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
            f'height="{height:.1f}" fill="{colour}"><title>'
            f"{html.escape(title)}</title></rect>")


def text(x, y, what, anchor="start", size=12):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" '
            f'text-anchor="{anchor}">{html.escape(what)}</text>')


def panel(results, work, systems, clients, top, most):
    """Bars from 10 a second up to most."""
    decades = math.log10(most) - 1
    yield text(LEFT, top - 8, f"{work}: operations a second", size=14)
    for power in range(1, math.ceil(math.log10(most)) + 1):
        y = top + HEIGHT - (power - 1) / decades * HEIGHT
        if y >= top - 1:
            yield (f'<path d="M{LEFT} {y:.1f}H{WIDTH - 20}" '
                   'stroke="#d0d7de"/>')
            yield text(LEFT - 6, y + 4, f"{10 ** power:,}", "end")
    group = (WIDTH - LEFT - 20) / len(clients)
    for i, n in enumerate(clients):
        width = (group - 24) / len(systems)
        for k, system in enumerate(systems):
            rate = results.get("http", system, work, n)
            if not rate:
                continue
            height = max(1, (math.log10(max(rate, 10)) - 1) / decades * HEIGHT)
            x = LEFT + i * group + 12 + k * width
            y = top + HEIGHT - height
            yield bar(x, y, width - 2, height, COLOURS[k % len(COLOURS)],
                      f"{system}, {n} clients: {rate:,.0f}/s")
            yield text(x + width / 2 - 1, y - 3, f"{rate:,.0f}", "middle", 9)
        yield text(LEFT + (i + 0.5) * group, top + HEIGHT + 16,
                   f"{n} client{'s' * (n > 1)}", "middle")


def write(results, path, clients):
    keys = [key for key in results.figures if key[0] == "http"]
    if not keys:
        return
    systems, works = (list(dict.fromkeys(k[i] for k in keys)) for i in (1, 2))
    most = max(results.get(*key) for key in keys) * 1.3
    lines = []
    for k, system in enumerate(systems):
        x, y = LEFT + k % 4 * 220, 14 + k // 4 * 18
        lines += [bar(x, y - 9, 10, 10, COLOURS[k % len(COLOURS)], system),
                  text(x + 15, y, system)]
    top = TOP
    for work in works:
        lines += panel(results, work, systems, clients, top + 14, most)
        top += HEIGHT + GAP
    with open(path, "w", encoding="utf-8") as file:
        file.write('<svg xmlns="http://www.w3.org/2000/svg" '
                   f'viewBox="0 0 {WIDTH} {top + 10}" font-family="sans-serif">'
                   '<rect width="100%" height="100%" fill="#fff"/>\n'
                   + "\n".join(lines) + "\n</svg>\n")
