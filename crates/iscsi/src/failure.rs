//! Why logins fail, in the numbers of RFC 7143, section 11.13.5.

/// Why a login fails: class and detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure(pub [u8; 2]);

impl Failure {
    pub(crate) const INITIATOR: Self = Self([2, 0]);
    pub(crate) const AUTHENTICATION: Self = Self([2, 1]);
    pub(crate) const UNAVAILABLE: Self = Self([3, 1]);
    pub(crate) const RESOURCES: Self = Self([3, 2]);
    pub(crate) const NOT_FOUND: Self = Self([2, 3]);
    pub(crate) const VERSION: Self = Self([2, 5]);
    pub(crate) const MISSING: Self = Self([2, 7]);
    pub(crate) const SESSION_TYPE: Self = Self([2, 9]);
    pub(crate) const NO_SESSION: Self = Self([2, 10]);
    pub(crate) const INVALID: Self = Self([2, 11]);
}
