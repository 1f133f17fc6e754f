//! Values as bytes of a trace: numbers are short if they are small, and zeros are a value of each type.

use stackglass_proc_text::{SchedStat, Sleep, SleepPlace, ThreadState};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::Arc;

/// A value that a trace can hold.
pub(in crate::perf_sampler) trait Stored: Sized {
    /// Appends its bytes.
    fn put(&self, to: &mut Vec<u8>);

    /// Takes it from the front of bytes.
    fn get(from: &mut &[u8]) -> Option<Self>;

    /// What a question has as its answer if nothing is known: no bytes, no thread, nothing.
    fn nothing() -> Self {
        Self::get(&mut &[0; 64][..]).expect("zeros are a value of each type")
    }

    /// All its bytes.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.put(&mut bytes);
        bytes
    }
}

impl Stored for u8 {
    fn put(&self, to: &mut Vec<u8>) {
        to.push(*self);
    }

    fn get(from: &mut &[u8]) -> Option<u8> {
        let (first, rest) = from.split_first()?;
        *from = rest;
        Some(*first)
    }
}

impl Stored for u64 {
    fn put(&self, to: &mut Vec<u8>) {
        let mut rest = *self;
        while rest >= 0x80 {
            to.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        to.push(rest as u8);
    }

    fn get(from: &mut &[u8]) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = u8::get(from)?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

/// Types that are stored as a number.
macro_rules! stored_as_number {
    ($($type:ty),*) => {$(
        impl Stored for $type {
            fn put(&self, to: &mut Vec<u8>) {
                (*self as u64).put(to);
            }

            fn get(from: &mut &[u8]) -> Option<$type> {
                <$type>::try_from(u64::get(from)?).ok()
            }
        }
    )*};
}

stored_as_number!(u16, u32, usize);

impl Stored for bool {
    fn put(&self, to: &mut Vec<u8>) {
        u8::from(*self).put(to);
    }

    fn get(from: &mut &[u8]) -> Option<bool> {
        Some(u8::get(from)? != 0)
    }
}

impl Stored for f64 {
    fn put(&self, to: &mut Vec<u8>) {
        self.to_bits().put(to);
    }

    fn get(from: &mut &[u8]) -> Option<f64> {
        u64::get(from).map(f64::from_bits)
    }
}

impl<T: Stored> Stored for Option<T> {
    fn put(&self, to: &mut Vec<u8>) {
        self.is_some().put(to);
        self.iter().for_each(|value| value.put(to));
    }

    fn get(from: &mut &[u8]) -> Option<Option<T>> {
        if bool::get(from)? { T::get(from).map(Some) } else { Some(None) }
    }
}

impl<T: Stored> Stored for Vec<T> {
    fn put(&self, to: &mut Vec<u8>) {
        self.len().put(to);
        self.iter().for_each(|value| value.put(to));
    }

    fn get(from: &mut &[u8]) -> Option<Vec<T>> {
        (0..usize::get(from)?).map(|_| T::get(from)).collect()
    }
}

impl<A: Stored, B: Stored> Stored for (A, B) {
    fn put(&self, to: &mut Vec<u8>) {
        self.0.put(to);
        self.1.put(to);
    }

    fn get(from: &mut &[u8]) -> Option<(A, B)> {
        Some((A::get(from)?, B::get(from)?))
    }
}

impl<const N: usize> Stored for [u8; N] {
    fn put(&self, to: &mut Vec<u8>) {
        to.extend(self);
    }

    fn get(from: &mut &[u8]) -> Option<[u8; N]> {
        let (first, rest) = from.split_first_chunk()?;
        *from = rest;
        Some(*first)
    }
}

impl Stored for String {
    fn put(&self, to: &mut Vec<u8>) {
        self.as_bytes().to_vec().put(to);
    }

    fn get(from: &mut &[u8]) -> Option<String> {
        String::from_utf8(Vec::get(from)?).ok()
    }
}

impl Stored for Arc<str> {
    fn put(&self, to: &mut Vec<u8>) {
        self.to_string().put(to);
    }

    fn get(from: &mut &[u8]) -> Option<Arc<str>> {
        String::get(from).map(Arc::from)
    }
}

impl Stored for PathBuf {
    fn put(&self, to: &mut Vec<u8>) {
        self.as_os_str().as_bytes().to_vec().put(to);
    }

    fn get(from: &mut &[u8]) -> Option<PathBuf> {
        Some(OsString::from_vec(Vec::get(from)?).into())
    }
}

impl Stored for SchedStat {
    fn put(&self, to: &mut Vec<u8>) {
        ((self.ran, self.waited), self.turns).put(to);
    }

    fn get(from: &mut &[u8]) -> Option<SchedStat> {
        let ((ran, waited), turns) = Stored::get(from)?;
        Some(SchedStat { ran, waited, turns })
    }
}

/// Without the system call, which the sampler does not look at.
impl Stored for ThreadState {
    fn put(&self, to: &mut Vec<u8>) {
        match self {
            ThreadState::Unknown => 0u8.put(to),
            ThreadState::Running => 1u8.put(to),
            ThreadState::Asleep(sleep) => {
                2u8.put(to);
                (sleep.place.pc, sleep.place.sp).put(to);
            }
        }
    }

    fn get(from: &mut &[u8]) -> Option<ThreadState> {
        Some(match u8::get(from)? {
            0 => ThreadState::Unknown,
            1 => ThreadState::Running,
            _ => {
                let (pc, sp) = Stored::get(from)?;
                ThreadState::Asleep(Sleep { place: SleepPlace { pc, sp }, call: None })
            }
        })
    }
}
