"""A log-structured layer: writes append to an open band; when few bands are left, one is compacted."""

from smrlab import TranslationLayer


class GreedyLog(TranslationLayer):
    def __init__(self, medium):
        self.bands = medium.bands()  # (first PBA, blocks) of each
        self.home = {}  # LBA -> (band, PBA)
        self.live = [{} for _ in self.bands]  # of each band: PBA -> LBA
        self.free = list(range(len(self.bands)))
        self.open, self.at = self.free.pop(0), 0

    def host_blocks(self):
        return sum(blocks for _, blocks in self.bands[3:]) * 9 // 10

    def read(self, lba, blocks, plan):
        for pba, n, at in self.runs([self.home.get(b, (0, None))[1] for b in range(lba, lba + blocks)]):
            plan.zero(n, at) if pba is None else plan.read(pba, n, at)

    def write(self, lba, blocks, plan):
        for at in range(0, blocks, 64):
            self.append(range(lba + at, lba + min(at + 64, blocks)), at, plan.write)
            while len(self.free) < 2:
                victim = max({*range(len(self.bands))} - {self.open, *self.free}, key=self.dead)
                pbas, lbas = zip(*sorted(self.live[victim].items())) if self.live[victim] else ((), ())
                self.append(lbas, plan.stage_all([(pba, n) for pba, n, _ in self.runs(pbas)]), plan.write_staged)
                self.free.append(victim)
                plan.cleaned(len(lbas))

    def dead(self, band):
        return self.bands[band][1] - len(self.live[band])

    def append(self, lbas, source, write):
        while lbas:
            start, size = self.bands[self.open]
            part, lbas = lbas[: size - self.at], lbas[size - self.at :]
            write(start + self.at, len(part), source)
            for pba, lba in enumerate(part, start + self.at):
                band, old = self.home.get(lba, (self.open, None))
                self.live[band].pop(old, None)
                self.home[lba], self.live[self.open][pba] = (self.open, pba), lba
            self.at, source = self.at + len(part), source + len(part)
            if self.at == size:
                self.open, self.at = self.free.pop(0), 0
