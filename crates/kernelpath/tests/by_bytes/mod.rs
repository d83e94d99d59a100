//! Model files, changed part by part, and how much memory a piece of code takes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use serde_json::{Map, Value, json};

/// The bytes of a model file with this header and body.
pub fn file(header: &str, body: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), body].concat()
}

/// A model file, taken apart.
#[derive(Clone)]
pub struct Edited {
    /// Arrays by name: `dtype`, `shape`, `data_offsets`.
    pub header: Value,
    /// What the model is.
    pub document: Value,
    body: Vec<u8>,
    start: usize,
}

impl Edited {
    pub fn of(bytes: &[u8]) -> Self {
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let mut header: Map<String, Value> = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
        let metadata = header.remove("__metadata__").unwrap();
        let document = serde_json::from_str(metadata["kernelpath"].as_str().unwrap()).unwrap();
        let (header, body) = (Value::Object(header), bytes[8 + length..].to_vec());
        Self { header, document, body, start: 8 + length }
    }

    /// Where the arrays begin in the file that was taken apart.
    pub fn start_of_body(&self) -> usize {
        self.start
    }

    pub fn arrays(&self) -> Vec<String> {
        self.header.as_object().unwrap().keys().cloned().collect()
    }

    /// The bytes of an array.
    pub fn bytes_of(&mut self, name: &str) -> &mut [u8] {
        let [from, to] = [0, 1].map(|k| self.header[name]["data_offsets"][k].as_u64().unwrap() as usize);
        &mut self.body[from..to]
    }

    /// Another array in the place of this one; the arrays behind it move.
    pub fn replace(&mut self, name: &str, dtype: &str, shape: &Value, bytes: &[u8]) {
        let place = |array: &Value, k: usize| array["data_offsets"][k].as_u64().unwrap() as usize;
        let (from, to) = self.header.get(name).map_or((0, 0), |array| (place(array, 0), place(array, 1)));
        self.body.splice(from..to, bytes.iter().copied());
        for (other, array) in self.header.as_object_mut().unwrap() {
            let moved = [0, 1].map(|k| place(array, k)).map(|at| (at + bytes.len()).wrapping_sub(to - from));
            if other != name && place(array, 0) >= to && place(array, 1) > from {
                array["data_offsets"] = json!(moved);
            }
        }
        self.header[name] = json!({ "dtype": dtype, "shape": shape, "data_offsets": [from, from + bytes.len()] });
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut header = self.header.clone();
        header["__metadata__"] = json!({ "kernelpath": self.document.to_string() });
        file(&header.to_string(), &self.body)
    }
}

/// Counts what this thread takes.
struct Counting;

thread_local! {
    static NOW: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn count(more: usize, less: usize) {
    let _ = NOW.try_with(|now| {
        now.set((now.get() + more).saturating_sub(less));
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now.get())));
    });
}

// SAFETY: all is done by the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let place = unsafe { System.alloc(layout) };
        if !place.is_null() {
            count(layout.size(), 0);
        }
        place
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let place = unsafe { System.alloc_zeroed(layout) };
        if !place.is_null() {
            count(layout.size(), 0);
        }
        place
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        unsafe { System.dealloc(place, layout) };
        count(0, layout.size());
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let moved = unsafe { System.realloc(place, layout, size) };
        if !moved.is_null() {
            // Both may be there for a moment.
            count(size, 0);
            count(0, layout.size());
        }
        moved
    }
}

/// What `work` returns, and the most bytes that this thread held while it ran, beyond those before.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.get();
    PEAK.set(before);
    let result = work();
    (result, PEAK.get() - before)
}
