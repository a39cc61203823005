use crate::guest::{self, operate};
use crate::Json;
use std::fmt;

/// An operation that the host did not do, or an error of the extension's own:
/// `Err("no such city".into())`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Error {
    /// NOT_GRANTED, DENIED, BAD_REQUEST, FAILED, OVER_LIMIT or
    /// UNKNOWN_OPERATION; empty if it is not the host's.
    pub code: String,
    /// Says what to do.
    pub message: String,
}

/// What an operation gives.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<&str> for Error {
    fn from(message: &str) -> Error {
        Error { code: String::new(), message: message.to_string() }
    }
}

impl From<String> for Error {
    fn from(message: String) -> Error {
        Error { code: String::new(), message }
    }
}

/// Runs an operation of the host's, and reads the response.
pub(crate) fn run<const N: usize>(operation: &str, request: [(&str, Json); N]) -> Result<Json> {
    send(operation, &Json::object(request))
}

fn send(operation: &str, request: &Json) -> Result<Json> {
    let (status, text) = operate(operation, &request.to_string());
    let response = Json::parse(&text).map_err(|error| Error::from(format!("{operation}: status {status}: {error}")))?;
    if status == 0 {
        return Ok(response);
    }
    Err(Error { code: response.str("code").to_string(), message: response.str("message").to_string() })
}

/// The whole number at a key of a response.
pub(crate) fn int(response: &Json, key: &str) -> i64 {
    response.get(key).as_int().unwrap_or(0)
}

/// The text at a key of a response.
pub(crate) fn text(response: &Json, key: &str) -> String {
    response.str(key).to_string()
}

/// One value of the user's configuration, from `[extensions.NAME.config]`; null
/// if there is none.
pub fn config(key: &str) -> Result<Json> {
    value("config.get", key)
}

/// What [`kv_set`] kept under a key; null if there is nothing. The manifest must
/// ask for `kv`, and the user grant it.
pub fn kv_get(key: &str) -> Result<Json> {
    value("kv.get", key)
}

fn value(operation: &str, key: &str) -> Result<Json> {
    Ok(run(operation, [("key", key.into())])?.get("value").clone())
}

/// Keeps a value, anything but null, for this and later sessions.
pub fn kv_set(key: &str, value: impl Into<Json>) -> Result<()> {
    run("kv.set", [("key", key.into()), ("value", value.into())]).map(drop)
}

/// Takes a key away; it is no error if there was none.
pub fn kv_delete(key: &str) -> Result<()> {
    run("kv.delete", [("key", key.into())]).map(drop)
}

/// The keys that begin with a prefix, sorted.
pub fn kv_list(prefix: &str) -> Result<Vec<String>> {
    let response = run("kv.list", [("prefix", prefix.into())])?;
    let keys = response.get("keys").as_list().unwrap_or(&[]);
    Ok(keys.iter().filter_map(Json::as_str).map(str::to_string).collect())
}

/// A request that the host makes for the extension.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HttpRequest {
    /// GET if empty.
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Names of secrets that the manifest binds to the URL's host.
    pub secrets: Vec<String>,
}

/// The answer to an [`HttpRequest`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HttpResponse {
    pub status: i64,
    /// By name in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Of the last hop, where there were redirects.
    pub url: String,
}

impl HttpResponse {
    /// The body as text; what is no UTF-8 in it becomes U+FFFD.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Makes a request. The manifest must ask for `http`, and the user grant it; a
/// status such as 404 is no error.
pub fn http(request: HttpRequest) -> Result<HttpResponse> {
    let method = if request.method.is_empty() { "GET".to_string() } else { request.method };
    let headers = request.headers.into_iter().map(|(name, value)| (name, Json::Text(value))).collect();
    let mut members = vec![
        ("method".to_string(), Json::Text(method)),
        ("url".to_string(), Json::Text(request.url)),
        ("headers".to_string(), Json::Object(headers)),
        ("secrets".to_string(), Json::from(request.secrets)),
    ];
    if !request.body.is_empty() {
        members.push(("body_base64".to_string(), Json::Text(encode_base64(&request.body))));
    }
    let response = send("http.fetch", &Json::Object(members))?;
    let headers = response.get("headers").as_object().unwrap_or(&[]);
    Ok(HttpResponse {
        status: int(&response, "status"),
        headers: headers.iter().map(|(name, value)| (name.clone(), value.as_str().unwrap_or("").to_string())).collect(),
        body: bytes(&response, "body", "body_base64")?,
        url: text(&response, "url"),
    })
}

/// The bytes of a response, which has them as text or in base64.
pub(crate) fn bytes(response: &Json, plain: &str, base64: &str) -> Result<Vec<u8>> {
    match response.get(base64).as_str() {
        Some(encoded) => decode_base64(encoded).ok_or_else(|| Error::from(format!("{base64} is no base64"))),
        None => Ok(response.str(plain).as_bytes().to_vec()),
    }
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn encode_base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity((bytes.len() + 2) / 3 * 4);
    for part in bytes.chunks(3) {
        let word = part.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - part.len()));
        for i in 0..4 {
            let digit = BASE64[(word >> (18 - 6 * i)) as usize & 63];
            out.push(if i <= part.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut word, mut bits) = (0u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let digit = BASE64.iter().position(|b| *b == byte)?;
        word = word << 6 | digit as u32;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((word >> bits) as u8);
        }
    }
    Some(out)
}

/// How grave a log line is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Level {
    Debug,
    Info,
    Warning,
    Error,
}

/// Writes a line to the session's log.
pub fn log(level: Level, text: &str) {
    guest::log(level as u32, text);
}
