//! The guest SDK for Rust: with it, a hook or a tool for Wharf is a plain
//! function.
//!
//! ```
//! use wharf::{ToolCall, Verdict};
//!
//! wharf::hooks!(before_execute_tool);
//!
//! fn before_execute_tool(call: ToolCall) -> Verdict {
//!     if call.tool == "exec" {
//!         return Verdict::deny("no commands today");
//!     }
//!     Verdict::none()
//! }
//! # fn main() {}
//! ```
//!
//! A function that handles a hook point has the point's name, is given its
//! payload (see [`handle`]) and is listed in [`hooks!`]; one that runs a tool
//! has the tool's name and is listed in [`tools!`]. Both exports are what
//! `extension.toml` must declare, no more and no less: `wharf ext build`
//! compares them.
//!
//! A guest sees no files, no network, no arguments and no environment.
//! [`config`], [`kv_get`] and the functions beside them are what the host does
//! for it. Each returns a [`Result`], and a handler may return one too, so that
//! `?` works: an error at a hook point means that the hook could not judge, and
//! an error of a tool is a result that the model reads. A panic is logged with
//! its place and fails the call; the next one starts with a fresh instance.
//!
//! The crate has no dependencies and needs Rust 1.63. Off Wasm it builds too,
//! so that handlers can be tested with plain `cargo test`; there is no host
//! there, and what it would do fails.

mod agent;
#[doc(hidden)]
pub mod guest;
mod host;
mod json;
mod payload;
mod points;
mod tool;
mod verdict;

pub use agent::*;
pub use guest::operate;
pub use host::*;
pub use json::Json;
pub use payload::*;
pub use points::*;
pub use tool::*;
pub use verdict::*;

/// Exports handlers of hook points: functions of the points' names, which take
/// the payload of their point.
///
/// ```
/// wharf::hooks!(finalize_content, on_stream);
///
/// fn finalize_content(answer: wharf::Text) -> wharf::Verdict {
///     wharf::Verdict::replace_text(answer.text + "\n\n-- \nwritten by a machine")
/// }
///
/// fn on_stream(_piece: &str) {}
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! hooks {
    ($($point:ident),+ $(,)?) => {$(
        const _: () = {
            mod export {
                #[no_mangle]
                extern "C" fn $point(at: *const u8, length: usize) -> u64 {
                    $crate::guest::answered(|| {
                        $crate::handle::$point($crate::guest::payload(at, length), super::$point)
                    })
                }
            }
        };
    )+};
}

/// Exports functions that are given the payload as it came, and give the
/// answer's JSON, empty for no opinion. Nothing is read or checked on the way:
/// for hook points of a later release than this SDK.
///
/// ```
/// wharf::raw_hooks!(before_lunch);
///
/// fn before_lunch(payload: &[u8]) -> Vec<u8> {
///     wharf::log(wharf::Level::Info, &String::from_utf8_lossy(payload));
///     Vec::new()
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! raw_hooks {
    ($($name:ident),+ $(,)?) => {$(
        const _: () = {
            mod export {
                #[no_mangle]
                extern "C" fn $name(at: *const u8, length: usize) -> u64 {
                    $crate::guest::answered(|| super::$name($crate::guest::payload(at, length)))
                }
            }
        };
    )+};
}

/// Exports the tools of an extension: functions of the tools' names, or of
/// others that are given with `"name" => function`.
///
/// ```
/// use wharf::{Error, ToolInput};
///
/// wharf::tools!(shout, "count-words" => count_words);
///
/// fn shout(input: ToolInput) -> String {
///     input.arguments.str("text").to_uppercase()
/// }
///
/// fn count_words(input: ToolInput) -> Result<String, Error> {
///     let text = input.arguments.str("text");
///     if text.is_empty() {
///         return Err("there is no text".into());
///     }
///     Ok(text.split_whitespace().count().to_string())
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! tools {
    (@row ($($rows:tt)*)) => {
        const _: () = {
            mod export {
                use super::*;

                #[no_mangle]
                extern "C" fn call_tool(at: *const u8, length: usize) -> u64 {
                    $crate::guest::answered(|| {
                        $crate::guest::call_tool($crate::guest::payload(at, length), &[$($rows)*])
                    })
                }
            }
        };
    };
    (@row ($($rows:tt)*) $tool:ident $(, $($rest:tt)*)?) => {
        $crate::tools!(@row ($($rows)* (stringify!($tool), &|input| $crate::Output::encode(super::$tool(input))),) $($($rest)*)?);
    };
    (@row ($($rows:tt)*) $name:literal => $tool:ident $(, $($rest:tt)*)?) => {
        $crate::tools!(@row ($($rows)* ($name, &|input| $crate::Output::encode(super::$tool(input))),) $($($rest)*)?);
    };
    ($($tools:tt)+) => { $crate::tools!(@row () $($tools)+); };
}
