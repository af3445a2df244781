//! Plans carried out on media that put reads off.

use super::*;
use crate::Cause;

/// A medium that puts off what it can.
struct Lazy(Vec<u8>);

impl Medium for Lazy {
    type Error = std::convert::Infallible;

    fn read(&mut self, pba: Pba, out: &mut [u8]) -> Result<(), Self::Error> {
        out.copy_from_slice(&self.0[pba.0 as usize * 512..][..out.len()]);
        Ok(())
    }

    fn write(&mut self, pba: Pba, data: &[u8]) -> Result<(), Self::Error> {
        self.0[pba.0 as usize * 512..][..data.len()].copy_from_slice(data);
        Ok(())
    }

    fn read_later(&mut self, _: Pba, _: Blocks) -> Result<bool, Self::Error> {
        Ok(true)
    }
}

#[test]
fn what_was_put_off_is_read_before_it_is_overwritten() {
    let mut medium = Lazy((0..1000u32).flat_map(|i| [i as u8; 512]).collect());
    let before = medium.0.clone();
    let mut plan = Plan::new(true, false);
    let first = plan.read_staged(Cause::Clean, Pba(100), Blocks(100));
    let second = plan.read_staged(Cause::Clean, Pba(300), Blocks(100));
    // Its last block is overwritten, then both are moved; the second is still on the medium then.
    plan.write(Cause::Host, Pba(199), Blocks(2), Endpoint::Host(Blocks(0)));
    plan.write_pieces(Cause::Clean, Pba(500), Blocks(150), |out| {
        out.push(Piece { blocks: Blocks(70), end: Endpoint::Staged(first, Blocks(30)) });
        out.push(Piece { blocks: Blocks(80), end: Endpoint::Staged(second, Blocks(20)) });
    });
    Executor::default().run(&plan, HostBuffer::Write(&[7; 1024]), &mut medium).unwrap();
    let blocks = |from: usize, n: usize| &before[from * 512..(from + n) * 512];
    assert_eq!(medium.0[500 * 512..570 * 512], *blocks(130, 70));
    assert_eq!(medium.0[570 * 512..650 * 512], *blocks(320, 80));
    assert_eq!(medium.0[199 * 512..201 * 512], [7; 1024]);
}

/// A band is rewritten in place with two blocks of its own changed: only what moves within it goes through memory.
#[test]
fn what_stays_where_it_is_does_not_go_through_memory() {
    let before: Vec<u8> = (0..500u32).flat_map(|i| [i as u8; 512]).collect();
    for (third, through) in [(150, 0), (151, 100)] {
        let mut plan = Plan::new(true, false);
        let band = plan.read_staged(Cause::Clean, Pba(100), Blocks(100));
        plan.write_pieces(Cause::Clean, Pba(100), Blocks(90), |out| {
            out.push(Piece { blocks: Blocks(48), end: Endpoint::Staged(band, Blocks(0)) });
            out.push(Piece { blocks: Blocks(2), end: Endpoint::Host(Blocks(0)) });
            out.push(Piece { blocks: Blocks(40), end: Endpoint::Staged(band, Blocks(third - 100)) });
        });
        let mut medium = Moving(Lazy(before.clone()), 0);
        Executor::default().run(&plan, HostBuffer::Write(&[7; 1024]), &mut medium).unwrap();
        let of = |from: u64, n: usize| &before[from as usize * 512..][..n * 512];
        assert_eq!(medium.0.0[100 * 512..148 * 512], *of(100, 48));
        assert_eq!(medium.0.0[148 * 512..150 * 512], [7; 1024]);
        assert_eq!(medium.0.0[150 * 512..190 * 512], *of(third, 40));
        assert_eq!(medium.1, through, "blocks through memory");
    }
}

/// A medium that counts the blocks that went through memory.
struct Moving(Lazy, usize);

impl Medium for Moving {
    type Error = std::convert::Infallible;

    fn read(&mut self, pba: Pba, out: &mut [u8]) -> Result<(), Self::Error> {
        self.1 += out.len() / 512;
        self.0.read(pba, out)
    }

    fn write(&mut self, pba: Pba, data: &[u8]) -> Result<(), Self::Error> {
        self.0.write(pba, data)
    }

    fn write_parts(&mut self, pba: Pba, parts: &[WritePart<'_>]) -> Result<(), Self::Error> {
        let bytes = |n: u64| n as usize * 512;
        let mut to = pba.0;
        for part in parts {
            match *part {
                WritePart::Medium(from, n) => {
                    self.0.0.copy_within(bytes(from.0)..bytes(from.0 + n.0), bytes(to));
                    to += n.0;
                }
                WritePart::Bytes(data) => {
                    self.0.0[bytes(to)..][..data.len()].copy_from_slice(data);
                    to += data.len() as u64 / 512;
                }
            }
        }
        Ok(())
    }

    fn read_later(&mut self, _: Pba, _: Blocks) -> Result<bool, Self::Error> {
        Ok(true)
    }
}

/// A hundred blocks move down by ten; what was read below them is not written by anybody.
#[test]
fn what_moves_over_itself_does_not_go_through_memory() {
    let before: Vec<u8> = (0..500u32).flat_map(|i| [i as u8; 512]).collect();
    let mut plan = Plan::new(true, false);
    plan.read_staged(Cause::Clean, Pba(0), Blocks(100));
    let moved = plan.read_staged(Cause::Clean, Pba(100), Blocks(100));
    plan.write(Cause::Clean, Pba(90), Blocks(100), Endpoint::Staged(moved, Blocks(0)));
    let mut medium = Moving(Lazy(before.clone()), 0);
    Executor::default().run(&plan, HostBuffer::None, &mut medium).unwrap();
    assert_eq!(medium.0.0[90 * 512..190 * 512], before[100 * 512..200 * 512]);
    assert_eq!(medium.1, 0);
    // Written a second time, it has to be as it was read.
    plan.write(Cause::Clean, Pba(300), Blocks(100), Endpoint::Staged(moved, Blocks(0)));
    let mut medium = Lazy(before.clone());
    Executor::default().run(&plan, HostBuffer::None, &mut medium).unwrap();
    for to in [90, 300] {
        assert_eq!(medium.0[to * 512..(to + 100) * 512], before[100 * 512..200 * 512], "{to}");
    }
}
/// What a read hands over piece by piece is what it puts into a buffer: also where a write needs it, and where it reads as zeroes.
#[test]
fn what_is_lent_is_what_is_read() {
    let before: Vec<u8> = (1..500u32).flat_map(|i| [i as u8; 512]).collect();
    let mut plan = Plan::new(true, false);
    plan.read_to_host(Cause::Host, Pba(20), Blocks(100), Blocks(100));
    let second = plan.read_to_host(Cause::Host, Pba(300), Blocks(100), Blocks(0));
    plan.write(Cause::Host, Pba(350), Blocks(20), Endpoint::Staged(second, Blocks(10)));
    plan.zero_to_host(Blocks(30), Blocks(FILL as u64 / 512 + 9));
    let (mut read, lent) = (vec![0xee; 200 * 512], std::cell::RefCell::new(vec![0xee; 200 * 512]));
    let mut media = [Lazy(before.clone()), Lazy(before)];
    Executor::default().run(&plan, HostBuffer::Read(&mut read), &mut media[0]).unwrap();
    let take = |at: usize, piece: &[u8]| lent.borrow_mut()[at..at + piece.len()].copy_from_slice(piece);
    Executor::default().run(&plan, HostBuffer::Lend(&take), &mut media[1]).unwrap();
    assert!(read == *lent.borrow() && media[0].0 == media[1].0);
    assert_eq!([read[29 * 512], read[30 * 512], read[103 * 512], read[199 * 512]], [74, 0, 24, 120]);
}

#[test]
fn what_lies_in_a_row_is_moved_as_one() {
    let mut plan = Plan::new(true, false);
    let [first, second] = [0, 100].map(|at| plan.read_staged(Cause::Clean, Pba(at), Blocks(100)));
    let [a, b] = [first, second].map(|op| move |from| Endpoint::Staged(op, Blocks(from)));
    let ends = [a(0), a(4), b(8), b(13), a(96), b(0), Endpoint::Held(Pba(104))];
    let write = plan.write_pieces(Cause::Clean, Pba(500), Blocks(28), |out| {
        out.extend(ends.map(|end| Piece { blocks: Blocks(4), end }));
    });
    let (mut executor, mut medium) = (Executor::default(), Lazy(Vec::new()));
    executor.begin();
    for op in [first, second] {
        let Ok(()) = executor.step(&plan, op, &mut HostBuffer::None, &mut medium);
    }
    let parts = executor.parts(&plan, write, &HostBuffer::None).into_iter();
    let moved = parts.map(|part| match part {
        WritePart::Medium(from, n) => (from.0, n.0),
        WritePart::Bytes(_) => panic!("it was read"),
    });
    let moved: Vec<_> = moved.collect();
    assert_eq!(moved, [(0, 8), (108, 4), (113, 4), (96, 12)]);
}
