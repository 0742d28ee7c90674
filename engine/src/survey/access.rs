//! Who can write in a directory: its mode and its POSIX access control list.

use rustix::fd::BorrowedFd;
use rustix::fs::{fgetxattr, Mode, Statx};
use rustix::io::Errno;

use super::records::flag;

/// XATTR_SIZE_MAX of linux/limits.h
const MAX_XATTR_BYTES: usize = 64 << 10;
const HEADER_BYTES: usize = 4;
const ENTRY_BYTES: usize = 8;
/// POSIX_ACL_XATTR_VERSION of linux/posix_acl_xattr.h
const VERSION: u32 = 2;
const NAMED_USER: u16 = 0x02;
const NAMED_GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const WRITE: u16 = 0x02;

const ROOT: u32 = 0;

/// The user of the survey, and the users that are trusted.
#[derive(Clone, Debug)]
pub struct User {
    pub uid: u32,
    /// Groups without members other than this user and root.
    pub private_groups: Vec<u32>,
}

impl User {
    /// Returns whether users other than this user and root can write in a directory.
    ///
    /// The group bits of the mode are the mask of the access control list (acl(5)). Without write access
    /// there, no entry of the list has it.
    pub fn is_writable_by_others(&self, status: &Statx, directory: BorrowedFd<'_>) -> bool {
        let mode = Mode::from_raw_mode(status.stx_mode.into());
        if !self.trusts(status.stx_uid) || mode.contains(Mode::WOTH) {
            return true;
        }
        mode.contains(Mode::WGRP)
            && (!self.private_groups.contains(&status.stx_gid) || grants_write(directory, self))
    }

    pub fn trusts(&self, uid: u32) -> bool {
        uid == ROOT || uid == self.uid
    }

    /// Returns whether the sticky bit lets this user remove only entries that the user owns.
    pub fn is_restricted_by_sticky_bit(&self, status: &Statx) -> bool {
        let mode = Mode::from_raw_mode(status.stx_mode.into());
        !self.is_root() && mode.contains(Mode::SVTX) && status.stx_uid != self.uid
    }

    pub fn is_root(&self) -> bool {
        self.uid == ROOT
    }

    /// Returns the flags of a directory that do not depend on its entries.
    pub fn dir_flags(&self, status: &Statx, directory: BorrowedFd<'_>) -> u32 {
        use rustix::fs::StatxAttributes as Attribute;
        let attributes = status.stx_attributes;
        let flags = [
            (attributes.contains(Attribute::IMMUTABLE), flag::IMMUTABLE),
            (attributes.contains(Attribute::APPEND), flag::APPEND_ONLY),
            (self.is_writable_by_others(status, directory), flag::SHARED),
            (self.is_restricted_by_sticky_bit(status), flag::STICKY),
        ];
        flags
            .iter()
            .filter(|(is_so, _)| *is_so)
            .fold(0, |flags, (_, flag)| flags | flag)
    }
}

/// Returns whether a directory's list grants write access to others; true if it is unreadable.
fn grants_write(directory: BorrowedFd<'_>, user: &User) -> bool {
    let mut value = vec![0_u8; MAX_XATTR_BYTES];
    match fgetxattr(directory, c"system.posix_acl_access", &mut value[..]) {
        Ok(length) => grants_other_writer(&value[..length], user),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => false,
        Err(_) => true,
    }
}

fn grants_other_writer(value: &[u8], user: &User) -> bool {
    let Some((version, body)) = value.split_first_chunk::<HEADER_BYTES>() else {
        return true;
    };
    if u32::from_le_bytes(*version) != VERSION || body.len() % ENTRY_BYTES != 0 {
        return true;
    }
    let entries = || {
        body.chunks_exact(ENTRY_BYTES).map(|entry| {
            let tag = u16::from_le_bytes([entry[0], entry[1]]);
            let permissions = u16::from_le_bytes([entry[2], entry[3]]);
            let id = u32::from_le_bytes([entry[4], entry[5], entry[6], entry[7]]);
            (tag, permissions, id)
        })
    };
    let mask = entries()
        .find(|(tag, ..)| *tag == MASK)
        .map_or(WRITE, |(_, permissions, _)| permissions);
    entries().any(|(tag, permissions, id)| {
        let is_other = match tag {
            NAMED_USER => !user.trusts(id),
            NAMED_GROUP => !user.private_groups.contains(&id),
            _ => false,
        };
        is_other && permissions & mask & WRITE != 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: u32 = 1000;

    fn list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
        let mut value = VERSION.to_le_bytes().to_vec();
        for (tag, permissions, id) in entries {
            value.extend_from_slice(&tag.to_le_bytes());
            value.extend_from_slice(&permissions.to_le_bytes());
            value.extend_from_slice(&id.to_le_bytes());
        }
        value
    }

    fn grants(entries: &[(u16, u16, u32)]) -> bool {
        let user = User {
            uid: ME,
            private_groups: vec![ME],
        };
        grants_other_writer(&list(entries), &user)
    }

    #[test]
    fn only_write_access_of_other_users_counts() {
        assert!(grants(&[(NAMED_USER, 7, 65534), (MASK, 7, u32::MAX)]));
        assert!(grants(&[(NAMED_GROUP, 2, 65534), (MASK, 7, u32::MAX)]));
        assert!(grants(&[(NAMED_GROUP, 7, 0), (MASK, 7, u32::MAX)]));
        assert!(!grants(&[(NAMED_USER, 5, 65534), (MASK, 7, u32::MAX)]));
        assert!(!grants(&[(NAMED_USER, 7, 65534), (MASK, 5, u32::MAX)]));
        assert!(!grants(&[(NAMED_USER, 7, 0), (NAMED_USER, 7, ME)]));
        assert!(!grants(&[(NAMED_GROUP, 7, ME), (MASK, 7, u32::MAX)]));
        assert!(!grants(&[]));
    }

    #[test]
    fn malformed_list_counts_as_write_access() {
        let user = User {
            uid: ME,
            private_groups: vec![],
        };
        assert!(grants_other_writer(b"", &user));
        assert!(grants_other_writer(b"\x03\0\0\0", &user));
        assert!(grants_other_writer(b"\x02\0\0\0\x01", &user));
    }
}
