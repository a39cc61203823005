//! JSON, as far as payloads, answers and host operations need it.

use std::fmt;

/// A JSON value. Numbers keep the digits that they came with, and of two equal
/// keys of an object the last one counts, as for the host.
///
/// ```
/// use wharf::Json;
///
/// let call = Json::parse(r#"{"path":"a.txt","line":7}"#).unwrap();
/// assert_eq!(call.str("path"), "a.txt");
/// assert_eq!(call.get("line").as_int(), Some(7));
/// assert_eq!(*call.get("nothing"), Json::Null);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Json {
    /// null, and what is not there.
    #[default]
    Null,
    Bool(bool),
    /// A number, as it is written.
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

const NULL: Json = Json::Null;

/// How deep lists and objects may stand within each other.
const DEPTH: usize = 1000;

impl Json {
    /// Reads one value, and nothing behind it.
    pub fn parse(text: &str) -> Result<Json, String> {
        let mut reader = Reader { text, at: 0, depth: 0 };
        let value = reader.value()?;
        reader.blanks();
        match reader.peek() {
            None => Ok(value),
            Some(_) => Err(reader.no("nothing more")),
        }
    }

    /// Makes an object of keys and values.
    pub fn object<const N: usize>(members: [(&str, Json); N]) -> Json {
        Json::Object(members.into_iter().map(|(key, value)| (key.to_string(), value)).collect())
    }

    /// The value of a key of an object; null if there is none.
    pub fn get(&self, key: &str) -> &Json {
        match self {
            Json::Object(members) => members.iter().rev().find(|(k, _)| k == key).map_or(&NULL, |(_, value)| value),
            _ => &NULL,
        }
    }

    /// The text of a key of an object; empty if there is none.
    pub fn str(&self, key: &str) -> &str {
        self.get(key).as_str().unwrap_or("")
    }

    /// The text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The whole number, if it is one that fits.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Json::Number(digits) => digits.parse().ok(),
            _ => None,
        }
    }

    /// The number, if it is one.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Json::Number(digits) => digits.parse().ok(),
            _ => None,
        }
    }

    /// True or false, if it is one of them.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Json::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The items, if it is a list.
    pub fn as_list(&self) -> Option<&[Json]> {
        match self {
            Json::List(items) => Some(items),
            _ => None,
        }
    }

    /// The keys and values in their order, if it is an object.
    pub fn as_object(&self) -> Option<&[(String, Json)]> {
        match self {
            Json::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Whether it is null, or not there.
    pub fn is_null(&self) -> bool {
        *self == Json::Null
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Json {
        Json::Bool(value)
    }
}

impl From<i64> for Json {
    fn from(value: i64) -> Json {
        Json::Number(value.to_string())
    }
}

impl From<f64> for Json {
    /// A number that JSON cannot write becomes null.
    fn from(value: f64) -> Json {
        if value.is_finite() {
            Json::Number(value.to_string())
        } else {
            Json::Null
        }
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Json {
        Json::Text(text.to_string())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Json {
        Json::Text(text)
    }
}

impl<T: Into<Json>> From<Vec<T>> for Json {
    fn from(items: Vec<T>) -> Json {
        Json::List(items.into_iter().map(Into::into).collect())
    }
}

/// The JSON text, without blanks.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(value) => write!(f, "{value}"),
            Json::Number(digits) => f.write_str(digits),
            Json::Text(text) => quote(f, text),
            Json::List(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", comma(i))?;
                }
                f.write_str("]")
            }
            Json::Object(members) => {
                f.write_str("{")?;
                for (i, (key, value)) in members.iter().enumerate() {
                    f.write_str(comma(i))?;
                    quote(f, key)?;
                    write!(f, ":{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

fn comma(i: usize) -> &'static str {
    if i == 0 {
        ""
    } else {
        ","
    }
}

/// Writes a text with what JSON cannot hold escaped.
fn quote(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    let mut done = 0;
    for (i, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        f.write_str(&text[done..i])?;
        done = i + 1;
        match byte {
            b'"' => f.write_str("\\\"")?,
            b'\\' => f.write_str("\\\\")?,
            b'\n' => f.write_str("\\n")?,
            b'\t' => f.write_str("\\t")?,
            b'\r' => f.write_str("\\r")?,
            _ => write!(f, "\\u{byte:04x}")?,
        }
    }
    f.write_str(&text[done..])?;
    f.write_str("\"")
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn no(&self, wanted: &str) -> String {
        format!("no JSON: byte {}: it wants {wanted}", self.at)
    }

    /// Takes a byte if it is the next one.
    fn takes(&mut self, byte: u8) -> bool {
        let is = self.peek() == Some(byte);
        self.at += usize::from(is);
        is
    }

    fn value(&mut self) -> Result<Json, String> {
        self.blanks();
        match self.peek() {
            Some(b'"') => Ok(Json::Text(self.string()?)),
            Some(b'{') => self.nested(Reader::object),
            Some(b'[') => self.nested(Reader::list),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Json, String>) -> Result<Json, String> {
        self.at += 1;
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(format!("it has more than {DEPTH} values within each other"));
        }
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn word(&mut self) -> Result<Json, String> {
        for (word, value) in [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))] {
            if self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.no("a value"))
    }

    fn object(&mut self) -> Result<Json, String> {
        let mut members = Vec::new();
        self.blanks();
        if self.takes(b'}') {
            return Ok(Json::Object(members));
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return Err(self.no("a key"));
            }
            let key = self.string()?;
            self.blanks();
            if !self.takes(b':') {
                return Err(self.no("a colon"));
            }
            members.push((key, self.value()?));
            self.blanks();
            if self.takes(b'}') {
                return Ok(Json::Object(members));
            }
            if !self.takes(b',') {
                return Err(self.no("a comma or }"));
            }
        }
    }

    fn list(&mut self) -> Result<Json, String> {
        let mut items = Vec::new();
        self.blanks();
        if self.takes(b']') {
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value()?);
            self.blanks();
            if self.takes(b']') {
                return Ok(Json::List(items));
            }
            if !self.takes(b',') {
                return Err(self.no("a comma or ]"));
            }
        }
    }

    fn number(&mut self) -> Result<Json, String> {
        let begin = self.at;
        self.takes(b'-');
        if !self.takes(b'0') {
            self.digits()?;
        }
        if self.takes(b'.') {
            self.digits()?;
        }
        if self.takes(b'e') || self.takes(b'E') {
            if !self.takes(b'+') {
                self.takes(b'-');
            }
            self.digits()?;
        }
        Ok(Json::Number(self.text[begin..self.at].to_string()))
    }

    fn digits(&mut self) -> Result<(), String> {
        let begin = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == begin {
            return Err(self.no("a digit"));
        }
        Ok(())
    }

    fn string(&mut self) -> Result<String, String> {
        let mut out = String::new();
        self.at += 1;
        let mut plain = self.at;
        loop {
            match self.peek() {
                Some(b'"') => {
                    out.push_str(&self.text[plain..self.at]);
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    out.push_str(&self.text[plain..self.at]);
                    self.at += 1;
                    out.push(self.escape()?);
                    plain = self.at;
                }
                Some(byte) if byte >= 0x20 => self.at += 1,
                _ => return Err(self.no("the end of a string")),
            }
        }
    }

    /// Reads what follows a backslash. Half a surrogate pair becomes U+FFFD.
    fn escape(&mut self) -> Result<char, String> {
        let byte = self.peek();
        self.at += usize::from(byte.is_some());
        Ok(match byte {
            Some(b @ (b'"' | b'\\' | b'/')) => char::from(b),
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'u') => {
                let first = self.hex()?;
                let back = self.at;
                if (0xd800..0xdc00).contains(&first) && self.takes(b'\\') && self.takes(b'u') {
                    let second = self.hex()?;
                    if (0xdc00..0xe000).contains(&second) {
                        return Ok(char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)).unwrap_or('\u{fffd}'));
                    }
                }
                self.at = back;
                char::from_u32(first).unwrap_or('\u{fffd}')
            }
            _ => return Err(self.no("an escape")),
        })
    }

    fn hex(&mut self) -> Result<u32, String> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4).unwrap_or(b"-");
        let mut value = 0;
        for digit in digits {
            value = value * 16 + char::from(*digit).to_digit(16).ok_or_else(|| self.no("four hexadecimal digits"))?;
        }
        self.at += 4;
        Ok(value)
    }
}
