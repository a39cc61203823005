//! Payloads, and parts of them, that several hook points have. points.rs has
//! the others.

use crate::Json;

/// A payload that is read out of its JSON.
pub trait Payload: Sized {
    /// Reads it. A key that is not there has a value of nothing; one that holds
    /// something else than it should is an error.
    fn read(json: &Json) -> Result<Self, String>;
}

/// A value of a payload's key.
pub trait Value: Sized {
    /// Reads it, `None` if it is something else.
    fn of(json: &Json) -> Option<Self>;
}

impl Value for String {
    fn of(json: &Json) -> Option<String> {
        json.as_str().map(str::to_string)
    }
}

impl Value for i64 {
    fn of(json: &Json) -> Option<i64> {
        json.as_int()
    }
}

impl Value for f64 {
    fn of(json: &Json) -> Option<f64> {
        json.as_number()
    }
}

impl Value for bool {
    fn of(json: &Json) -> Option<bool> {
        json.as_bool()
    }
}

impl Value for Json {
    fn of(json: &Json) -> Option<Json> {
        Some(json.clone())
    }
}

impl<T: Value> Value for Vec<T> {
    fn of(json: &Json) -> Option<Vec<T>> {
        json.as_list()?.iter().map(T::of).collect()
    }
}

/// The keys of an object, of which payloads are read.
pub(crate) struct Keys<'a> {
    json: &'a Json,
    wrong: Option<&'static str>, // a key that does not hold what it should
}

impl<'a> Keys<'a> {
    pub(crate) fn of(json: &'a Json) -> Keys<'a> {
        Keys { json, wrong: None }
    }

    /// Reads the value of a key.
    #[inline(never)]
    pub(crate) fn take<T: Value + Default>(&mut self, key: &'static str) -> T {
        let value = self.json.get(key);
        if value.is_null() {
            return T::default();
        }
        T::of(value).unwrap_or_else(|| {
            self.wrong = Some(key);
            T::default()
        })
    }

    /// What was read, if each key held what it should.
    pub(crate) fn whole<T>(self, read: T) -> Result<T, String> {
        match self.wrong {
            None => Ok(read),
            Some(key) => Err(format!("{key:?} is not what it should be")),
        }
    }
}

/// Makes a payload of a struct whose fields are named as the keys.
macro_rules! payload {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name { $($(#[$field_doc])* pub $field: $kind,)* }

        impl $crate::Payload for $name {
            fn read(json: &$crate::Json) -> Result<$name, String> {
                let mut keys = $crate::payload::Keys::of(json);
                let read = $name { $($field: keys.take(stringify!($field)),)* };
                keys.whole(read)
            }
        }

        impl $crate::Value for $name {
            fn of(json: &$crate::Json) -> Option<$name> {
                json.as_object()?;
                $crate::Payload::read(json).ok()
            }
        }
    };
}
pub(crate) use payload;

payload!(
    /// A call that the model made.
    ToolCall {
        session_id: String,
        turn: i64,
        step: i64,
        call_id: String,
        tool: String,
        /// An object.
        arguments: Json,
    }
);

payload!(
    /// The result of a call.
    ToolResult {
        content: String,
        is_error: bool,
        /// Which kind of failure it was; often empty.
        code: String,
    }
);

payload!(
    /// A call with its result.
    DoneCall {
        session_id: String,
        turn: i64,
        step: i64,
        call_id: String,
        tool: String,
        /// An object.
        arguments: Json,
        result: ToolResult,
    }
);

payload!(
    /// A text that a handler judges: a prompt, or the final answer.
    Text {
        session_id: String,
        turn: i64,
        step: i64,
        text: String,
    }
);

payload!(
    /// How a turn ended.
    End {
        session_id: String,
        turn: i64,
        step: i64,
        reason: String,
        text: String,
    }
);

payload!(
    /// Tokens that were used.
    Usage {
        input_tokens: i64,
        output_tokens: i64,
        /// The part of the input that came out of a cache.
        cache_read_input_tokens: i64,
        /// The part of the output that was reasoning.
        reasoning_tokens: i64,
    }
);

payload!(
    /// What a turn may use up; 0 is not limited.
    Budget {
        tokens: i64,
        cost: f64,
        time_ms: i64,
    }
);
