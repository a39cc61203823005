//! Characters that HTML has names and numbers for.

/// The names that texts are full of; others stay as they are written.
const NAMES: [(&str, &str); 42] = [
    ("amp", "&"), ("lt", "<"), ("gt", ">"), ("quot", "\""), ("apos", "'"), ("nbsp", " "), ("ensp", " "), ("emsp", " "),
    ("thinsp", " "), ("shy", ""), ("copy", "©"), ("reg", "®"), ("trade", "™"), ("hellip", "…"), ("mdash", "—"), ("ndash", "–"),
    ("lsquo", "‘"), ("rsquo", "’"), ("sbquo", "‚"), ("ldquo", "“"), ("rdquo", "”"), ("bdquo", "„"), ("laquo", "«"), ("raquo", "»"),
    ("bull", "•"), ("middot", "·"), ("larr", "←"), ("rarr", "→"), ("times", "×"), ("deg", "°"), ("plusmn", "±"), ("euro", "€"),
    ("pound", "£"), ("yen", "¥"), ("cent", "¢"), ("sect", "§"), ("para", "¶"), ("frac12", "½"), ("auml", "ä"), ("ouml", "ö"),
    ("uuml", "ü"), ("szlig", "ß"),
];

/// What stands for the numbers 128 to 159, which old pages take for those of
/// Windows.
const WINDOWS: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘', '’', '“', '”', '•', '–', '—',
    '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// Puts characters in the place of their names and numbers.
pub fn decode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = rest.bytes().take(32).position(|b| b == b';').unwrap_or(0);
        match if length > 1 { one(&rest[1..length]) } else { None } {
            Some(character) => {
                out.push_str(&character);
                rest = &rest[length + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out + rest
}

fn one(name: &str) -> Option<String> {
    let number = match name.strip_prefix('#') {
        Some(number) => number,
        None => return NAMES.iter().find(|(known, _)| *known == name).map(|(_, character)| character.to_string()),
    };
    let code = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => number.parse().ok()?,
    };
    Some(match code {
        128..=159 => WINDOWS[code as usize - 128],
        _ => char::from_u32(code).unwrap_or('\u{fffd}'),
    }.to_string())
}
