use super::*;
use crate::{Rng, drives};
use smrlab_disk::{DRIVES, GeometrySpec, ZoneSpec};

fn fill(op: u8, blocks: u64) -> Vec<u8> {
    (0..blocks).flat_map(|i| [op, i as u8].repeat(BYTES / 2)).collect()
}

fn medium(k: u32) -> ByteMedium {
    let g = Geometry::new(GeometrySpec::single_surface(vec![ZoneSpec::plain(4, 4)])).unwrap();
    ByteMedium::new(Arc::new(g), Interference::tracks(k))
}

#[test]
fn a_write_destroys_the_next_track_and_says_so() {
    let mut m = medium(2);
    m.write(Pba(0), &fill(1, 12));
    let op = m.write(Pba(5), &fill(9, 1));
    let mut buf = vec![0; BYTES];
    let fault = m.read(Pba(9), &mut buf).unwrap_err();
    assert_eq!(fault.state, BlockState::Destroyed { op, writer: Pba(5) });
    assert_eq!(fault.to_string(), "block 9 was destroyed by write 2 at block 5");
    assert_eq!(buf, fill(9, 1), "the writer's bytes lie there");
    assert_eq!(m.state(Pba(8)), BlockState::Written { op: 1 });
    assert_eq!(m.state(Pba(13)), BlockState::Destroyed { op: 1, writer: Pba(9) });
    assert!(m.read(Pba(5), &mut buf).is_ok());
}

#[test]
fn a_cut_keeps_a_prefix_tears_one_block_and_interferes_with_both() {
    let mut m = medium(2);
    m.write(Pba(0), &fill(1, 16));
    let op = m.write_cut(Pba(0), &fill(2, 4), Cut { keep: Blocks(2), torn: true });
    let states: Vec<_> = (0..8).map(|b| m.state(Pba(b))).collect();
    let destroyed = |writer| BlockState::Destroyed { op, writer: Pba(writer) };
    assert_eq!(
        states[..4],
        [
            BlockState::Written { op },
            BlockState::Written { op },
            BlockState::Torn { op },
            BlockState::Written { op: 1 }
        ]
    );
    assert_eq!(states[4..], [destroyed(0), destroyed(1), destroyed(2), BlockState::Written { op: 1 }]);
    let mut buf = vec![0; BYTES];
    assert_eq!(m.read(Pba(2), &mut buf).unwrap_err().state, BlockState::Torn { op });
    assert_eq!((buf[1], buf[BYTES / 2 + 1]), (2, 2));
    assert_eq!((buf[0], buf[BYTES / 2]), (2, 1), "half new, half old");
}

#[test]
fn blank_blocks_read_as_zeroes_and_cost_nothing() {
    let m = ByteMedium::of(&DRIVES[2].drive());
    let mut buf = vec![7; BYTES * 3];
    m.read(Pba(m.geometry.blocks().0 - 3), &mut buf).unwrap();
    assert_eq!((buf, m.chunks.len()), (vec![0; BYTES * 3], 0));
}

/// Sheet 004, figure 5 with k = 3: three writes on tracks 1, 2, 3 overlap in part; a read of track 3 comes in pieces from
/// four places.
#[test]
fn a_read_of_the_third_track_splits_into_four() {
    let g = Arc::new(Geometry::new(GeometrySpec::single_surface(vec![ZoneSpec::plain(3, 16)])).unwrap());
    let mut map = RedirectMap::new(g, Interference::tracks(3));
    map.write(Pba(32), Blocks(16));
    map.write(Pba(4), Blocks(8));
    map.write(Pba(16 + 8), Blocks(6));
    let sources: Vec<u64> = (32..48).map(|b| map.source(Pba(b)).0).collect();
    let pieces = 1 + sources.windows(2).filter(|w| w[1] != w[0] + 1).count();
    assert_eq!(pieces, 4);
    assert_eq!((sources[3], sources[4], sources[8], sources[14]), (35, 4, 24, 46));
}

/// Sheet 004, 3.1: while a disk is written from end to end, k - 1 tracks are overwritten; at its end none.
#[test]
fn a_sequential_write_leaves_nothing_overwritten() {
    let g = Arc::new(Geometry::new(GeometrySpec::single_surface(vec![ZoneSpec::plain(10, 16)])).unwrap());
    let mut map = RedirectMap::new(g, Interference::tracks(3));
    map.write(Pba(0), Blocks(80));
    assert_eq!(map.len(), 2 * 16);
    map.write(Pba(80), Blocks(80));
    assert!(map.is_empty());
}

/// The redirection map is exact: it reads what the physical medium holds.
#[test]
fn the_redirection_map_reads_what_the_medium_holds() {
    for (name, drive) in drives::all() {
        let g = drive.geometry().clone();
        for k in 1..5 {
            let interference = Interference::tracks(k);
            let mut medium = ByteMedium::new(g.clone(), interference);
            let mut map = RedirectMap::new(g.clone(), interference);
            let mut home = vec![0u8; g.blocks().bytes() as usize];
            let mut rng = Rng::new(u64::from(k));
            for op in 0..30 {
                let pba = rng.below(g.blocks().0);
                let n = (1 + rng.below(40)).min(g.blocks().0 - pba);
                let data = fill(op + 1, n);
                home[pba as usize * BYTES..(pba + n) as usize * BYTES].copy_from_slice(&data);
                medium.write(Pba(pba), &data);
                map.write(Pba(pba), Blocks(n));
            }
            let mut buf = vec![0; BYTES];
            for b in 0..g.blocks().0 {
                let source = map.source(Pba(b));
                let readable = medium.read(Pba(b), &mut buf).is_ok();
                assert_eq!(readable, source == Pba(b), "{name}, k = {k}: block {b}");
                assert_eq!(buf[..], home[source.0 as usize * BYTES..][..BYTES], "{name}, k = {k}: block {b}");
            }
        }
    }
}
