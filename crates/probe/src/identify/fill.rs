//! Writes until it breaks: how much the cache holds.

use super::Evidence;
use super::moved::{Places, SMALL, spread};
use crate::Result;
use crate::dial::Dial;
use crate::stats::median;
use serde::{Deserialize, Serialize};

/// What a cache has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// So many bytes.
    Bytes,
    /// So many writes, whatever their size: entries of a map.
    Entries,
}

/// How much fits into the cache.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheSize {
    /// Blocks written before the first stall.
    pub blocks: u64,
    /// Writes before the first stall.
    pub writes: u64,
    /// Blocks in each of them.
    pub write_blocks: u64,
    /// What it has room for; nothing where cleaning costs too little to tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
}

/// Writes whose mean time is compared.
const CHUNK: usize = 240;
/// The most writes, and the longest time in nanoseconds.
const MOST: u64 = 4_000_000;
const LONGEST: f64 = 12.0 * 3600e9;
/// How much larger the writes are that tell bytes from entries.
const LARGER: u64 = 8;
/// How often.
const ROUNDS: u32 = 8;
/// The longest that a full cache is watched before, and in each round, in nanoseconds: where a write waits for minutes, fewer
/// writes tell as well.
const WARM: f64 = 7200e9;
const ROUND: f64 = 600e9;

/// Writes spread evenly over the drive, past what is looked at again.
pub(super) struct Fill<'p> {
    places: &'p Places,
    /// Blocks of a write.
    size: u64,
    state: &'p mut Filling,
}

/// How far it is: where nothing is cleaned without need a later sitting goes on with that.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Filling {
    /// Places that were written.
    next: u64,
    /// How long the writes took until one waited, in nanoseconds, and which did.
    times: Vec<f64>,
    broke: Option<usize>,
    /// Mean time of a write with room, and of one that waits for cleaning, in nanoseconds.
    usual: f64,
    steady: f64,
}

impl<'p> Fill<'p> {
    /// So that a cache of half a per cent takes thousands of writes, and one of five per cent not millions.
    pub(super) fn new(blocks: u64, places: &'p Places, state: &'p mut Filling) -> Self {
        let size = (blocks >> 21).next_power_of_two().clamp(8, 128);
        Self { places, size, state }
    }

    fn write(&mut self, dial: &mut Dial<'_>, size: u64) -> Result<f64> {
        let slots = (dial.blocks() / size).saturating_sub(1).max(1);
        let mut lba = 0;
        for _ in 0..64 {
            lba = spread(self.state.next + 1001, slots) * size + size / 2;
            self.state.next += 1;
            if !self.places.touches(lba, size) {
                break;
            }
        }
        Ok(dial.write(lba, size)?.took())
    }

    /// The mean time of `n` writes, of fewer where they take longer than `most` nanoseconds.
    fn mean(&mut self, dial: &mut Dial<'_>, size: u64, n: u64, most: f64) -> Result<f64> {
        let (mut sum, mut done) = (0.0, 0u32);
        while done == 0 || u64::from(done) < n && sum < most {
            sum += self.write(dial, size)?;
            done += 1;
        }
        Ok(sum / f64::from(done))
    }

    /// Writes until a write takes very much longer than the ones before, and some more; `held` small pieces are in the
    /// cache already.
    pub(super) fn until_it_breaks(
        &mut self,
        dial: &mut Dial<'_>,
        held: u64,
        evidence: &mut Vec<Evidence>,
    ) -> Result<Option<CacheSize>> {
        dial.stage("filling the cache");
        let broke = match self.state.broke {
            Some(at) => Some(at),
            None => self.first_wait(dial)?,
        };
        self.state.broke = broke;
        let means = chunks(&self.state.times);
        let points =
            means.iter().enumerate().map(|(i, m)| (((i + 1) * CHUNK) as f64, m / 1e6)).collect::<Vec<_>>();
        let Some(at) = broke else {
            evidence.push(filled(self.size, points, None));
            return Ok(None);
        };
        self.state.usual = median(&means[..means.len() - 1]);
        let writes = at as u64;
        evidence.push(filled(self.size, points, Some(writes)));
        let limit = self.limit(dial, writes, evidence)?;
        let (blocks, write_blocks) = (writes * self.size + held * SMALL, self.size);
        Ok(Some(CacheSize { blocks, writes: writes + held, write_blocks, limit }))
    }

    /// Writes until one waits for cleaning: which one; `None` where none does.
    fn first_wait(&mut self, dial: &mut Dial<'_>) -> Result<Option<usize>> {
        let begin = dial.now().0 as f64;
        let mut means = chunks(&self.state.times);
        while (self.state.times.len() as u64) < MOST && dial.now().0 as f64 - begin <= LONGEST {
            let t = self.write(dial, self.size)?;
            let times = &mut self.state.times;
            times.push(t);
            if !times.len().is_multiple_of(CHUNK) {
                continue;
            }
            let mean = times[times.len() - CHUNK..].iter().sum::<f64>() / CHUNK as f64;
            if let Some(at) = broken(times, &means, mean) {
                return Ok(Some(at));
            }
            means.push(mean);
            dial.share(0.5);
        }
        Ok(None)
    }

    /// The cache is full of small writes now, and each new one makes room for itself. A larger write makes room for many of
    /// them where bytes are what is short (though large pieces are cleaned more cheaply), and for one where entries are.
    fn limit(
        &mut self,
        dial: &mut Dial<'_>,
        writes: u64,
        evidence: &mut Vec<Evidence>,
    ) -> Result<Option<Limit>> {
        self.mean(dial, self.size, (writes / 4).max(CHUNK as u64), WARM)?;
        // In turns, for what cleaning costs goes up and down with the age of what is cleaned.
        let (mut sums, n) = ([0.0; 2], (writes / 16).clamp(CHUNK as u64, 4000));
        for _ in 0..ROUNDS {
            sums[0] += self.mean(dial, self.size, n, ROUND)?;
            sums[1] += self.mean(dial, LARGER * self.size, n / 4, ROUND)?;
        }
        let [steady, larger] = sums.map(|s| s / f64::from(ROUNDS));
        self.state.steady = steady;
        let (few, many) = (self.state.steady - self.state.usual, larger - self.state.usual);
        if few < 0.5 * self.state.usual {
            return self.limit_by_count(dial, writes, evidence);
        }
        let limit = if many / few > (LARGER as f64).cbrt() { Limit::Bytes } else { Limit::Entries };
        evidence.push(Evidence::new(
            "larger writes",
            format!("with the cache full, writes {LARGER} times as large"),
            format!(
                "they wait {:.1} times as long for cleaning: it has room for so many {}",
                many / few,
                if limit == Limit::Bytes { "bytes" } else { "writes, whatever their size" }
            ),
        ));
        Ok(Some(limit))
    }

    /// A cache that is cleaned as a whole, in one long stall: how many larger writes there are between two of them.
    fn limit_by_count(
        &mut self,
        dial: &mut Dial<'_>,
        writes: u64,
        evidence: &mut Vec<Evidence>,
    ) -> Result<Option<Limit>> {
        const STALLS: u64 = 4;
        let mut between = [0; 2];
        for (count, size) in between.iter_mut().zip([self.size, LARGER * self.size]) {
            let (mut stalls, mut all) = (0, 0);
            while stalls <= STALLS && all < 2 * STALLS * writes {
                all += 1;
                let long = self.write(dial, size)? > 20.0 * self.state.usual;
                stalls += u64::from(long);
                // From the first one on.
                *count += u64::from(stalls > 0);
            }
        }
        let share = between[1] as f64 / between[0].max(1) as f64;
        if between.contains(&0) {
            return Ok(None);
        }
        let limit = if share < 1.0 / (LARGER as f64).cbrt() { Limit::Bytes } else { Limit::Entries };
        evidence.push(Evidence::new(
            "larger writes",
            format!("writes {LARGER} times as large, from one long stall to the next"),
            format!(
                "{} of them fit between two stalls, and {} small ones",
                between[1] / STALLS,
                between[0] / STALLS
            ),
        ));
        Ok(Some(limit))
    }

    /// Whether an hour of rest makes room in a cache that is full.
    pub(super) fn rest_helps(
        &mut self,
        dial: &mut Dial<'_>,
        size: CacheSize,
        evidence: &mut Vec<Evidence>,
    ) -> Result<bool> {
        dial.stage("rest");
        dial.pause(3600e9);
        let limit = self.state.usual + 0.5 * (self.state.steady - self.state.usual);
        let mut writes = 0;
        while self.mean(dial, self.size, CHUNK as u64, ROUND)? < limit && writes < size.writes {
            writes += CHUNK as u64;
        }
        evidence.push(Evidence::new(
            "rest of a full cache",
            "left the drive alone for an hour, and went on with the small writes",
            format!("{writes} of them did not have to wait"),
        ));
        Ok(writes > size.writes / 4)
    }
}

/// The mean of every full chunk.
fn chunks(times: &[f64]) -> Vec<f64> {
    times.chunks_exact(CHUNK).map(|c| c.iter().sum::<f64>() / CHUNK as f64).collect()
}

/// Which write was the first slow one, if the last chunk's mean is very much above those before, or three of them are well
/// above. The first chunks do not count: what was in the drive before is put away in them.
fn broken(times: &[f64], means: &[f64], mean: f64) -> Option<usize> {
    let usual = |until: usize| {
        let from = until.saturating_sub(24).max(until.min(4));
        (until >= from + 3).then(|| median(&means[from..until]))
    };
    let last = means.len();
    if usual(last).is_some_and(|m| mean > 4.0 * m) {
        let (old, new) = times.split_at(times.len() - CHUNK);
        let most = old.iter().skip(4 * CHUNK).copied().fold(0.0, f64::max);
        let first = last * CHUNK + new.iter().position(|t| *t > 1.3 * most).unwrap_or(0);
        return Some(back(times, first));
    }
    let high = usual(last.checked_sub(2)?)? * 1.5;
    let risen = mean > high && means[last - 2..].iter().all(|m| *m > high);
    risen.then(|| back(times, (last - 2) * CHUNK))
}

/// The beginning of the row of mostly slow writes that leads to `first`.
fn back(times: &[f64], mut first: usize) -> usize {
    const RUN: usize = 16;
    let typical = median(&times[(4 * CHUNK).min(first / 2)..first.max(1)]);
    let slow = |t: &f64| *t > 1.5 * typical;
    while first >= RUN && 2 * times[first - RUN..first].iter().filter(|t| slow(t)).count() > RUN {
        first -= RUN;
    }
    // To the write, within a run.
    let from = first.saturating_sub(RUN);
    from + times[from..first].iter().rposition(|t| !slow(t)).map_or(0, |i| i + 1)
}

fn filled(size: u64, points: Vec<(f64, f64)>, writes: Option<u64>) -> Evidence {
    Evidence {
        test: "writes until it breaks".to_owned(),
        did: format!("writes of {} KiB evenly over the drive, one after the other", size / 2),
        saw: match writes {
            Some(n) => format!("write {} was the first to wait for cleaning", n + 1),
            None => "no write had to wait".to_owned(),
        },
        axes: ["write".to_owned(), "milliseconds, mean of 240".to_owned()],
        points,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProbeError;
    use crate::Quiet;
    use crate::fakes::{Fake, StopAfter};

    /// The first four chunks do not count, and fewer than three behind them say nothing of what is usual. The cache is full where a
    /// chunk takes ten times as long, from its first slow write on.
    #[test]
    fn what_is_usual_takes_three_chunks_to_know() {
        let found = |chunks_before: usize| {
            let times = [vec![1.0; chunks_before * CHUNK], vec![10.0; CHUNK]].concat();
            broken(&times, &chunks(&times[..chunks_before * CHUNK]), 10.0)
        };
        assert_eq!((found(5), found(6)), (None, None));
        assert_eq!(found(7), Some(7 * CHUNK));
    }

    /// What was slow in the first four chunks is no measure of what is slow: the first slow write of the last chunk is one that takes
    /// longer than any behind them.
    #[test]
    fn slow_writes_at_the_beginning_do_not_hide_the_first_slow_one() {
        let mut times = [vec![1.0; 9 * CHUNK], vec![20.0; CHUNK]].concat();
        times[3 * CHUNK] = 50.0;
        times[9 * CHUNK..9 * CHUNK + 30].fill(1.0);
        let (means, last) = (chunks(&times[..9 * CHUNK]), chunks(&times[9 * CHUNK..])[0]);
        assert_eq!(broken(&times, &means, last), Some(9 * CHUNK + 30));
        // Behind them it is.
        times[5 * CHUNK] = 50.0;
        assert_eq!(broken(&times, &chunks(&times[..9 * CHUNK]), last), Some(9 * CHUNK));
    }

    /// What is usual is told by the second half of what came before, where that is short: what was put away first does not count.
    #[test]
    fn the_usual_time_is_that_of_the_second_half() {
        let mut times = vec![1.0; 1200];
        times[..800].fill(10.0);
        times[1168..].fill(10.0);
        assert_eq!(back(&times, 1200), 1168);
        // Behind the first four chunks all that is long counts.
        let mut times = vec![1.0; 9000];
        for slow in [0..960, 4500..6700, 8968..9000] {
            times[slow].fill(10.0);
        }
        assert_eq!(back(&times, 9000), 8968);
    }

    /// A cache with room for so many blocks or writes, of which each new one then waits for the oldest to be cleaned, 30 ms a piece
    /// of 8 blocks; the first writes to a full cache, `worn` of them, wait ten times as long.
    struct Cache {
        room: u64,
        bytes: bool,
        worn: u64,
        held: u64,
    }

    impl Cache {
        fn write(&mut self, blocks: u64) -> u64 {
            let n = if self.bytes { blocks / 8 } else { 1 };
            self.held += n;
            let over = if self.held > self.room { n } else { 0 };
            let dear = if over > 0 && self.worn > 0 { 10 } else { 1 };
            self.worn -= u64::from(over > 0 && self.worn > 0);
            1_000_000 + 30_000_000 * over * dear
        }
    }

    fn nowhere() -> Places {
        serde_json::from_str(r#"{"spots": [], "controls": [], "slack": 0.02}"#).unwrap()
    }

    /// What is found of a cache, how many writes that took, and what is known of their times in ms.
    fn filled_of(mut cache: Cache) -> (CacheSize, usize, [f64; 2]) {
        let mut target = Fake::new(1 << 20, move |_, _, blocks, now| now + cache.write(blocks));
        let mut quiet = Quiet;
        let mut dial = Dial::new(&mut target, &mut quiet);
        let (places, mut state) = (nowhere(), Filling::default());
        let found = Fill::new(1 << 20, &places, &mut state)
            .until_it_breaks(&mut dial, 5, &mut Vec::new())
            .unwrap()
            .unwrap();
        (found, target.asked.len(), [state.usual / 1e6, state.steady / 1e6])
    }

    /// 4000 writes of 8 blocks fit, and 5 were there before. Larger ones wait as long where entries are short, eight times
    /// where bytes are. A full cache is used for a quarter of its writes before its times count.
    #[test]
    fn a_cache_is_measured_when_it_is_warm() {
        for (bytes, limit) in [(false, Limit::Entries), (true, Limit::Bytes)] {
            for worn in [0, 900] {
                let (found, asked, times) = filled_of(Cache { room: 4000, bytes, worn, held: 0 });
                let size = CacheSize { blocks: 4005 * 8, writes: 4005, write_blocks: 8, limit: Some(limit) };
                assert_eq!(found, size, "{bytes} {worn}");
                assert_eq!(times, [1.0, 31.0], "{bytes} {worn}");
                // To the end of the chunk, a quarter more, and eight rounds of 250 small and 62 large ones.
                assert_eq!(asked, 17 * CHUNK + 1000 + 8 * (250 + 62), "{bytes} {worn}");
            }
        }
    }

    /// A cache that is cleaned as a whole each 1000 writes, or each 1000 pieces of 8 blocks: what lies between two stalls counts, not
    /// what was written until the first.
    #[test]
    fn writes_between_stalls_tell_what_is_short() {
        for (bytes, limit, said) in [
            (false, Limit::Entries, "1000 of them fit between two stalls, and 1000 small ones"),
            (true, Limit::Bytes, "125 of them fit between two stalls, and 1000 small ones"),
        ] {
            let mut held = 0;
            let mut target = Fake::new(1 << 20, move |_, _, blocks, now| {
                held += if bytes { blocks / 8 } else { 1 };
                if held < 1000 {
                    return now + 1_000_000;
                }
                held -= 1000;
                now + 100_000_000
            });
            let (places, mut seen) = (nowhere(), Vec::new());
            let mut state = Filling { usual: 1e6, ..Filling::default() };
            let mut fill = Fill::new(1 << 20, &places, &mut state);
            let found = fill.limit_by_count(&mut Dial::new(&mut target, &mut Quiet), 1000, &mut seen);
            assert_eq!((found.unwrap(), seen[0].saw.as_str()), (Some(limit), said));
        }
    }

    /// Where hardly a write stalls nothing is told: twice as many are tried as there are in so many stalls, of either size.
    #[test]
    fn a_cache_that_does_not_stall_says_nothing() {
        for stalls in [&[][..], &[17], &[17, 9000]] {
            let mut n = 0;
            let mut target = Fake::new(1 << 20, move |_, _, _, now| {
                n += 1;
                now + if stalls.contains(&n) { 100_000_000 } else { 1_000_000 }
            });
            let (places, mut seen) = (nowhere(), Vec::new());
            let mut state = Filling { usual: 1e6, ..Filling::default() };
            let mut fill = Fill::new(1 << 20, &places, &mut state);
            let found =
                fill.limit_by_count(&mut Dial::new(&mut target, &mut Quiet), 1000, &mut seen).unwrap();
            assert_eq!((found.is_some(), seen.len()), (stalls.len() == 2, stalls.len() / 2), "{stalls:?}");
            assert_eq!(target.asked.len(), 2 * 8000, "{stalls:?}");
            let sizes = [8, 64].map(|size| target.asked.iter().filter(|a| a.2 == size).count());
            assert_eq!(sizes, [8000; 2], "{stalls:?}");
        }
    }

    /// A mean is over the writes that were asked for, over fewer where these take too long, over one at least.
    #[test]
    fn a_mean_ends_where_writes_take_too_long() {
        let of = |n, most| {
            let mut target = Fake::new(1 << 20, |_, _, _, now| now + 10);
            let (places, mut state) = (nowhere(), Filling::default());
            let mut fill = Fill::new(1 << 20, &places, &mut state);
            let mean = fill.mean(&mut Dial::new(&mut target, &mut Quiet), 8, n, most).unwrap();
            (mean, target.asked.len())
        };
        assert_eq!((of(7, 1e9), of(7, 35.0), of(7, 0.0)), ((10.0, 7), (10.0, 4), (10.0, 1)));
    }

    /// Stopped after the first wait, the cache is not filled anew: only what comes after that is done again.
    #[test]
    fn the_first_wait_is_kept_when_it_is_stopped() {
        let mut cache = Cache { room: 4000, bytes: false, worn: 0, held: 0 };
        let mut target = Fake::new(1 << 20, move |_, _, blocks, now| now + cache.write(blocks));
        let (places, mut state) = (nowhere(), Filling::default());
        // A check for each access and each flush.
        let mut watch = StopAfter(std::cell::Cell::new(2 * (17 * CHUNK as u64 + 500)));
        let mut fill = Fill::new(1 << 20, &places, &mut state);
        let stopped = fill.until_it_breaks(&mut Dial::new(&mut target, &mut watch), 0, &mut Vec::new());
        assert_eq!(stopped, Err(ProbeError::Interrupted));
        let before = target.asked.len();
        assert!(before > 17 * CHUNK && before < 17 * CHUNK + 501, "{before}");
        let found = fill.until_it_breaks(&mut Dial::new(&mut target, &mut Quiet), 0, &mut Vec::new());
        assert_eq!(found.unwrap().map(|c| c.writes), Some(4000));
        assert_eq!(target.asked.len() - before, 1000 + 8 * (250 + 62));
    }

    /// After an hour a cache that was cleaned takes as many writes again, one that was not takes none.
    #[test]
    fn rest_helps_where_writes_have_not_to_wait_again() {
        // Four chunks fit into what rest made room for: a quarter of 3840 writes is not enough, more than one of 3836 is.
        let (quarter, more) = (16 * CHUNK as u64, 16 * CHUNK as u64 - 4);
        for (room, writes, helps) in [
            (4000, 4000, true),
            (900, 4000, false),
            (0, 4000, false),
            (quarter / 4, quarter, false),
            (quarter / 4, more, true),
        ] {
            let mut cache = Cache { room, bytes: false, worn: 0, held: 0 };
            let mut target = Fake::new(1 << 20, move |_, _, blocks, now| now + cache.write(blocks));
            let (places, mut seen) = (nowhere(), Vec::new());
            let mut state = Filling { usual: 1e6, steady: 31e6, ..Filling::default() };
            let size = CacheSize { blocks: 8 * writes, writes, write_blocks: 8, limit: None };
            let mut fill = Fill::new(1 << 20, &places, &mut state);
            let found = fill.rest_helps(&mut Dial::new(&mut target, &mut Quiet), size, &mut seen).unwrap();
            assert_eq!(found, helps, "{room}: {}", seen[0].saw);
            assert!(room > 0 || seen[0].saw.contains("0 of them"), "{}", seen[0].saw);
        }
    }
}
