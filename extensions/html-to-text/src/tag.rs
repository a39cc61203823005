//! HTML as a sequence of tags and texts. Nothing is an error: what a browser
//! would make something of, this does too, and each byte is looked at once.

/// A piece of HTML.
pub enum Token<'a> {
    Text(&'a str),
    Open(Tag<'a>),
    Close(String),
}

/// An opening tag.
pub struct Tag<'a> {
    /// In lower case.
    pub name: String,
    attributes: &'a str,
}

impl Tag<'_> {
    /// The value of an attribute, as it is written but for its quotes.
    pub fn get(&self, wanted: &str) -> Option<&str> {
        let mut rest = self.attributes;
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
            if rest.is_empty() {
                return None;
            }
            let end = rest.find(|c: char| c.is_ascii_whitespace() || c == '=' || c == '/').unwrap_or(rest.len()).max(1);
            let end = (end..=rest.len()).find(|i| rest.is_char_boundary(*i)).unwrap_or(rest.len());
            let name = &rest[..end];
            let (value, after) = value_of(&rest[end..]);
            if name.eq_ignore_ascii_case(wanted) {
                return Some(value);
            }
            rest = after;
        }
    }
}

/// Takes what follows an attribute's name: its value, empty if it has none.
fn value_of(text: &str) -> (&str, &str) {
    let text = match text.trim_start().strip_prefix('=') {
        Some(text) => text,
        None => return ("", text),
    };
    let text = text.trim_start();
    for quote in ['"', '\''] {
        if let Some(text) = text.strip_prefix(quote) {
            return text.split_once(quote).unwrap_or((text, ""));
        }
    }
    text.split_at(text.find(|c: char| c.is_ascii_whitespace()).unwrap_or(text.len()))
}

/// Reads HTML token by token.
pub struct Tokens<'a> {
    html: &'a str,
    at: usize,
}

/// Elements whose content is no HTML and nothing to read: it goes up to their end.
const RAW: [&str; 6] = ["script", "style", "noembed", "noframes", "iframe", "xmp"];

impl<'a> Tokens<'a> {
    pub fn of(html: &'a str) -> Tokens<'a> {
        Tokens { html, at: 0 }
    }

    /// Where a byte comes next, or the end.
    fn seek(&self, from: usize, byte: u8) -> usize {
        self.html.as_bytes()[from..].iter().position(|b| *b == byte).map_or(self.html.len(), |i| from + i)
    }

    /// Moves behind the next >, before which there is this text, or to the end.
    fn skip_past(&mut self, before: &[u8]) {
        let begin = self.at;
        while self.at < self.html.len() {
            let end = self.seek(self.at, b'>');
            self.at = (end + 1).min(self.html.len());
            if self.html.as_bytes()[begin..end].ends_with(before) {
                return;
            }
        }
    }

    /// The end of a tag: the next > that stands in no quotes.
    fn tag_end(&self) -> usize {
        let mut quote = 0;
        let mut after_equals = false;
        for (i, byte) in self.html.as_bytes()[self.at..].iter().enumerate() {
            match byte {
                _ if quote != 0 => {
                    if *byte == quote {
                        quote = 0;
                    }
                }
                b'>' => return self.at + i,
                b'"' | b'\'' if after_equals => quote = *byte,
                b' ' | b'\n' | b'\t' => continue,
                _ => {}
            }
            after_equals = *byte == b'=';
        }
        self.html.len()
    }

    /// Reads what begins with <, or takes it for text.
    fn tag(&mut self) -> Option<Token<'a>> {
        let rest = &self.html[self.at..];
        let begin = self.at;
        if rest.starts_with("<!--") {
            self.at += 2; // <!--> is whole
            self.skip_past(b"--");
            return None;
        }
        if rest.starts_with("<!") || rest.starts_with("<?") {
            self.skip_past(b"");
            return None;
        }
        let closing = rest.starts_with("</");
        let name_at = begin + 1 + usize::from(closing);
        if !self.html.as_bytes().get(name_at).map_or(false, u8::is_ascii_alphabetic) {
            self.at = self.seek(begin + 1, b'<'); // a < that begins no tag
            return Some(Token::Text(&self.html[begin..self.at]));
        }
        let end = self.tag_end();
        let inside = &self.html[name_at..end];
        self.at = (end + 1).min(self.html.len());
        let length = inside.find(|c: char| c.is_ascii_whitespace() || c == '/').unwrap_or(inside.len());
        let name = inside[..length].to_ascii_lowercase();
        if closing {
            return Some(Token::Close(name));
        }
        if RAW.contains(&name.as_str()) {
            self.skip_raw(&name);
            return None;
        }
        Some(Token::Open(Tag { name, attributes: &inside[length..] }))
    }

    /// Moves behind the end of an element whose content is no HTML.
    fn skip_raw(&mut self, name: &str) {
        while self.at < self.html.len() {
            self.at = self.seek(self.at, b'<');
            let rest = &self.html.as_bytes()[self.at..];
            if rest.len() > name.len() + 1 && rest[1] == b'/' && rest[2..2 + name.len()].eq_ignore_ascii_case(name.as_bytes()) {
                self.at = self.seek(self.at, b'>');
                self.at = (self.at + 1).min(self.html.len());
                return;
            }
            self.at = (self.at + 1).min(self.html.len());
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        while self.at < self.html.len() {
            if self.html.as_bytes()[self.at] == b'<' {
                if let Some(token) = self.tag() {
                    return Some(token);
                }
                continue;
            }
            let begin = self.at;
            self.at = self.seek(begin, b'<');
            return Some(Token::Text(&self.html[begin..self.at]));
        }
        None
    }
}
