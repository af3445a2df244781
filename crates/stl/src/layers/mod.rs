//! The layers, one file each. `h-swd` and `laz-raz` are [`log`] with other parts, `host-aware` is in [`zoned`], and the static orders
//! (`static-1234`, ...) are in [`static_map`].

/// `submit` of a layer that has a method each for reads, writes and discards: flushes need nothing, and the rest is refused.
macro_rules! by_operation {
    () => {
        #[inline]
        fn submit(&mut self, _: SimTime, r: &HostRequest, plan: &mut Plan) {
            match r.op {
                HostOp::Read => self.read(r, plan),
                HostOp::Write => self.write(r, plan),
                HostOp::Discard => self.discard(r, plan),
                HostOp::Flush => {}
                _ => plan.refuse(Refusal::Unsupported, r.lba),
            }
        }
    };
}

/// Records of a layer: what each says, its tag, and the function that makes it of its words.
macro_rules! records {
    ($($(#[$doc:meta])* $TAG:ident = $tag:literal $(: $made:ident($($arg:ident: $type:ty),*) -> $words:expr)?;)+) => {
        $(
            $(#[$doc])*
            const $TAG: u32 = $tag;
            $(pub(super) fn $made($($arg: $type),*) -> Record {
                Record { tag: $TAG, words: $words }
            })?
        )+
    };
}

pub mod caveat_scriptor;
pub mod cmr;
pub mod disk_cache;
pub mod e_region;
pub mod floating;
pub mod log;
pub mod persistent_cache;
pub mod raw;
pub mod rmw;
pub mod s_block;
pub mod segment;
pub mod smart;
pub mod static_map;
pub mod steady_log;
pub mod virtual_guard;
pub mod zoned;

#[cfg(test)]
pub(crate) mod test_medium;
