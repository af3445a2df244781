"""Drives by lot: surfaces, order of blocks, zones, skews, defects, heads, seeks and overheads."""

from __future__ import annotations

from random import Random

FILE = """
schema = 1
name = "walked"
summary = "a random drive"
reference = "made for this test"
[geometry]
surfaces = {surfaces}
layout = "{layout}"
{group}
track_skew = {track_skew!r}
cylinder_skew = {cylinder_skew!r}
[geometry.zones]
list = {zones}
{defects}
[interference]
s_id = {s_id}
s_od = {s_od}
[mechanics]
model = "full"
rpm = {rpm}
seek_over = "cylinders"
head_switch = "{head_switch} ns"
write_settle = "{settle} ns"
read_overhead = "{read_overhead} ns"
write_overhead = "{write_overhead} ns"
[mechanics.read_seek]
{seek}
"""


def seek_curve(rng: Random, shortest: int, cylinders: int) -> str:
    longest = shortest * rng.randint(3, 12)
    kind = rng.choice(("constant", "sqrt", "three-point", "table"))
    if kind == "constant":
        return f'curve = "constant"\ntime = "{shortest} ns"'
    if kind == "sqrt":
        return f'curve = "sqrt"\nbase = "{shortest} ns"\nspan = "{longest} ns"'
    if kind == "three-point":
        times = f'single = "{shortest} ns"\naverage = "{longest // 2} ns"\nfull_stroke = "{longest} ns"'
        return f'curve = "three-point"\n{times}'
    points = sorted({1, 2, *(rng.randint(3, cylinders + 3) for _ in range(3))})
    took = [shortest + rng.randint(0, longest) * (d > 1) for d in points]
    # A line that falls behind the last row is refused where it comes to 0 on the drive.
    took[-1] = max(took[-2:])
    return f'curve = "table"\nlist = {[[d, t] for d, t in zip(points, took, strict=True)]}'


def random_drive(rng: Random) -> str:
    surfaces = rng.randint(1, 4)
    layout = rng.choice(("surface", "cylinder", "cylinder-alternate", "hybrid"))
    zones = []
    for _ in range(rng.randint(1, 3)):
        sectors, cylinders = rng.choice((37, 96, rng.randint(20, 150))), rng.randint(20, 60)
        zones.append([cylinders, sectors, rng.choice((0, 0, rng.randint(0, 3))), rng.choice((0, 0, rng.randint(0, 2)))])
    rpm = rng.choice((5400, 7200, 10_000, 10_045))
    turn = 60e9 / rpm
    shortest, settle = rng.randint(0, int(turn / 4)), rng.choice((0, rng.randint(0, 300_000)))
    # Skews that just cover the switch, that do not quite, and any.
    covers = min((shortest + settle) / turn + rng.choice((1e-9, 1e-9, -1e-6)), 0.9)
    skew = rng.choice((0.0, covers, covers, rng.random() * 0.3))
    defects = []
    if layout != "hybrid" and rng.random() < 0.3:
        defects = [[rng.randrange(zones[0][0]), rng.randrange(surfaces), rng.randrange(3, 9)] for _ in range(4)]
    return FILE.format(
        surfaces=surfaces,
        layout=layout,
        group=f"group_cylinders = {rng.randint(3, 30)}" if layout == "hybrid" else "",
        track_skew=max(rng.choice((skew, rng.random() * 0.5)), 0.0),
        cylinder_skew=max(skew, 0.0),
        zones=zones,
        defects=f"[geometry.defects]\nlist = {defects}" if defects else "",
        s_id=rng.choice((1, 2, 2, 3)),
        s_od=1,
        rpm=rpm,
        head_switch=rng.choice((0, rng.randint(0, int(turn / 3)))),
        settle=settle,
        read_overhead=rng.choice((0, 50_000, rng.randint(0, 400_000))),
        write_overhead=rng.choice((0, 70_000)),
        seek=seek_curve(rng, shortest, sum(z[0] for z in zones)),
    )
