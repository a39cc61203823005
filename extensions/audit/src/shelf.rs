//! Where lines are kept: in the extension's store, of which the oldest make
//! way, or in a file, of which the last but one is kept too.

use crate::line::Cut;
use wharf::{Json, Result};

/// What the user's configuration says, under [extensions.audit.config].
pub struct Settings {
    pub file: Option<String>, // to = "file" and its name
    pub lines: usize,         // kept in the store
    pub bytes: usize,         // kept in the file
    pub cut: Cut,
    pub results: bool, // keep the beginning of results
}

impl Settings {
    pub fn read() -> Result<Settings> {
        let to = wharf::config("to")?;
        let file = match to.as_str().unwrap_or("kv") {
            "kv" => None,
            "file" => Some(wharf::config("file")?.as_str().unwrap_or("audit/audit.jsonl").to_string()),
            other => return Err(format!("to = {other:?} in the configuration: it is \"kv\" or \"file\"").into()),
        };
        Ok(Settings {
            file,
            lines: number("lines", 1000, 1, 10_000)?,
            bytes: number("max_bytes", 256 << 10, 256, 4 << 20)?,
            cut: Cut { bytes: number("cut", 200, 16, 4000)? },
            results: wharf::config("results")?.as_bool().unwrap_or(false),
        })
    }
}

fn number(key: &str, otherwise: i64, least: i64, most: i64) -> Result<usize> {
    let value = wharf::config(key)?;
    let given = if value.is_null() { Some(otherwise) } else { value.as_int() };
    match given {
        Some(n) if (least..=most).contains(&n) => Ok(n as usize),
        _ => Err(format!("{key} = {value} in the configuration: it is a number from {least} to {most}").into()),
    }
}

/// Lines that wait for the file; more are not held back.
const MOST_WAITING: usize = 200;

/// Keeps lines.
pub struct Shelf {
    pub settings: Settings,
    next: Option<i64>, // the number of the next line in the store
    waiting: Vec<String>,
}

impl Shelf {
    pub fn new(settings: Settings) -> Shelf {
        Shelf { settings, next: None, waiting: Vec::new() }
    }

    /// Keeps a line.
    pub fn add(&mut self, line: Json) -> Result<()> {
        if self.settings.file.is_none() {
            return self.store(line);
        }
        if self.waiting.len() < 10 * MOST_WAITING {
            self.waiting.push(line.to_string());
        }
        Ok(())
    }

    /// Puts a line into the store, in the place of the oldest if there is no room.
    /// Sessions that run side by side share the store: the key has the session too.
    fn store(&mut self, line: Json) -> Result<()> {
        let next = match self.next {
            Some(next) => next,
            None => self.kept()?.last().map_or(0, |key| number_of(key) + 1),
        };
        let session: String = line.str("session").chars().filter(char::is_ascii_alphanumeric).collect();
        let key = format!("{KEY}{next:012}-{}", &session[session.len().saturating_sub(8)..]);
        if let Err(error) = wharf::kv_set(&key, line.clone()) {
            if error.code != "OVER_LIMIT" {
                return Err(error);
            }
            let kept = self.kept()?;
            delete(&kept, kept.len() / 4 + 1)?;
            wharf::kv_set(&key, line)?;
        }
        self.next = Some(next + 1);
        if next as usize % (self.settings.lines / 8 + 1) == 0 {
            let kept = self.kept()?;
            delete(&kept, kept.len().saturating_sub(self.settings.lines))?;
        }
        Ok(())
    }

    fn kept(&self) -> Result<Vec<String>> {
        wharf::kv_list(KEY)
    }

    /// Writes to the file in the course of a turn only what is much.
    pub fn flush_if_long(&mut self) -> Result<()> {
        if self.waiting.len() < MOST_WAITING {
            return Ok(());
        }
        self.flush()
    }

    /// Writes the lines that wait to the file. What cannot be written waits on.
    pub fn flush(&mut self) -> Result<()> {
        let file = match &self.settings.file {
            Some(file) if !self.waiting.is_empty() => file,
            _ => return Ok(()),
        };
        let before = match wharf::read_file(file) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.message.ends_with("no such file or directory") => String::new(),
            Err(error) => return Err(error),
        };
        let lines = self.waiting.join("\n") + "\n";
        if before.len() + lines.len() > self.settings.bytes && !before.is_empty() {
            wharf::write_file(&format!("{file}.1"), &before)?;
            wharf::write_file(file, &lines)?;
        } else {
            wharf::write_file(file, &(before + &lines))?;
        }
        self.waiting.clear();
        Ok(())
    }
}

/// What keys of lines begin with. Keys in their order are lines in theirs.
const KEY: &str = "line-";

/// The number of a line, by its key.
fn number_of(key: &str) -> i64 {
    let digits = key[KEY.len()..].split('-').next().unwrap_or("");
    digits.parse().unwrap_or(0)
}

/// Deletes the oldest lines, so many of them.
fn delete(kept: &[String], count: usize) -> Result<()> {
    kept.iter().take(count).try_for_each(|key| wharf::kv_delete(key))
}
