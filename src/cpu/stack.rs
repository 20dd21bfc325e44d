//! Reads the stack of a thread in the handler of a signal. An address that is none, as a wrong step of
//! the unwinder may give, must not end the process: the kernel copies each page through a pipe, and
//! says which page is not there. `unsafe`: that call.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io::{PipeReader, PipeWriter, Read};
use std::os::fd::AsRawFd;

/// Bytes that are copied at once. Each page is as large as this or a multiple of it.
const PAGE: usize = 4096;

/// A copy of the page that was read last.
pub(super) struct StackReader {
    from: PipeReader,
    to: PipeWriter,
    /// `None`: no page, or one that is not there.
    page: Option<u64>,
    bytes: Box<[u8; PAGE]>,
}

impl StackReader {
    pub(super) fn new() -> std::io::Result<Self> {
        let (from, to) = std::io::pipe()?;
        Ok(Self { from, to, page: None, bytes: Box::new([0; PAGE]) })
    }

    /// Reads each page anew.
    pub(super) fn forget(&mut self) {
        self.page = None;
    }

    /// The value at an address. `Err`: it cannot be read, or goes over the end of a page.
    pub(super) fn read(&mut self, address: u64) -> Result<u64, ()> {
        let offset = address % PAGE as u64;
        let page = address - offset;
        if self.page != Some(page) {
            self.page = None;
            self.copy(page)?;
            self.page = Some(page);
        }
        let offset = offset as usize;
        let bytes = self.bytes.get(offset..offset + size_of::<u64>()).ok_or(())?;
        Ok(u64::from_ne_bytes(bytes.try_into().map_err(|_| ())?))
    }

    fn copy(&mut self, page: u64) -> Result<(), ()> {
        // SAFETY: the kernel only reads from the address, and answers with an error if there is nothing.
        let n = unsafe { libc::write(self.to.as_raw_fd(), page as *const c_void, PAGE) };
        if n <= 0 {
            return Err(());
        }
        // What was written has to be taken out, whether it is the whole page or not.
        self.from.read_exact(&mut self.bytes[..n.cast_unsigned()]).map_err(|_| ())?;
        if n.cast_unsigned() == PAGE { Ok(()) } else { Err(()) }
    }
}

#[test]
fn memory_is_read_and_what_is_none_is_an_error() {
    let mut reader = StackReader::new().unwrap();
    let value = 0x1234_5678_9abc_def0_u64;
    let address = std::ptr::from_ref(std::hint::black_box(&value)) as u64;
    assert_eq!(reader.read(address), Ok(value));
    for nowhere in [0, 8, 0xffff_ffff_ffff_f000, u64::MAX - 7] {
        assert_eq!(reader.read(nowhere), Err(()), "{nowhere:x}");
    }
    reader.forget();
    assert_eq!(reader.read(address), Ok(value));
    // Over the end of a page.
    assert_eq!(reader.read((address | 4095) - 3), Err(()));
}
