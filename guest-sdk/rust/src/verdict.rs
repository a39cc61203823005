use crate::Json;
use std::fmt::Display;

/// What a handler answers at a hook point. [`Verdict::none`] is no opinion.
///
/// A point takes only some of these; the table in the README says which.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// allow, deny, ask, block, continue, retry or fail; empty for none.
    pub decision: &'static str,
    /// Why: it reaches the model.
    pub reason: String,
    /// What goes in the place of what: a key of the point's, and its value.
    pub replace: Option<(&'static str, Json)>,
    /// What the model is told besides.
    pub context: String,
    /// What the model goes on with, where the decision is continue.
    pub message: String,
    /// The handler failed: what it could not do.
    pub error: String,
}

impl Verdict {
    /// No opinion.
    pub fn none() -> Verdict {
        Verdict::default()
    }

    /// A tool call may run. It skips a question to the user only where the user
    /// granted the extension `approve`.
    pub fn allow(reason: impl Into<String>) -> Verdict {
        Verdict::decide("allow", reason)
    }

    /// Refuses a tool call.
    pub fn deny(reason: impl Into<String>) -> Verdict {
        Verdict::decide("deny", reason)
    }

    /// Wants the user to be asked about a tool call.
    pub fn ask(reason: impl Into<String>) -> Verdict {
        Verdict::decide("ask", reason)
    }

    /// Stops a prompt, or gives the model the reason in the place of a result.
    pub fn block(reason: impl Into<String>) -> Verdict {
        Verdict::decide("block", reason)
    }

    /// Has a request that failed sent again.
    pub fn retry(reason: impl Into<String>) -> Verdict {
        Verdict::decide("retry", reason)
    }

    /// Has a request that failed not sent again.
    pub fn give_up(reason: impl Into<String>) -> Verdict {
        Verdict::decide("fail", reason)
    }

    /// Has the model go on with a message where a turn is about to end.
    pub fn go_on(message: impl Into<String>) -> Verdict {
        Verdict { decision: "continue", message: message.into(), ..Verdict::default() }
    }

    /// Puts another text in the place of a prompt or final answer.
    pub fn replace_text(text: impl Into<String>) -> Verdict {
        Verdict::replace("text", Json::Text(text.into()))
    }

    /// Gives a tool call other arguments, an object. They are checked and judged
    /// like the model's own.
    pub fn replace_arguments(arguments: Json) -> Verdict {
        Verdict::replace("arguments", arguments)
    }

    /// Gives the model another content of a result.
    pub fn replace_content(content: impl Into<String>) -> Verdict {
        Verdict::replace("content", Json::Text(content.into()))
    }

    /// Answers a tool call in the tool's place.
    pub fn answer_in_place(content: impl Into<String>) -> Verdict {
        Verdict::replace("result", Json::object([("content", Json::Text(content.into()))]))
    }

    /// Sends a request with other parameters, an object.
    pub fn replace_parameters(parameters: Json) -> Verdict {
        Verdict::replace("parameters", parameters)
    }

    /// Leaves tools out of a request.
    pub fn hide_tools(names: &[&str]) -> Verdict {
        Verdict::replace("hide_tools", Json::from(names.to_vec()))
    }

    /// Answers a request in the model's place.
    pub fn answer_for_model(text: impl Into<String>) -> Verdict {
        Verdict::replace("response", Json::object([("text", Json::Text(text.into()))]))
    }

    /// Tells the model something besides.
    pub fn add_context(text: impl Into<String>) -> Verdict {
        Verdict { context: text.into(), ..Verdict::default() }
    }

    /// The handler could not judge. What follows is the manifest's `on_failure`.
    pub fn fail(error: impl Display) -> Verdict {
        Verdict { error: error.to_string(), ..Verdict::default() }
    }

    fn decide(decision: &'static str, reason: impl Into<String>) -> Verdict {
        Verdict { decision, reason: reason.into(), ..Verdict::default() }
    }

    fn replace(key: &'static str, value: Json) -> Verdict {
        Verdict { replace: Some((key, value)), ..Verdict::default() }
    }

    /// The JSON of the verdict; nothing for no opinion.
    fn encode(self) -> Vec<u8> {
        let mut members = Vec::new();
        for (key, text) in [
            ("decision", self.decision.to_string()),
            ("reason", self.reason),
            ("context", self.context),
            ("message", self.message),
            ("error", self.error),
        ] {
            if !text.is_empty() {
                members.push((key.to_string(), Json::Text(text)));
            }
        }
        if let Some((key, value)) = self.replace {
            members.push(("replace".to_string(), Json::object([(key, value)])));
        }
        if members.is_empty() {
            return Vec::new();
        }
        Json::Object(members).to_string().into_bytes()
    }
}

/// What a handler may return at a point where it has a say: a [`Verdict`], or
/// one in a `Result`, whose error says that it could not judge.
pub trait Answer {
    /// The answer's JSON; empty for no opinion.
    fn encode(self) -> Vec<u8>;
}

impl Answer for Verdict {
    fn encode(self) -> Vec<u8> {
        self.encode()
    }
}

impl<A: Answer, E: Display> Answer for Result<A, E> {
    fn encode(self) -> Vec<u8> {
        match self {
            Ok(answer) => answer.encode(),
            Err(error) => Verdict::fail(error).encode(),
        }
    }
}

/// What a handler may return at a point where it only looks on: nothing, or a
/// `Result` of nothing.
pub trait Silence {
    /// The answer's JSON: empty, or that of an error.
    fn encode(self) -> Vec<u8>;
}

impl Silence for () {
    fn encode(self) -> Vec<u8> {
        Vec::new()
    }
}

impl<E: Display> Silence for Result<(), E> {
    fn encode(self) -> Vec<u8> {
        self.map_or_else(|error| Verdict::fail(error).encode(), |()| Vec::new())
    }
}
