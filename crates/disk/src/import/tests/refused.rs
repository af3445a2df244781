//! What DiskSim's files must not say: each fault is told in one line, with its file and its place in it.

use super::{G4, PARV, SPECS, import, import_all, model, with_layout};

#[test]
fn what_cannot_be_read_is_said_with_its_place() {
    let refused = |model: &str| import(model).unwrap_err();
    assert!(refused(&model(9, "", "").replace("dm_layout_g1 {", "dm_layout_g3 {")).contains("dm_layout_g3"));
    let lee = refused(&model(9, "", "").replace("extracted", "lee"));
    assert_eq!(
        lee,
        "small.model: line 2: dm_mech_g1: seek type lee is not read: extracted, hplplus10, hpl are"
    );
    assert!(
        refused(&model(9, "", "").replace("small.seek", "none.seek")).contains("none.seek: no such file")
    );
    assert!(refused("dm_disk X {\n Model = }").contains("small.model: line 2"));
    let round = import_all(&model(9, "", ""), "", "source small.parv\n", SPECS).unwrap_err();
    assert!(round.contains("small.parv"), "a file that includes itself: {round}");
}

/// Each has a file and a line: of the value that is wrong, or of the block that lacks one.
#[test]
fn what_is_wrong_in_a_block_has_its_line() {
    for (part, instead, said) in [
        (
            "Segment size (in blks) = 32",
            "Segment size (in blks) = big",
            "small.diskspecs: line 6: disksim_disk: Segment size (in blks) = big is no number",
        ),
        (
            "Segment size (in blks) = 32",
            "Segment size (in blks) = -32",
            "small.diskspecs: line 6: disksim_disk: Segment size (in blks) = -32 is not accepted: a whole number from 0 to",
        ),
        (
            "Segment size (in blks) = 32,",
            "",
            "small.diskspecs: line 1: disksim_disk: no number 'Segment size (in blks)'",
        ),
        (
            "Bulk sector transfer time = 0.1",
            "Bulk sector transfer time = 0,1x",
            "small.diskspecs: line 3: '1x' is no 'KEY = VALUE'",
        ),
        (
            "Bulk sector transfer time = 0.1",
            "Bulk sector transfer time = 0.1x",
            "small.diskspecs: line 3: disksim_disk: Bulk sector transfer time = 0.1x is no number",
        ),
        (
            "Model = source small.model",
            "Model = small.model",
            "small.diskspecs: line 2: disksim_disk: it names no model",
        ),
        (
            "Fast write level = 2",
            "Fast write level = [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
            "small.diskspecs: line 9: more than 32",
        ),
        ("after read = 0.2,", "after read = 0.2, Fast \0", "small.diskspecs: no text"),
    ] {
        let specs = SPECS.replacen(part, instead, 1);
        assert_ne!(specs, SPECS, "{part}");
        let e = import_all(&model(9, "", ""), "", PARV, &specs).unwrap_err();
        assert!(e.contains(said), "{instead}: {e}");
    }
    for (part, instead, said) in [
        (
            "Rotation speed (in rpms) = 6000",
            "Rotation speed (in rpms) = -6000",
            "small.model: line 3: dm_mech_g1: Rotation speed (in rpms) = -6000 is not accepted",
        ),
        ("Mechanical Model = ", "Mechanic = ", "small.model: line 1: dm_disk: no block 'Mechanical Model'"),
        (
            "scheme = 0",
            "scheme = 9",
            "small.model: line 4: dm_layout_g1: LBN-to-PBN mapping scheme 9 is not known: 0, 1 or 2",
        ),
        ("Head switch time = 0.7", "Head switch time = 1e9", "small.parv: what it says is no drive: "),
        (
            "First cylinder number = 2",
            "First cylinder number = x",
            "small.model: line 4: dm_layout_g1_zone: First cylinder number = x is no number",
        ),
    ] {
        let changed = model(9, "", "").replacen(part, instead, 1);
        assert_ne!(changed, model(9, "", ""), "{part}");
        let e = import(&changed).unwrap_err();
        assert!(e.contains(said), "{instead}: {e}");
        assert_eq!(e.lines().count(), 1, "{e}");
    }
}

/// Where it ends, and what it is.
#[test]
fn a_file_that_was_cut_off_or_is_another_is_told() {
    let whole = model(9, "3", "");
    for end in (10..whole.len() - 1).step_by(7) {
        let e = import(&whole[..end]).unwrap_err();
        assert!(e.contains("small.model: line "), "{end}: {e}");
    }
    assert!(import("").unwrap_err().contains("small.model: no block in it"));
    let none = import_all("", "", "disksim_global G { a = 1 }", "").unwrap_err();
    assert_eq!(none, "small.parv: no disksim_disk in it or in what it names: give the .parv file of a drive");
}

#[test]
fn a_layout_g4_that_is_no_layout_is_refused() {
    for (part, instead, said) in [
        ("20, 1, 0.25", "21, 1, 0.25", "an entry at block 21 of its index follows 20"),
        ("36, 2, 0.5, 72, 4, IDX, 0", "36, 2, 0.5, 72, 4, IDX, 7", "no index 7"),
        ("36, 2, 0.5, 72, 4, IDX, 0", "36, 2, 0.5, 72, 4, IDX, 2", "in a circle"),
        ("TRACK, 0, 0", "TRACK, 9, 0", "no track pattern 9"),
        ("16, -2, TRACK, 1, 1", "16, -2, TRACK, 1, 0", "cylinder 0 of surface 0 is in two runs"),
        ("16, -2,", "17, -2,", "17 blocks on 2 cylinders by 8 on 1"),
        ("72, 5, 0.75", "72, 3, 0.75", "cylinder 3 of the last index follows 4"),
        ("TRACK, 1, 1", "TRACK, 1", "cannot be read"),
        ("Remaps = [ 5, 2, 2, 0, 4, 10 ]", "Remaps = [ 5, 2, 2, 0, 3, 10 ]", "a sector that holds none"),
        ("0, 9, 10,", "0, 9, 9,", "no track pattern"),
        ("0, 9, 10,", "0, 4294967295, 1e10,", "no track pattern"),
        ("20, 1, 0.25", "20, 1.5, 0.25", "cannot be read"),
        ("20, 1, 0.25", "20, 1e300, 0.25", "cannot be read"),
        ("20, 1, 0.25", "-20, 1, 0.25", "cannot be read"),
    ] {
        let changed = G4.replacen(part, instead, 1);
        assert_ne!(changed, G4, "{part}");
        let said_really = import(&with_layout(&changed)).unwrap_err();
        assert!(said_really.starts_with("small."), "{said_really}");
        assert!(said_really.contains(said), "{instead}: {said_really}");
    }
}

#[test]
fn numbers_that_no_drive_has_are_refused() {
    for (good, bad, says) in [
        ("First cylinder number = 2", "First cylinder number = 1", "behind 2 others"),
        ("First cylinder number = 2", "First cylinder number = -2", "is not accepted"),
        ("Last cylinder number = 4", "Last cylinder number = 0", "behind 2 others"),
        ("Last cylinder number = 4", "Last cylinder number = 4294967295", "is not accepted"),
        ("Last cylinder number = 4", "Last cylinder number = 4.5", "is not accepted"),
        ("data surfaces = 2", "data surfaces = 1e9", "is not accepted"),
        ("Blocks per track = 10", "Blocks per track = 0", ""),
        ("Number of spares = 3", "Number of spares = 1e15", "is not accepted"),
        ("slips = [ 3 ]", "slips = [ 3, 18446744073709551615 ]", "slip 18446744073709551615"),
    ] {
        for scheme in 0..=10 {
            let text = model(scheme, "3", "");
            assert!(text.contains(good), "{good}");
            let refused = import(&text.replacen(good, bad, 1)).unwrap_err();
            assert!(refused.contains(says), "{scheme}, {bad}: {refused}");
        }
    }
    let specs =
        SPECS.replace("after write = 0.3", "after write = 1e300") + "Data preparation overhead = 1e300\n}";
    assert!(import_all(&model(0, "3", ""), "", PARV, &specs.replacen("\n}\nData", ",\n Data", 1)).is_err());
}

/// 32 blocks and lists may be in each other, and not one more, however many stand behind each other.
#[test]
fn what_is_in_each_other_has_a_bound() {
    let nested = |block: &str, lists: usize| {
        let text = format!("{block} {{ a = {}{}, b = [ 1 ] }}", "[ ".repeat(lists), "] ".repeat(lists));
        crate::import::params::parse("n", &|_| Ok(text.clone())).map(|blocks| blocks.len())
    };
    assert_eq!(nested("k n", 31), Ok(1));
    let e = nested("k n", 32).unwrap_err();
    assert!(e.starts_with("n: line 1") && e.contains("more than 32 blocks and lists in each other"), "{e}");
    let beside = "k n { a = [ 1 ] }\n".repeat(40);
    assert_eq!(crate::import::params::parse("n", &|_| Ok(beside.clone())).map(|b| b.len()), Ok(40));
}
