//! What of a call's values goes into a line.

use wharf::Json;

/// Words in the name of an argument whose value is left out.
const SECRET: [&str; 8] = ["secret", "token", "password", "passwd", "apikey", "api_key", "authorization", "credential"];

/// How much of a value is kept.
#[derive(Clone, Copy)]
pub struct Cut {
    pub bytes: usize, // of a text
}

/// How many keys or items are kept, and how deep.
const MOST_PARTS: usize = 50;
const MOST_DEPTH: usize = 5;

impl Cut {
    /// The beginning of a text, and how long the whole was.
    pub fn text(self, text: &str) -> String {
        if text.len() <= self.bytes {
            return text.to_string();
        }
        let end = (0..=self.bytes).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
        format!("{}… ({} bytes)", &text[..end], text.len())
    }

    /// A value with its texts cut, and without what is named as a secret.
    pub fn value(self, value: &Json) -> Json {
        self.within(value, MOST_DEPTH)
    }

    fn within(self, value: &Json, depth: usize) -> Json {
        match value {
            Json::Text(text) => Json::Text(self.text(text)),
            Json::List(_) | Json::Object(_) if depth == 0 => Json::from("…"),
            Json::List(items) => {
                let mut kept: Vec<_> = items.iter().take(MOST_PARTS).map(|item| self.within(item, depth - 1)).collect();
                if items.len() > MOST_PARTS {
                    kept.push(format!("… ({} items)", items.len()).into());
                }
                Json::List(kept)
            }
            Json::Object(members) => {
                let keep = |(key, value): &(String, Json)| {
                    let value = if is_secret(key) { Json::from("[left out]") } else { self.within(value, depth - 1) };
                    (self.text(key), value)
                };
                let mut kept: Vec<_> = members.iter().take(MOST_PARTS).map(keep).collect();
                if members.len() > MOST_PARTS {
                    kept.push(("…".to_string(), format!("{} keys", members.len()).into()));
                }
                Json::Object(kept)
            }
            other => other.clone(),
        }
    }
}

fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase().replace('-', "_");
    SECRET.iter().any(|word| key.contains(word))
}
