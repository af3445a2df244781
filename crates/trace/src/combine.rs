//! One trace out of several: merged by time or mixed in bursts, on the same addresses or side by side.

use crate::transforms::{Concat, DeviceExtents, Interleave, Merge, Offset};
use crate::{OpenContext, TraceError, TraceSource, open};
use smrlab_units::Blocks;

/// How several traces share the address space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressSpace {
    /// Addresses are kept: traces may touch the same blocks.
    #[default]
    Overlap,
    /// Traces, and the devices of each, lie one behind the other.
    Concat,
}

/// The order in which the requests of several traces come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mix {
    /// By their arrivals.
    #[default]
    ByTime,
    /// In bursts of so many requests, drawn with the seed.
    Bursts {
        /// Requests in a burst.
        burst: u64,
        /// Seed of the order.
        seed: u64,
    },
}

/// Opens the traces that `texts` name, as [`open`] does, and makes one of them. The stream of a request is the number
/// of its trace. With [`AddressSpace::Concat`] every trace is read once before, for its extent.
///
/// # Errors
/// Those of the traces; no trace; standard input where it would be read twice.
pub fn combine(
    texts: &[String],
    space: AddressSpace,
    mix: Mix,
    context: &OpenContext,
) -> Result<Box<dyn TraceSource>, TraceError> {
    let mut sources: Vec<Box<dyn TraceSource>> = Vec::new();
    let mut base = Blocks::ZERO;
    for text in texts {
        let source = open(text, context)?;
        sources.push(match space {
            AddressSpace::Overlap => source,
            AddressSpace::Concat => {
                let extents = extents(text, context)?;
                let laid = Offset::new(Concat::new(source, &extents)?, base);
                base += extents.total();
                Box::new(laid)
            }
        });
    }
    match (sources.len(), mix) {
        (1, _) => Ok(sources.remove(0)),
        (_, Mix::ByTime) => Ok(Box::new(Merge::new(sources)?)),
        (_, Mix::Bursts { burst, seed }) => Ok(Box::new(Interleave::new(sources, burst, seed)?)),
    }
}

fn extents(text: &str, context: &OpenContext) -> Result<DeviceExtents, TraceError> {
    if text == "-" || text.starts_with("-:") {
        let why = "standard input cannot be read twice, as laying traces side by side needs; store it first";
        return Err(TraceError::Request(why.to_owned()));
    }
    DeviceExtents::scan(&mut *open(text, context)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_all;

    fn combined(space: AddressSpace, mix: Mix) -> crate::Batch {
        let texts = ["synth:sequential,requests=3,size=4KiB,span=1MiB,interarrival=10ms,write=100%"; 2];
        let texts = texts.map(str::to_owned);
        read_all(&mut *combine(&texts, space, mix, &OpenContext::default()).unwrap()).unwrap()
    }

    #[test]
    fn merged_traces_keep_their_times_and_know_their_number() {
        let all = combined(AddressSpace::Overlap, Mix::ByTime);
        assert_eq!(all.stream, [0, 1, 0, 1, 0, 1]);
        assert_eq!(all.lba.iter().map(|l| l.0).collect::<Vec<_>>(), [0, 0, 8, 8, 16, 16]);
    }

    #[test]
    fn side_by_side_the_second_begins_where_the_first_ends() {
        let all = combined(AddressSpace::Concat, Mix::ByTime);
        assert_eq!(all.lba.iter().map(|l| l.0).collect::<Vec<_>>(), [0, 24, 8, 32, 16, 40]);
    }

    #[test]
    fn bursts_keep_every_request() {
        let all = combined(AddressSpace::Overlap, Mix::Bursts { burst: 3, seed: 1 });
        assert_eq!(all.len(), 6);
        assert!(all.stream[..3].iter().all(|s| *s == all.stream[0]), "{:?}", all.stream);
        assert!(
            combine(&["-".to_owned()], AddressSpace::Concat, Mix::ByTime, &OpenContext::default()).is_err()
        );
    }
}
