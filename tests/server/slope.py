# Whether something grows: a straight line through what was measured over time, and how sure that is.
import math


def quantile(freedom):
    """Of Student's t, what 2.5 % lie above: the expansion of Cornish and Fisher, three digits from 5 degrees on."""
    z = 1.959964
    return z + (z ** 3 + z) / (4 * freedom) + (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * freedom ** 2) + \
        (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / (384 * freedom ** 3)


def means(series, length):
    """Of blocks of one length: (time, value). What is measured soon after something else is like it, and counts for
    less than a measurement of its own; blocks that are long against that do not resemble each other."""
    first, blocks = series[0][0], {}
    for time, value in series:
        blocks.setdefault(int((time - first) / length), []).append((time, value))
    n_whole = int((series[-1][0] - first) / length)
    return [tuple(sum(column) / len(block) for column in zip(*block)) for i, block in sorted(blocks.items())
            if i < n_whole]


def slope(all_series, n_blocks=30):
    """Each series lists (seconds, value): they have one slope, and a height each. {"an_hour", "from", "to" (the
    interval of 95 %), "blocks"}, or None where there is too little."""
    length = sum(series[-1][0] - series[0][0] for series in all_series if series) / n_blocks
    groups = [means(series, length) for series in all_series if length and series]
    groups = [group for group in groups if len(group) > 1]
    freedom = sum(map(len, groups)) - len(groups) - 1
    if freedom < 5:
        return None
    points = []
    for group in groups:
        middle = [sum(column) / len(group) for column in zip(*group)]
        points += [(time - middle[0], value - middle[1]) for time, value in group]
    spread = sum(time ** 2 for time, _ in points)
    rise = sum(time * value for time, value in points) / spread
    rest = sum((value - rise * time) ** 2 for time, value in points)
    unsure = quantile(freedom) * math.sqrt(rest / freedom / spread)
    return {"an_hour": round(rise * 3600, 1), "from": round((rise - unsure) * 3600, 1),
            "to": round((rise + unsure) * 3600, 1), "blocks": len(points)}
