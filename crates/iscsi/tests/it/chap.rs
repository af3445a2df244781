//! Logins with CHAP, step by step, with an initiator that answers the challenge it is given.

use super::{Memory, NAME};
use smrlab_iscsi::Target;
use smrlab_iscsi::chap::Secrets;
use smrlab_iscsi::keys::Keys;
use smrlab_iscsi::login::login;
use smrlab_iscsi::pdu::{self, Digests, Pdu, opcode};
use std::os::unix::net::UnixStream;

const SECRETS: &str = "initiator anna correct-horse-battery\ntarget lab staple-of-the-lab";

fn target(secrets: &str) -> Target {
    let secrets = Some(Secrets::parse(secrets).unwrap());
    Target::new(NAME.to_owned(), Memory::boxed(), 1).guarded(secrets)
}

/// An initiator: sends text in a stage, and reads the answer: its status, flags and keys.
struct Initiator(UnixStream);

impl Initiator {
    fn says(&mut self, flags: u8, text: &str) -> ([u8; 2], u8, Keys) {
        let mut request = Pdu::new(opcode::LOGIN | 0x40);
        request.header[1] = flags;
        let data = text.replace(' ', "\0") + "\0";
        pdu::write(&mut self.0, &request, data.as_bytes(), Digests::default()).unwrap();
        let answer = pdu::read(&mut self.0, Digests::default(), 1 << 16).unwrap();
        let status = [answer.header[36], answer.header[37]];
        (status, answer.flags(), Keys::parse(&answer.data).unwrap())
    }
}

/// Has a login led by `initiator`; whether the target let it in.
fn with(target: &Target, initiator: impl FnOnce(Initiator) + Send) -> bool {
    let (ours, theirs) = UnixStream::pair().unwrap();
    std::thread::scope(|scope| {
        let client = scope.spawn(|| initiator(Initiator(theirs)));
        let (mut from, mut to) = (ours.try_clone().unwrap(), ours);
        let done = login(target, &mut from, &mut to);
        drop((from, to));
        client.join().unwrap();
        matches!(done, Ok(Some(_)))
    })
}

const WHO: &str = "InitiatorName=iqn.a TargetName=iqn.2026-01.smrlab:t AuthMethod=CHAP,None";

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.strip_prefix("0x").unwrap().as_bytes();
    digits.chunks(2).map(|d| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap()).collect()
}

/// The response to the challenge in `keys`.
fn response(keys: &Keys, secret: &str) -> String {
    let number: u8 = keys.get("CHAP_I").unwrap().parse().unwrap();
    let challenge = bytes(keys.get("CHAP_C").unwrap());
    assert!(challenge.len() >= 16);
    format!("0x{:x}", md5::compute([&[number][..], secret.as_bytes(), &challenge].concat()))
}

/// Leads a login to its challenge.
fn challenged(initiator: &mut Initiator) -> Keys {
    let (status, flags, keys) = initiator.says(0x00, WHO);
    assert_eq!((status, flags, keys.get("AuthMethod")), ([0, 0], 0, Some("CHAP")));
    // SHA-256 first: the target takes MD5. Who asks for the next stage already stays in this one.
    let (status, flags, keys) = initiator.says(0x81, "CHAP_A=7,5");
    assert_eq!((status, flags, keys.get("CHAP_A")), ([0, 0], 0, Some("5")));
    keys
}

#[test]
fn who_knows_the_secret_comes_in_and_learns_that_the_target_knows_its_own() {
    for mutual in [false, true] {
        let target = target(SECRETS);
        let came = with(&target, |mut initiator| {
            let keys = challenged(&mut initiator);
            let proof = response(&keys, "correct-horse-battery");
            let asks = if mutual { " CHAP_I=7 CHAP_C=0x0102030405" } else { "" };
            let (status, flags, keys) = initiator.says(0x81, &format!("CHAP_N=anna CHAP_R={proof}{asks}"));
            assert_eq!((status, flags), ([0, 0], 0x81));
            let wanted = md5::compute([&[7][..], b"staple-of-the-lab", &[1, 2, 3, 4, 5]].concat());
            let wanted = mutual.then(|| format!("0x{wanted:x}"));
            assert_eq!(keys.get("CHAP_R"), wanted.as_deref());
            assert_eq!(keys.get("CHAP_N"), mutual.then_some("lab"));
            assert_eq!(initiator.says(0x87, "MaxBurstLength=1024").0, [0, 0]);
        });
        assert!(came);
    }
}

#[test]
fn who_does_not_know_it_is_told_so_and_stays_outside() {
    type Attempt = fn(&mut Initiator) -> ([u8; 2], u8, Keys);
    let attempts: [(&str, Attempt); 9] = [
        ("another secret", |i| {
            let proof = response(&challenged(i), "correct-horse-batterx");
            i.says(0x81, &format!("CHAP_N=anna CHAP_R={proof}"))
        }),
        ("another name", |i| {
            let proof = response(&challenged(i), "correct-horse-battery");
            i.says(0x81, &format!("CHAP_N=bert CHAP_R={proof}"))
        }),
        ("half a proof", |i| {
            let proof = response(&challenged(i), "correct-horse-battery");
            i.says(0x81, &format!("CHAP_N=anna CHAP_R={}", &proof[..18]))
        }),
        ("nothing but a name", |i| {
            challenged(i);
            i.says(0x81, "CHAP_N=anna")
        }),
        ("no proof at all", |i| {
            i.says(0x81, "InitiatorName=iqn.a TargetName=iqn.2026-01.smrlab:t AuthMethod=None")
        }),
        ("the next stage at once", |i| i.says(0x87, "InitiatorName=iqn.a TargetName=iqn.2026-01.smrlab:t")),
        ("an algorithm that this side has not", |i| {
            i.says(0x00, WHO);
            i.says(0x00, "CHAP_A=6,7")
        }),
        ("the same proof again", |i| {
            let proof = response(&challenged(i), "correct-horse-battery");
            // Without leaving the stage.
            assert_eq!(i.says(0x00, &format!("CHAP_N=anna CHAP_R={proof}")).0, [0, 0]);
            i.says(0x81, &format!("CHAP_N=anna CHAP_R={proof}"))
        }),
        ("its own challenge back", |i| {
            let keys = challenged(i);
            let proof = response(&keys, "correct-horse-battery");
            let challenge = keys.get("CHAP_C").unwrap().to_owned();
            i.says(0x81, &format!("CHAP_N=anna CHAP_R={proof} CHAP_I=1 CHAP_C={challenge}"))
        }),
    ];
    for (what, attempt) in attempts {
        let came = with(&target(SECRETS), |mut initiator| {
            assert_eq!(attempt(&mut initiator).0, [2, 1], "{what}");
        });
        assert!(!came, "{what}");
    }
    // A target that has no secret of its own proves nothing.
    let came = with(&target("initiator anna correct-horse-battery"), |mut i| {
        let proof = response(&challenged(&mut i), "correct-horse-battery");
        let asked = format!("CHAP_N=anna CHAP_R={proof} CHAP_I=1 CHAP_C=0x01");
        assert_eq!(i.says(0x81, &asked).0, [2, 1]);
    });
    assert!(!came);
}

#[test]
fn a_request_without_a_step_changes_nothing() {
    let came = with(&target(SECRETS), |mut initiator| {
        let keys = challenged(&mut initiator);
        let (status, flags, _) = initiator.says(0x81, "InitiatorAlias=anna");
        assert_eq!((status, flags), ([0, 0], 0), "still in the first stage");
        let proof = response(&keys, "correct-horse-battery");
        assert_eq!(initiator.says(0x83, &format!("CHAP_N=anna CHAP_R={proof}")).1, 0x83);
    });
    assert!(came);
}
