//! A thread whose syncs fail, for tests: a filter of system calls refuses them.
#![allow(unsafe_code)]

use libc::c_long;

/// What `f` answers where the system call of this number fails with `EIO`.
fn where_fails<T: Send>(call: c_long, f: impl FnOnce() -> T + Send) -> T {
    let refused = || {
        refuse(call);
        f()
    };
    std::thread::scope(|s| s.spawn(refused).join().unwrap())
}

fn refuse(call: c_long) {
    let step = |code, k, jf| libc::sock_filter { code, jt: 0, jf, k };
    let (load, answer) = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, libc::BPF_RET | libc::BPF_K);
    let mut filter = [
        // The number of the call is the first that is known of it; of another one the refusal is skipped.
        step(load as u16, 0, 0),
        step((libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16, call as u32, 1),
        step(answer as u16, libc::SECCOMP_RET_ERRNO | libc::EIO as u32, 0),
        step(answer as u16, libc::SECCOMP_RET_ALLOW, 0),
    ];
    let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
    // SAFETY: both concern this thread alone, which ends with the test; the kernel copies the program.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}

mod tests {
    use super::*;
    use crate::entry::Entry;
    use crate::error::Result;
    use crate::log::Log;
    use crate::store::header::{Header, StoreDir};
    use crate::store::{Sparse, Store};
    use std::path::Path;

    fn log(dir: &Path) -> Result<Log> {
        Log::open(dir, 1, 1, &mut |_| ())
    }

    fn header() -> Header {
        Header { id: 1, blocks: 8, layer: String::new(), drive: String::new(), device: None }
    }

    /// Makes something durable in a directory in which there is nothing.
    type Step = fn(&Path) -> Result<()>;

    /// Whatever makes something durable says so where it cannot: sizes and names by `fsync`, data by `fdatasync`.
    #[test]
    fn what_cannot_be_made_durable_is_not_said_to_be() {
        let (names, data) = (libc::SYS_fsync, libc::SYS_fdatasync);
        let steps: [(&str, Step, &[c_long]); 6] = [
            ("a store", |dir| StoreDir::create(dir, header()).map(drop), &[names]),
            ("files", |dir| Sparse::create(dir, 8192).map(drop), &[names]),
            ("bytes", |dir| Sparse::create(dir, 8192)?.sync(), &[names, data]),
            ("a log", |dir| log(dir).map(drop), &[names]),
            ("a mark", |dir| log(dir)?.mark(Default::default())?.sync().map(drop), &[names, data]),
            ("a checkpoint", |dir| log(dir)?.rotate(0)?.write(std::iter::empty()), &[names, data]),
        ];
        for (what, step, calls) in steps {
            for call in [names, data, libc::SYS_sync] {
                let dir = tempfile::tempdir().unwrap();
                let done = where_fails(call, || step(dir.path()));
                assert_eq!(done.is_err(), calls.contains(&call), "{what}, call {call}: {done:?}");
            }
        }
    }

    /// Where the old log cannot be made durable, or the new one not begun, the old one goes on.
    #[test]
    fn a_log_that_cannot_be_followed_goes_on() {
        for call in [libc::SYS_fdatasync, libc::SYS_fsync] {
            let dir = tempfile::tempdir().unwrap();
            let mut old = log(dir.path()).unwrap();
            let entry = |n| Entry { tag: 7, words: [n, 0, 0] };
            old.append(entry(1)).unwrap();
            let before = old.position();
            assert!(where_fails(call, || old.rotate(1).map(drop)).is_err());
            assert_eq!(old.position(), before);
            old.append(entry(2)).unwrap();
            drop(old);
            let mut held = Vec::new();
            Log::open(dir.path(), 1, 1, &mut |e| held.push(e)).unwrap();
            assert_eq!(held, [entry(1), entry(2)]);
        }
    }

    /// A checkpoint that cannot be made durable leaves both logs, and is not there.
    #[test]
    fn a_checkpoint_that_cannot_be_made_durable_counts_for_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut old = log(dir.path()).unwrap();
        old.append(Entry { tag: 7, words: [1, 0, 0] }).unwrap();
        let checkpoint = old.rotate(1).unwrap();
        where_fails(libc::SYS_fsync, || checkpoint.write(std::iter::empty())).unwrap_err();
        drop(old);
        let mut held = 0;
        Log::open(dir.path(), 1, 1, &mut |_| held += 1).unwrap();
        assert_eq!(held, 1);
    }
}
