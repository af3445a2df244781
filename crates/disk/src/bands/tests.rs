//! Bands at given places, and what does not fit.

use super::*;

#[test]
fn what_does_not_fit_is_told_what_does() {
    for (text, random_access) in [("tiny", 0), ("tiny", 5), ("tiny", 110), ("modern-7200", 4000)] {
        let model = crate::model::load(text, |_| Err(String::new())).unwrap();
        let lay = |tracks| {
            Bands::new(model.geometry(), BandLayout { tracks, head_width: 3, random_access }).map(|b| b.len())
        };
        let said = lay(1 << 30).unwrap_err().to_string();
        let most = said.rsplit_once("at most ").unwrap().1.split_once(";").unwrap();
        assert_eq!(most.1, " use shorter bands or a larger drive");
        let most: u64 = most.0.parse().unwrap();
        assert!(lay(most).unwrap() >= 1, "{text} {random_access}: {said}");
        assert!(lay(most + 1).is_err(), "{text} {random_access}: {said}");
    }
}

#[test]
fn bands_at_given_places_are_found_again() {
    // One row and two odd ones; three strokes alike, and a part of a fourth; two alike, and one farther away.
    for (starts, runs) in [
        (&[10, 30, 50, 100, 131][..], 2),
        (&[10, 30, 50, 90, 110, 130, 170, 190, 210, 250, 270], 2),
        (&[10, 30, 50, 90, 110, 130, 171, 191, 211], 2),
        (&[10], 1),
    ] {
        let starts: Vec<_> = starts.iter().copied().map(Pba).collect();
        let bands = Bands::at(&starts, Blocks(15)).unwrap();
        let n = starts.len() as u64;
        assert_eq!((bands.len(), bands.data_blocks(), bands.runs.len()), (n, Blocks(15 * n), runs));
        for (i, start) in (0..).zip(&starts) {
            let id = BandId(i);
            assert_eq!(bands.start(id), *start);
            assert_eq!(bands.around(Pba(start.0 + 14)), Some(start.0..start.0 + 15));
            assert_eq!(bands.band_of(Pba(start.0 + 14)), Some((id, Blocks(14))));
            assert_eq!(bands.around(Pba(start.0 + 15)), None, "behind band {i}");
            assert_eq!(bands.around(Pba(start.0 - 1)), None, "before band {i}");
            assert_eq!(bands.locate(i * 15 + 3), (id, Blocks(3), Pba(start.0 + 3)));
        }
        let within = [0, 14, 15, 44, 1000].map(|blocks| bands.within(Blocks(blocks)));
        assert_eq!(within, [0, 0, 1, 2.min(n), n]);
    }
    assert!(Bands::at(&[], Blocks(15)).is_err());
}
