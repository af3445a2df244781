//! Reservations, as SPC-4 (5.12) has them, between three hosts.

use crate::disk::Memory;
use smrlab_scsi::{Keeps, Refused, Reservations, Sense, execute};

const A: &str = "iqn.a,i,0x000000000001";
const B: &str = "iqn.b,i,0x000000000001";
const C: &str = "iqn.c,i,0x000000000001";
const CONFLICT: Result<Vec<u8>, Refused> = Err(Refused::Conflict);
const DONE: Result<Vec<u8>, Refused> = Ok(Vec::new());

const REGISTER: u8 = 0;
const RESERVE: u8 = 1;
const RELEASE: u8 = 2;
const CLEAR: u8 = 3;
const PREEMPT: u8 = 4;
const IGNORE: u8 = 6;

/// PERSISTENT RESERVE OUT with a key and a key of the service action.
fn out(disk: &Memory, host: &str, action: u8, kind: u8, keys: [u64; 2]) -> Result<Vec<u8>, Refused> {
    out_with(disk, host, (action, kind), keys, 0)
}

/// The same with flags: APTPL is 1.
fn out_with(
    disk: &Memory,
    host: &str,
    (action, kind): (u8, u8),
    keys: [u64; 2],
    flags: u8,
) -> Result<Vec<u8>, Refused> {
    let mut list = keys.map(u64::to_be_bytes).concat();
    list.extend([0, 0, 0, 0, flags, 0, 0, 0]);
    execute(disk, host, &[0x5f, action, kind, 0, 0, 0, 0, 0, 24, 0], &list)
}

/// Who registers says whether keys and the reservation are kept when the power is lost, if they can be; what cannot be kept does not come about.
#[test]
fn reservations_are_kept_where_a_host_asks_for_it() {
    let disk = Memory::new(416, 512);
    let refused = Err(Sense::INVALID_LIST.into());
    assert_eq!(out_with(&disk, A, (REGISTER, 0), [0, 10], 1), refused);
    assert_eq!(told(&disk, 2)[2..4], [0, 0x80]);
    *disk.kept.borrow_mut() = Some(None);
    let kept = || disk.kept.borrow().clone().unwrap();
    assert_eq!(out(&disk, A, REGISTER, 0, [0, 10]), DONE);
    assert_eq!((kept(), &told(&disk, 2)[2..4]), (None, &[1, 0x80][..]));
    assert_eq!(out_with(&disk, B, (IGNORE, 0), [0, 11], 1), DONE);
    // Others do not change that.
    assert_eq!(out(&disk, B, RESERVE, 5, [11, 0]), DONE);
    let text = format!("key a {A}\nkey b {B}\nheld 5 {B}\n");
    assert_eq!((kept(), &told(&disk, 2)[2..4]), (Some(text.clone()), &[1, 0x81][..]));
    let again = Memory::new(416, 512);
    *again.reservations.borrow_mut() = Reservations::from_text(&text).unwrap();
    assert_eq!([A, B, C].map(|host| write(&again, host)), [true, true, false]);
    assert_eq!((&told(&again, 0)[..4], &told(&again, 0)[4..]), (&[0; 4][..], &told(&disk, 0)[4..]));
    for wrong in ["key a", "key x h\n", "held 2 h\n", "key A h\n", "other 1 h\n"] {
        assert_eq!(Reservations::from_text(wrong), None, "{wrong}");
    }
    disk.fault.set(Some(Sense::WRITE_ERROR));
    assert_eq!(out(&disk, B, RELEASE, 5, [11, 0]), Err(Sense::WRITE_ERROR.into()));
    assert!(!write(&disk, C), "it is reserved still");
    assert_eq!(out_with(&disk, A, (REGISTER, 0), [10, 12], 0), DONE);
    assert_eq!(kept(), None);
}

/// PERSISTENT RESERVE IN.
fn told(disk: &Memory, action: u8) -> Vec<u8> {
    execute(disk, A, &[0x5e, action, 0, 0, 0, 0, 0, 1, 0, 0], &[]).unwrap()
}

fn read(disk: &Memory, host: &str) -> bool {
    allowed(execute(disk, host, &[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0], &[]))
}

fn write(disk: &Memory, host: &str) -> bool {
    allowed(execute(disk, host, &[0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0], &[0; 512]))
}

fn allowed(answer: Result<Vec<u8>, Refused>) -> bool {
    assert!(answer.is_ok() || answer == CONFLICT, "{answer:?}");
    answer.is_ok()
}

/// What a host hears with its next command.
fn hears(disk: &Memory, host: &str) -> Option<Sense> {
    let mut all = disk.reservations.borrow_mut();
    let first = all.attention(host);
    assert_eq!(all.take_attention(host), first);
    first
}

/// A disk on which A and B are registered with keys 10 and 11.
fn registered() -> Memory {
    let disk = Memory::new(416, 512);
    assert_eq!(out(&disk, A, REGISTER, 0, [0, 10]), DONE);
    assert_eq!(out(&disk, B, REGISTER, 0, [0, 11]), DONE);
    disk
}

/// For each type: what a registered host that does not hold it, and one that is not registered, may do.
#[test]
fn what_each_type_keeps_from_whom() {
    for (keeps, registered_reads, registered_writes, others_read) in [
        (Keeps::Writes, true, false, true),
        (Keeps::Access, false, false, false),
        (Keeps::WritesRegistrantsOnly, true, true, true),
        (Keeps::AccessRegistrantsOnly, true, true, false),
        (Keeps::WritesAllRegistrants, true, true, true),
        (Keeps::AccessAllRegistrants, true, true, false),
    ] {
        let disk = registered();
        assert!(write(&disk, C), "nobody reserved it");
        assert_eq!(out(&disk, A, RESERVE, keeps as u8, [10, 0]), DONE);
        assert!(read(&disk, A) && write(&disk, A), "{keeps:?}");
        assert_eq!((read(&disk, B), write(&disk, B)), (registered_reads, registered_writes), "{keeps:?}");
        assert_eq!((read(&disk, C), write(&disk, C)), (others_read, false), "{keeps:?}");
        // Asking is free: TEST UNIT READY, READ CAPACITY, INQUIRY, REPORT LUNS; flushes and MODE SELECT are not.
        for cdb in [&[0; 6][..], &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[0x12, 0, 0, 0, 36, 0]] {
            assert!(allowed(execute(&disk, C, cdb, &[])), "{cdb:x?}");
        }
        for cdb in [&[0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &[0x15, 0x10, 0, 0, 0, 0]] {
            assert!(!allowed(execute(&disk, C, cdb, &[])), "{cdb:x?}");
        }
    }
}

#[test]
fn registering_changing_and_ending_a_registration() {
    let disk = Memory::new(416, 512);
    assert_eq!(told(&disk, 0), [0; 8]);
    assert_eq!(out(&disk, A, REGISTER, 0, [5, 10]), CONFLICT, "it has no key yet");
    assert_eq!(out(&disk, A, RESERVE, 1, [0, 0]), CONFLICT, "it is not registered");
    assert_eq!(out(&disk, A, REGISTER, 0, [0, 10]), DONE);
    assert_eq!(out(&disk, B, IGNORE, 0, [99, 11]), DONE, "whatever the key");
    assert_eq!(out(&disk, A, REGISTER, 0, [0, 12]), CONFLICT, "the key is not that of before");
    assert_eq!(out(&disk, A, REGISTER, 0, [10, 12]), DONE);
    // Three changes; two keys, in the order of the hosts' names.
    assert_eq!(
        told(&disk, 0),
        [[0, 0, 0, 3], [0, 0, 0, 16], [0; 4], [0, 0, 0, 12], [0; 4], [0, 0, 0, 11]].concat()
    );
    assert_eq!(out(&disk, A, RESERVE, 1, [12, 0]), DONE);
    assert_eq!(out(&disk, A, REGISTER, 0, [12, 0]), DONE, "with its registration the reservation ends");
    assert_eq!(told(&disk, 1), [0, 0, 0, 4, 0, 0, 0, 0]);
    assert_eq!(hears(&disk, B), None);
    assert!(write(&disk, C));
}

#[test]
fn a_reservation_is_told_and_released_by_who_holds_it() {
    let disk = registered();
    assert_eq!(out(&disk, A, RESERVE, 5, [11, 0]), CONFLICT, "the key of another host");
    assert_eq!(out(&disk, A, RESERVE, 5, [10, 0]), DONE);
    assert_eq!(out(&disk, A, RESERVE, 5, [10, 0]), DONE, "it has it");
    assert_eq!(out(&disk, A, RESERVE, 1, [10, 0]), CONFLICT, "of another type");
    assert_eq!(out(&disk, B, RESERVE, 5, [11, 0]), CONFLICT, "another host has it");
    assert_eq!(told(&disk, 1)[4..], [0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 5, 0, 0]);
    assert_eq!(out(&disk, B, RELEASE, 5, [11, 0]), DONE, "nothing of its own");
    assert!(!write(&disk, C));
    for other in [1, 6] {
        assert_eq!(out(&disk, A, RELEASE, other, [10, 0]), Err(Sense::INVALID_RELEASE.into()));
    }
    assert_eq!(out(&disk, A, RELEASE, 5, [10, 0]), DONE);
    assert!(write(&disk, C));
    assert_eq!(
        (hears(&disk, B), hears(&disk, A), hears(&disk, C)),
        (Some(Sense::RESERVATIONS_RELEASED), None, None)
    );
}

#[test]
fn what_all_registrants_hold_ends_with_the_last_of_them() {
    let disk = registered();
    assert_eq!(out(&disk, A, RESERVE, 8, [10, 0]), DONE);
    assert_eq!(told(&disk, 1)[8..16], [0; 8], "it is nobody's key");
    assert_eq!(out(&disk, A, REGISTER, 0, [10, 0]), DONE);
    assert!(!read(&disk, A) && write(&disk, B));
    assert_eq!(out(&disk, B, REGISTER, 0, [11, 0]), DONE);
    assert!(read(&disk, A));
}

#[test]
fn preempting_a_holder_and_registrants() {
    let disk = registered();
    assert_eq!(out(&disk, C, REGISTER, 0, [0, 11]), DONE);
    assert_eq!(out(&disk, B, RESERVE, 5, [11, 0]), DONE);
    assert_eq!(out(&disk, A, PREEMPT, 1, [10, 7]), CONFLICT, "nobody has that key");
    assert_eq!(out(&disk, A, PREEMPT, 1, [10, 0]), Err(Sense::INVALID_LIST.into()));
    // The key of the holder, and of another one.
    assert_eq!(out(&disk, A, PREEMPT, 1, [10, 11]), DONE);
    assert_eq!(told(&disk, 0)[4..], [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 10]);
    assert_eq!(told(&disk, 1)[21], 1);
    assert_eq!([B, C].map(|host| hears(&disk, host)), [Some(Sense::REGISTRATIONS_PREEMPTED); 2]);
    assert!(!write(&disk, B) && write(&disk, A));
    assert_eq!(out(&disk, B, PREEMPT, 1, [11, 10]), CONFLICT, "it is not registered any more");
    // One that holds nothing: the reservation stays as it is.
    assert_eq!(out(&disk, B, REGISTER, 0, [0, 11]), DONE);
    assert_eq!(out(&disk, A, PREEMPT + 1, 3, [10, 11]), DONE);
    assert_eq!((told(&disk, 0)[7], told(&disk, 1)[21]), (8, 1));
    assert_eq!(hears(&disk, B), Some(Sense::REGISTRATIONS_PREEMPTED));
}

#[test]
fn preempting_what_all_hold_ends_all_other_registrations() {
    let disk = registered();
    assert_eq!(out(&disk, C, REGISTER, 0, [0, 12]), DONE);
    assert_eq!(out(&disk, A, RESERVE, 7, [10, 0]), DONE);
    assert_eq!(out(&disk, A, PREEMPT, 3, [10, 12]), DONE, "one of them");
    assert_eq!((told(&disk, 0)[7], told(&disk, 1)[21]), (16, 7));
    assert_eq!(out(&disk, B, PREEMPT, 3, [11, 0]), DONE);
    assert_eq!(
        (told(&disk, 0)[4..].to_vec(), told(&disk, 1)[21]),
        (vec![0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 11], 3)
    );
    assert!(!read(&disk, A) && read(&disk, B));
}

#[test]
fn those_that_stay_hear_of_another_type() {
    let disk = registered();
    assert_eq!(out(&disk, C, REGISTER, 0, [0, 12]), DONE);
    assert_eq!(out(&disk, B, RESERVE, 5, [11, 0]), DONE);
    assert_eq!(out(&disk, A, PREEMPT, 6, [10, 11]), DONE);
    assert_eq!(hears(&disk, C), Some(Sense::RESERVATIONS_RELEASED));
    // One that another has now as it was is nothing new to them.
    assert_eq!(hears(&disk, B), Some(Sense::REGISTRATIONS_PREEMPTED));
    assert_eq!(out(&disk, B, REGISTER, 0, [0, 13]), DONE);
    assert_eq!(out(&disk, C, PREEMPT, 6, [12, 10]), DONE);
    assert_eq!([A, B].map(|host| hears(&disk, host)), [Some(Sense::REGISTRATIONS_PREEMPTED), None]);
}

/// What a host has not heard is told once, however often it happened, and to nobody who comes anew under its name.
#[test]
fn what_was_not_heard_is_told_once_and_goes_with_the_session() {
    let disk = registered();
    for _ in 0..2 {
        assert_eq!(out(&disk, A, PREEMPT, 1, [10, 11]), DONE);
        assert_eq!(out(&disk, B, REGISTER, 0, [0, 11]), DONE);
    }
    assert_eq!(told(&disk, 0)[..4], [0, 0, 0, 6], "each is a change");
    assert_eq!([hears(&disk, B), hears(&disk, B)], [Some(Sense::REGISTRATIONS_PREEMPTED), None]);
    assert_eq!(out(&disk, A, PREEMPT, 1, [10, 11]), DONE);
    disk.reservations.borrow_mut().lost(B);
    assert_eq!(hears(&disk, B), None);
}

/// What happened first is heard first, whoever looks at it before.
#[test]
fn hosts_hear_of_what_happened_in_its_order() {
    let disk = registered();
    assert_eq!(out(&disk, A, RESERVE, 5, [10, 0]), DONE);
    assert_eq!(out(&disk, A, RELEASE, 5, [10, 0]), DONE);
    assert_eq!(out(&disk, A, PREEMPT, 1, [10, 11]), DONE);
    let both = [hears(&disk, B), hears(&disk, B), hears(&disk, B)];
    assert_eq!(both, [Some(Sense::RESERVATIONS_RELEASED), Some(Sense::REGISTRATIONS_PREEMPTED), None]);
}

/// PREEMPT AND ABORT names those whose commands are to be ended, once; PREEMPT names nobody.
#[test]
fn preempt_and_abort_names_whose_commands_end() {
    let disk = registered();
    assert_eq!(out(&disk, C, REGISTER, 0, [0, 11]), DONE);
    let aborted = || disk.reservations.borrow_mut().take_aborted();
    assert_eq!(out(&disk, A, PREEMPT + 1, 1, [10, 11]), DONE);
    assert_eq!((aborted(), aborted()), (vec![B.to_owned(), C.to_owned()], Vec::new()));
    assert_eq!(out(&disk, B, REGISTER, 0, [0, 11]), DONE);
    assert_eq!(out(&disk, A, PREEMPT, 1, [10, 11]), DONE);
    assert_eq!(aborted(), Vec::<String>::new());
}

/// Who names its own key takes the place of those that share it, and stays registered.
#[test]
fn a_host_that_preempts_its_own_key_stays() {
    let disk = registered();
    assert_eq!(out(&disk, C, REGISTER, 0, [0, 10]), DONE);
    assert_eq!(out(&disk, A, RESERVE, 5, [10, 0]), DONE);
    assert_eq!(out(&disk, A, PREEMPT, 6, [10, 10]), DONE);
    assert_eq!((told(&disk, 0)[7], told(&disk, 1)[21]), (16, 6), "A and B");
    assert!(read(&disk, A) && read(&disk, B) && !read(&disk, C));
}

/// Who names its own key and holds nothing by it ends its own registration, too, and hears nothing of that; what the reservation would be is not
/// looked at. With the last registration ends what all of them hold.
#[test]
fn a_host_that_preempts_its_own_key_without_a_reservation_of_its_own_goes() {
    let nobody = vec![0, 0, 0, 0];
    for (keeps, left) in [(None, &[11][..]), (Some(1), &[11]), (Some(7), &[11]), (Some(8), &[])] {
        let disk = registered();
        assert_eq!(out(&disk, C, REGISTER, 0, [0, 10]), DONE);
        if left.is_empty() {
            assert_eq!(out(&disk, B, REGISTER, 0, [11, 10]), DONE);
        }
        if let Some(keeps) = keeps {
            let (host, key) = if left.is_empty() { (A, 10) } else { (B, 11) };
            assert_eq!(out(&disk, host, RESERVE, keeps, [key, 0]), DONE);
        }
        assert_eq!(out(&disk, A, PREEMPT, 0xff, [10, 10]), DONE, "{keeps:?}");
        let keys: Vec<u8> = told(&disk, 0)[8..].chunks(8).map(|key| key[7]).collect();
        assert_eq!(keys, left, "{keeps:?}");
        assert_eq!([A, C].map(|host| hears(&disk, host)), [None, Some(Sense::REGISTRATIONS_PREEMPTED)]);
        assert_eq!(told(&disk, 1)[4..] == nobody, keeps.is_none() || left.is_empty(), "{keeps:?}");
    }
    let disk = registered();
    assert_eq!(out(&disk, A, RESERVE, 1, [10, 0]), DONE);
    let refused = out(&disk, B, PREEMPT, 0xff, [11, 10]);
    assert!(matches!(refused, Err(Refused::Check(_))), "it would have it");
    assert_eq!(out(&disk, C, IGNORE, 0, [0, 0]), DONE);
    assert_eq!(told(&disk, 0)[..8], [0, 0, 0, 2, 0, 0, 0, 16], "nothing changed");
}

/// Of a reservation that the registered hosts shared they hear when its holder ends it with its registration; of others they had nothing. Where
/// all of them hold it, it goes on.
#[test]
fn those_that_shared_a_reservation_hear_when_its_holder_leaves() {
    for keeps in Keeps::ALL {
        let disk = registered();
        assert_eq!(out(&disk, A, RESERVE, keeps as u8, [10, 0]), DONE);
        assert_eq!(out(&disk, A, REGISTER, 0, [10, 0]), DONE);
        let shared = matches!(keeps, Keeps::WritesRegistrantsOnly | Keeps::AccessRegistrantsOnly);
        assert_eq!(hears(&disk, B), shared.then_some(Sense::RESERVATIONS_RELEASED), "{keeps:?}");
        assert_eq!([hears(&disk, A), hears(&disk, C)], [None; 2], "{keeps:?}");
        let all = matches!(keeps, Keeps::WritesAllRegistrants | Keeps::AccessAllRegistrants);
        assert_eq!((write(&disk, B), write(&disk, C)), (true, !all), "{keeps:?}");
    }
}

#[test]
fn clear_ends_everything() {
    let disk = registered();
    assert_eq!(out(&disk, A, RESERVE, 3, [10, 0]), DONE);
    assert_eq!(out(&disk, B, CLEAR, 0, [11, 0]), DONE, "whoever is registered may");
    assert_eq!(told(&disk, 0), [0, 0, 0, 3, 0, 0, 0, 0]);
    assert!(write(&disk, C));
    assert_eq!((hears(&disk, A), hears(&disk, B)), (Some(Sense::RESERVATIONS_PREEMPTED), None));
}

#[test]
fn full_status_and_capabilities_byte_by_byte() {
    let disk = Memory::new(416, 512);
    assert_eq!(out(&disk, A, REGISTER, 0, [0, 10]), DONE);
    assert_eq!(out(&disk, A, RESERVE, 5, [10, 0]), DONE);
    let mut expected = vec![0, 0, 0, 1, 0, 0, 0, 52];
    expected
        .extend([0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 1, 5, 0, 0, 0, 0, 0, 1, 0, 0, 0, 28, 0x45, 0, 0, 24]);
    expected.extend(b"iqn.a,i,0x000000000001\0\0");
    assert_eq!(told(&disk, 3), expected);
    assert_eq!(told(&disk, 2), [0, 8, 0, 0x80, 0xea, 0x01, 0, 0]);
}

#[test]
fn lists_and_fields_that_are_refused() {
    let disk = registered();
    let list = |at: usize, byte: u8, length: u8| {
        let mut list = [0; 24];
        (list[7], list[at]) = (10, byte);
        execute(&disk, A, &[0x5f, CLEAR, 0, 0, 0, 0, 0, 0, length, 0], &list)
    };
    assert_eq!(list(23, 0, 23), Err(Sense::LIST_LENGTH.into()));
    for bit in [0x04, 0x08] {
        assert_eq!(list(20, bit, 24), Err(Sense::INVALID_LIST.into()), "{bit:x}");
    }
    for kind in [0, 2, 4, 9, 0x15] {
        let answer = out(&disk, A, RESERVE, kind, [10, 0]);
        assert!(
            matches!(answer, Err(Refused::Check(Sense { code: [0x24, 0], field: Some(2), .. }))),
            "{kind}"
        );
    }
    assert!(matches!(out(&disk, A, 7, 0, [10, 0]), Err(Refused::Check(Sense { field: Some(1), .. }))));
    assert_eq!(told(&disk, 0)[3], 2, "nothing changed");
}

#[test]
fn the_reservation_of_spc_2_is_one_hosts_alone() {
    let disk = Memory::new(416, 512);
    let ask = |host: &str, code: u8| execute(&disk, host, &[code, 0, 0, 0, 0, 0], &[]);
    assert_eq!(ask(A, 0x16), DONE);
    assert_eq!(ask(A, 0x16), DONE);
    assert!(write(&disk, A) && !read(&disk, B));
    assert_eq!((ask(B, 0x16), ask(B, 0x00)), (CONFLICT, CONFLICT));
    assert!(ask(B, 0x12).is_ok());
    assert_eq!(out(&disk, B, REGISTER, 0, [0, 11]), CONFLICT);
    assert_eq!(ask(B, 0x17), DONE, "of a host that has it not: nothing");
    assert!(!read(&disk, B));
    assert_eq!(ask(A, 0x17), DONE);
    assert!(read(&disk, B));
    // It ends with the session of its host, and with a reset.
    assert_eq!(ask(A, 0x16), DONE);
    disk.reservations.borrow_mut().lost(B);
    assert!(!read(&disk, B));
    disk.reservations.borrow_mut().lost(A);
    assert_eq!(ask(B, 0x16), DONE);
    disk.reservations.borrow_mut().reset();
    assert!(read(&disk, A));
    // Where somebody is registered the other kind is refused.
    assert_eq!(out(&disk, A, REGISTER, 0, [0, 10]), DONE);
    assert_eq!((ask(A, 0x16), ask(A, 0x17)), (CONFLICT, CONFLICT));
}

#[test]
fn persistent_ones_outlive_sessions_and_resets() {
    let disk = registered();
    assert_eq!(out(&disk, A, RESERVE, 3, [10, 0]), DONE);
    disk.reservations.borrow_mut().lost(A);
    disk.reservations.borrow_mut().reset();
    assert!(!read(&disk, B) && read(&disk, A));
}

#[test]
fn only_so_many_hosts_register_and_hear() {
    let disk = Memory::new(416, 512);
    for n in 0..128 {
        assert_eq!(out(&disk, &format!("iqn.{n}"), REGISTER, 0, [0, 1]), DONE);
    }
    assert_eq!(out(&disk, A, REGISTER, 0, [0, 1]), Err(Sense::REGISTRATION_RESOURCES.into()));
    assert_eq!(out(&disk, "iqn.0", REGISTER, 0, [1, 2]), DONE, "it is");
}

/// Who reserved nothing may start the disk, but not stop it (SBC-4, commands that reservations allow).
#[test]
fn a_disk_is_stopped_by_who_may_write() {
    let disk = Memory::new(416, 512);
    assert_eq!(out(&disk, A, REGISTER, 0, [0, 10]), DONE);
    assert_eq!(out(&disk, A, RESERVE, 1, [10, 0]), DONE);
    let start_stop = |host: &str, start: u8| execute(&disk, host, &[0x1b, 0, 0, 0, start, 0], &[]);
    assert_eq!((start_stop(B, 0), disk.modes.get().stopped), (CONFLICT, false));
    assert_eq!((start_stop(A, 0), disk.modes.get().stopped), (DONE, true));
    assert_eq!((start_stop(B, 1), disk.modes.get().stopped), (DONE, false));
}
