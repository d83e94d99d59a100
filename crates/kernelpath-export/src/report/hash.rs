//! The hash by which a browser knows a script.

use sha2::{Digest, Sha256};

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The SHA-256 of some bytes, in base 64.
pub(crate) fn sha256_base64(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let mut out = String::with_capacity(44);
    for three in hash.chunks(3) {
        let at = |k: usize| u32::from(three.get(k).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for k in 0..4 {
            // Three bytes are four digits; what is missing at the end is filled up.
            let digit = DIGITS[(bits >> (18 - 6 * k) & 63) as usize];
            out.push(if k <= three.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_that_of_other_programs() {
        assert_eq!(sha256_base64(b""), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        assert_eq!(sha256_base64(b"abc"), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
    }
}
