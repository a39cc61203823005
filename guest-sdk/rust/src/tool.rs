use crate::payload::payload;
use crate::{Json, Verdict};
use std::fmt::Display;

payload!(
    /// A call of one of the extension's own tools.
    ToolInput {
        name: String,
        /// An object, which the host has checked against the input schema.
        arguments: Json,
        call_id: String,
    }
);

/// What a tool gives back for the model.
///
/// A text is one by itself: a tool may return a `String` or a `&str`, or any of
/// these in a `Result`, whose error becomes an error result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// A text, or a list of MCP content blocks; null for none.
    pub content: Json,
    /// For programs; its JSON is the content where there is none.
    pub structured: Json,
    /// The call failed, and the content says why.
    pub is_error: bool,
}

impl ToolOutput {
    /// A text.
    pub fn text(content: impl Into<String>) -> ToolOutput {
        ToolOutput { content: Json::Text(content.into()), ..ToolOutput::default() }
    }

    /// A value for programs.
    pub fn structured(value: Json) -> ToolOutput {
        ToolOutput { structured: value, ..ToolOutput::default() }
    }

    /// A text that says why the call failed.
    pub fn error(content: impl Into<String>) -> ToolOutput {
        ToolOutput { is_error: true, ..ToolOutput::text(content) }
    }

    fn encode(self) -> Vec<u8> {
        let mut members = Vec::new();
        if !self.content.is_null() || self.structured.is_null() {
            let content = if self.content.is_null() { Json::from("") } else { self.content };
            members.push(("content".to_string(), content));
        }
        if !self.structured.is_null() {
            members.push(("structured".to_string(), self.structured));
        }
        if self.is_error {
            members.push(("is_error".to_string(), Json::Bool(true)));
        }
        Json::Object(members).to_string().into_bytes()
    }
}

/// What a function that runs a tool may return.
pub trait Output {
    /// The answer's JSON.
    fn encode(self) -> Vec<u8>;
}

impl Output for ToolOutput {
    fn encode(self) -> Vec<u8> {
        self.encode()
    }
}

impl Output for String {
    fn encode(self) -> Vec<u8> {
        ToolOutput::text(self).encode()
    }
}

impl Output for &str {
    fn encode(self) -> Vec<u8> {
        ToolOutput::text(self).encode()
    }
}

impl<O: Output, E: Display> Output for Result<O, E> {
    fn encode(self) -> Vec<u8> {
        match self {
            Ok(output) => output.encode(),
            Err(error) => crate::Answer::encode(Verdict::fail(error)),
        }
    }
}
