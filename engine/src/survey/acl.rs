//! Write access of other users by POSIX access control lists.

use rustix::fd::BorrowedFd;
use rustix::fs::fgetxattr;
use rustix::io::Errno;

use super::dir_reader::User;

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

/// Returns whether a directory's list grants write access to others; true if it is unreadable.
pub fn grants_write(directory: BorrowedFd<'_>, user: &User) -> bool {
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
