//! Where the guest meets the host: memory, exports and imports of the ABI.

use crate::{Answer, Json, Payload, Silence, ToolInput, Verdict};
use std::cell::RefCell;

thread_local! {
    /// Where the host writes the next payload.
    static PAYLOAD: RefCell<Vec<u8>> = RefCell::new(Vec::new());
    /// What the host reads once a handler has returned.
    static ANSWER: RefCell<Vec<u8>> = RefCell::new(Vec::new());
}

/// Gives the host room for a payload. Wasm calls nothing of ours meanwhile, and
/// the bytes stay where they are until the host asks again.
#[no_mangle]
extern "C" fn wharf_v1_alloc(length: usize) -> *mut u8 {
    PAYLOAD.with(|kept| {
        let mut kept = kept.borrow_mut();
        kept.clear();
        if kept.try_reserve(length.max(1)).is_err() {
            return std::ptr::null_mut(); // the host takes it for a failure
        }
        kept.resize(length.max(1), 0);
        kept.as_mut_ptr()
    })
}

/// Runs once in each instance: a panic is logged, with its place, before it
/// ends the call.
#[cfg(target_arch = "wasm32")]
#[no_mangle]
extern "C" fn _initialize() {
    std::panic::set_hook(Box::new(|info| crate::log(crate::Level::Error, &info.to_string())));
}

/// The payload that the host has put at an address.
pub fn payload(at: *const u8, length: usize) -> &'static [u8] {
    if length == 0 {
        return &[];
    }
    // The host passes what wharf_v1_alloc gave it, which stays until it asks for more.
    unsafe { std::slice::from_raw_parts(at, length) }
}

/// Runs a handler and keeps its answer for the host.
pub fn answered(handler: impl FnOnce() -> Vec<u8>) -> u64 {
    let answer = handler();
    if answer.is_empty() {
        return 0;
    }
    ANSWER.with(|kept| {
        let mut kept = kept.borrow_mut();
        *kept = answer;
        (kept.as_ptr() as u64) << 32 | kept.len() as u64
    })
}

/// Asks a handler for its verdict.
pub(crate) fn judge<P: Payload, A: Answer>(payload: &[u8], handler: impl FnOnce(P) -> A) -> Vec<u8> {
    match read(payload) {
        Ok(payload) => handler(payload).encode(),
        Err(error) => failure(error),
    }
}

/// Shows a handler what happens.
pub(crate) fn watch<P: Payload, S: Silence>(payload: &[u8], handler: impl FnOnce(P) -> S) -> Vec<u8> {
    match read(payload) {
        Ok(payload) => handler(payload).encode(),
        Err(error) => failure(error),
    }
}

/// Shows a handler plain text.
pub(crate) fn hear<S: Silence>(payload: &[u8], handler: impl FnOnce(&str) -> S) -> Vec<u8> {
    match std::str::from_utf8(payload) {
        Ok(text) => handler(text).encode(),
        Err(error) => failure(error.to_string()),
    }
}

/// Runs the tool that a payload names.
pub fn call_tool(payload: &[u8], tools: &[(&str, &dyn Fn(ToolInput) -> Vec<u8>)]) -> Vec<u8> {
    let input: ToolInput = match read(payload) {
        Ok(input) => input,
        Err(error) => return failure(error),
    };
    match tools.iter().find(|(name, _)| *name == input.name) {
        Some((_, run)) => run(input),
        None => {
            let names: Vec<_> = tools.iter().map(|(name, _)| *name).collect();
            failure(format!("the code has no tool {}, only {}: list it in wharf::tools!", input.name, names.join(", ")))
        }
    }
}

fn read<P: Payload>(payload: &[u8]) -> Result<P, String> {
    let text = std::str::from_utf8(payload).map_err(|error| format!("payload: {error}"))?;
    Json::parse(text).and_then(|json| P::read(&json)).map_err(|error| format!("payload: {error}"))
}

fn failure(error: String) -> Vec<u8> {
    Answer::encode(Verdict::fail(error))
}

#[cfg(target_arch = "wasm32")]
mod import {
    #[link(wasm_import_module = "wharf_v1")]
    extern "C" {
        pub fn call(op: *const u8, op_length: usize, request: *const u8, request_length: usize) -> u64;
        pub fn read(to: *mut u8);
        pub fn log(level: u32, text: *const u8, length: usize);
    }
}

/// Runs a host operation by its name, with the JSON of a request: gives the
/// status and the JSON of the response, as the page ABI.md has them. For
/// operations that this SDK has no function for.
#[cfg(target_arch = "wasm32")]
pub fn operate(operation: &str, request: &str) -> (u32, String) {
    // The host reads both texts, and writes exactly as much as it said.
    let (status, response) = unsafe {
        let result = import::call(operation.as_ptr(), operation.len(), request.as_ptr(), request.len());
        let mut response = vec![0; result as u32 as usize];
        if !response.is_empty() {
            import::read(response.as_mut_ptr());
        }
        ((result >> 32) as u32, response)
    };
    (status, String::from_utf8_lossy(&response).into_owned())
}

#[cfg(target_arch = "wasm32")]
pub(crate) fn log(level: u32, text: &str) {
    // The host reads the text and keeps no address.
    unsafe { import::log(level, text.as_ptr(), text.len()) }
}

/// There is no host off Wasm: every operation fails.
#[cfg(not(target_arch = "wasm32"))]
pub fn operate(operation: &str, _request: &str) -> (u32, String) {
    let message = format!("{operation}: there is no host: this is no guest");
    (3, Json::object([("code", "FAILED".into()), ("message", message.into())]).to_string())
}

#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn log(_level: u32, text: &str) {
    eprintln!("{text}");
}
