//! What tags and texts become on a page of plain text.

use crate::entity;
use crate::tag::Tag;

/// Elements that begin and end a line of their own.
const BLOCKS: [&str; 30] = [
    "address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog", "div", "dl", "dt", "fieldset", "figcaption",
    "figure", "footer", "form", "header", "html", "legend", "main", "nav", "option", "p", "pre", "section", "summary", "table", "tr", "caption",
];

/// Elements that nobody reads, besides those that the tokens leave out.
const UNREAD: [&str; 9] = ["svg", "template", "object", "canvas", "audio", "video", "select", "textarea", "datalist"];

/// Elements that always have an end, so that one that is hidden can be left out up
/// to it.
const ENDED: [&str; 22] = [
    "a", "article", "aside", "b", "blockquote", "button", "div", "em", "footer", "form", "header", "i", "main", "nav", "ol", "pre", "section",
    "span", "strong", "table", "ul", "details",
];

/// How many links get a footnote, and how deep lists are set in.
const MOST_LINKS: usize = 500;
const MOST_DEPTH: usize = 10;

/// A page of text as it grows.
pub struct Page {
    out: String,
    count: usize, // of the characters of texts
    most: usize,
    breaks: usize,           // newlines to write before the next text
    blank: bool,             // a blank to write before the next text
    skipped: (String, usize), // the element that is left out, and how many of it are open
    in_pre: bool,
    in_title: bool,
    title: String,
    lists: Vec<Option<usize>>, // the open lists: the number of the last item, or none
    link: Option<(String, usize)>, // where the open link leads, and where its text begins
    links: Vec<String>,
    cells: usize,                    // of the row
}

impl Page {
    pub fn new(most: usize) -> Page {
        Page {
            out: String::new(),
            count: 0,
            most,
            breaks: 0,
            blank: false,
            skipped: (String::new(), 0),
            in_pre: false,
            in_title: false,
            title: String::new(),
            lists: Vec::new(),
            link: None,
            links: Vec::new(),
            cells: 0,
        }
    }

    /// Whether there is as much as there may be.
    pub fn is_full(&self) -> bool {
        self.count > self.most || self.out.len() > 4 * self.most
    }

    /// Adds a text, with its white space as HTML means it.
    pub fn text(&mut self, text: &str) {
        if self.skipped.1 > 0 {
            return;
        }
        if self.in_title {
            self.title.push_str(text);
            return;
        }
        for c in text.chars() {
            match c {
                '\n' if self.in_pre => self.breaks += usize::from(self.breaks < 2),
                ' ' | '\t' if self.in_pre => {
                    self.begin();
                    self.out.push(c);
                }
                _ if c.is_whitespace() => self.blank = true,
                _ if is_unseen(c) => {}
                _ => {
                    self.begin();
                    self.out.push(c);
                    self.count += 1;
                }
            }
        }
    }

    /// Writes what is due before the next character.
    fn begin(&mut self) {
        if self.breaks > 0 && !self.out.is_empty() {
            while self.out.ends_with(' ') {
                self.out.pop();
            }
            for _ in 0..self.breaks {
                self.out.push('\n');
            }
        } else if self.blank && !self.out.is_empty() && !self.out.ends_with(['\n', ' ']) {
            self.out.push(' ');
        }
        self.breaks = 0;
        self.blank = false;
    }

    /// Has the next text begin so many lines further down.
    fn lines(&mut self, count: usize) {
        self.breaks = self.breaks.max(count);
        self.blank = false;
    }

    /// Writes a mark at the beginning of a line.
    fn mark(&mut self, mark: &str) {
        self.begin();
        self.out.push_str(mark);
    }

    pub fn open(&mut self, tag: &Tag) {
        let name = tag.name.as_str();
        if self.skipped.1 > 0 {
            self.skipped.1 += usize::from(self.skipped.0 == name);
            return;
        }
        if UNREAD.contains(&name) || ENDED.contains(&name) && is_hidden(tag) {
            self.skipped = (name.to_string(), 1);
            return;
        }
        match name {
            "title" => self.in_title = true,
            "br" => self.breaks += usize::from(self.breaks < 2),
            "hr" => {
                self.lines(2);
                self.mark("---");
                self.lines(2);
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.lines(2);
                self.mark(&("#".repeat(usize::from(name.as_bytes()[1] - b'0')) + " "));
            }
            "ul" | "ol" => {
                self.lines(if self.lists.is_empty() { 2 } else { 1 });
                if self.lists.len() < 100 {
                    self.lists.push(if name == "ol" { Some(0) } else { None });
                }
            }
            "li" => self.item(),
            "td" | "th" => {
                if self.cells > 0 {
                    self.mark(" | ");
                }
                self.cells += 1;
            }
            "a" => self.link = tag.get("href").and_then(target).map(|to| (to, self.out.len())),
            "img" => {
                let alt = entity::decode(tag.get("alt").unwrap_or(""));
                if !alt.trim().is_empty() {
                    self.text(&format!("[image: {}]", alt.trim()));
                }
            }
            _ => self.block(name),
        }
    }

    /// Begins or ends a block.
    fn block(&mut self, name: &str) {
        match name {
            "pre" => {
                self.lines(2);
                self.in_pre = true;
            }
            "tr" => {
                self.lines(1);
                self.cells = 0;
            }
            "dt" | "dd" | "option" | "caption" | "legend" | "summary" => self.lines(1),
            "p" | "blockquote" | "table" | "dl" | "figure" | "details" | "fieldset" => self.lines(2),
            _ if BLOCKS.contains(&name) => self.lines(1),
            _ => {}
        }
    }

    fn item(&mut self) {
        self.lines(1);
        let depth = self.lists.len().clamp(1, MOST_DEPTH);
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{number}. ")
            }
            _ => "- ".to_string(),
        };
        self.mark(&("  ".repeat(depth - 1) + &mark));
    }

    pub fn close(&mut self, name: &str) {
        if self.skipped.1 > 0 {
            self.skipped.1 -= usize::from(self.skipped.0 == name);
            return;
        }
        match name {
            "title" => self.in_title = false,
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.lines(2),
            "ul" | "ol" => {
                self.lists.pop();
                self.lines(if self.lists.is_empty() { 2 } else { 1 });
            }
            "a" => self.end_link(),
            "pre" => {
                self.in_pre = false;
                self.lines(2);
            }
            _ => self.block(name),
        }
    }

    /// Writes a link's number behind its text.
    fn end_link(&mut self) {
        let (to, begin) = match self.link.take() {
            Some(link) => link,
            None => return,
        };
        let text = self.out.get(begin..).unwrap_or("").trim();
        if text.is_empty() || text == to {
            return;
        }
        let known = self.links.iter().position(|link| *link == to);
        if known.is_none() && self.links.len() == MOST_LINKS {
            return;
        }
        let number = known.map_or(self.links.len(), |i| i) + 1;
        if known.is_none() {
            self.links.push(to);
        }
        self.out.push_str(&format!("[{number}]"));
    }

    /// The text, with its title in front and the links behind.
    pub fn finish(mut self) -> String {
        let full = self.is_full();
        if let Some((at, _)) = self.out.char_indices().nth(self.most) {
            self.out.truncate(at);
        }
        let mut page = String::new();
        let title: Vec<_> = self.title.split_whitespace().collect();
        let title: String = title.join(" ").chars().filter(|c| !is_unseen(*c)).take(300).collect();
        if !title.is_empty() && !self.out.starts_with(&format!("# {title}\n")) {
            page = format!("# {title}\n\n");
        }
        page.push_str(self.out.trim_end());
        if full {
            page.push_str("\n\n[cut here: the page goes on]");
        }
        for (i, to) in self.links.iter().enumerate() {
            page.push_str(if i == 0 { "\n\n" } else { "\n" });
            page.push_str(&format!("[{}] {to}", i + 1));
        }
        if page.is_empty() {
            return "[the page has no text]".to_string();
        }
        page
    }
}

/// Where a link leads, if that is worth telling.
fn target(href: &str) -> Option<String> {
    let to: String = entity::decode(href).chars().filter(|c| !c.is_whitespace() && !is_unseen(*c)).take(500).collect();
    let scheme = to.split(':').next().unwrap_or("").to_ascii_lowercase();
    let known = !to.contains(':') || to.starts_with('/') || ["http", "https", "mailto"].contains(&scheme.as_str());
    (known && !to.is_empty() && !to.starts_with('#')).then(|| to)
}

/// Whether nobody who looks at the page sees an element: what it says is not for
/// readers, and often for machines.
fn is_hidden(tag: &Tag) -> bool {
    if tag.get("hidden").is_some() || tag.get("aria-hidden") == Some("true") {
        return true;
    }
    let style: String = tag.get("style").unwrap_or("").chars().filter(|c| !c.is_whitespace()).take(2000).collect();
    let style = style.to_ascii_lowercase();
    ["display:none", "visibility:hidden", "opacity:0;", "font-size:0"].iter().any(|hidden| style.contains(hidden)) || style.ends_with("opacity:0")
}

/// Characters that leave no trace on a page, or change the order of others.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}
