//! Reads a command as a shell would, as far as the words go that may name a path.

const std = @import("std");
const wharf = @import("wharf");
const allocator = wharf.allocator;

/// What is told of a command, word by word.
pub const Report = struct {
    context: *anyopaque,
    /// A word, in which a backslash stands before each character that means nothing.
    word: *const fn (context: *anyopaque, text: []const u8) void,
    /// A word that is only known when the command runs, or what cannot be read.
    unknown: *const fn (context: *anyopaque, text: []const u8) void,
};

/// Reads a command. Beyond max_depth of what runs within it, it is not read.
pub fn read(report: Report, command: []const u8) void {
    readAt(report, command, 0);
}

const max_depth = 8;

fn readAt(report: Report, text: []const u8, depth: u32) void {
    if (depth > max_depth) return report.unknown(report.context, "what is nested too deeply");
    var reader: Reader = .{ .report = report, .text = text, .depth = depth };
    reader.run();
}

/// Programs that run a text that they are given.
const runners = [_][]const u8{
    "sh",      "bash", "dash", "zsh",  "ksh",    "ash",    "fish", "eval", "source",   ".",     "xargs",   "env",    "sudo",  "doas",
    "ssh",     "su",   "node", "perl", "ruby",   "php",    "find", "exec", "expect",   "trap",  "at",      "batch",  "watch", "script",
    "deno",    "bun",  "vi",   "vim",  "docker", "podman", "make", "time", "parallel", "nohup", "timeout", "setsid", "nice",  "busybox",
    "command", "alias",
};

/// Words behind which a command begins.
const keywords = [_][]const u8{ "then", "do", "else", "elif", "if", "while", "until", "!", "time" };

/// Programs whose arguments name nothing.
const speakers = [_][]const u8{ "echo", "printf", ":", "true", "false" };

/// Variables whose values are folders of no interest.
const folders = [_][]const u8{ "HOME", "PWD", "TMPDIR" };

const Reader = struct {
    report: Report,
    text: []const u8,
    depth: u32,
    i: usize = 0,
    word: std.ArrayList(u8) = .empty,
    begun: bool = false,
    is_text: bool = false, // the word has what no name has, quoted: it may be a text to run
    is_unknown: bool = false,
    quotes: bool = false,
    redirected: bool = false, // the next word is a file
    command: []const u8 = "", // the name of the simple command that is being read
    runs: bool = false, // something here runs texts
    texts: std.ArrayList([]const u8) = .empty,
    spoken: std.ArrayList([]const u8) = .empty, // words that are only printed, unless something here runs what it reads
    documents: std.ArrayList(Document) = .empty, // whose text has not come yet

    const Document = struct { end: []const u8, quoted: bool };

    fn run(r: *Reader) void {
        while (r.i < r.text.len) : (r.i += 1) {
            if (r.quotes) r.inQuotes(r.text[r.i]) else r.outside(r.text[r.i]);
        }
        if (r.quotes) r.report.unknown(r.report.context, "a quote that does not end");
        r.endCommand();
        if (!r.runs) return;
        for (r.spoken.items) |word| r.report.word(r.report.context, word);
        for (r.texts.items) |inner| readAt(r.report, inner, r.depth + 1);
    }

    fn peek(r: *Reader, ahead: usize) u8 {
        return if (r.i + ahead < r.text.len) r.text[r.i + ahead] else 0;
    }

    /// Adds a character that means nothing but itself.
    fn add(r: *Reader, c: u8) void {
        r.begun = true;
        if (std.mem.findScalar(u8, " \t\n'\"`$()<>;|&", c) != null) r.is_text = true;
        if (!std.ascii.isAlphanumeric(c) and c != '/') r.put('\\');
        r.put(c);
    }

    fn put(r: *Reader, c: u8) void {
        r.begun = true;
        r.word.append(allocator, c) catch unreachable;
    }

    fn outside(r: *Reader, c: u8) void {
        switch (c) {
            '\\' => {
                r.i += 1;
                if (r.i < r.text.len and r.text[r.i] != '\n') r.add(r.text[r.i]);
            },
            '\'' => {
                r.begun = true;
                r.i += 1;
                while (r.i < r.text.len and r.text[r.i] != '\'') : (r.i += 1) r.add(r.text[r.i]);
                if (r.i >= r.text.len) r.report.unknown(r.report.context, "a quote that does not end");
            },
            '"' => {
                r.quotes = true;
                r.begun = true;
            },
            '$' => r.dollar(),
            '`' => r.backticks(),
            ' ', '\t', '\r' => r.endWord(),
            '\n' => r.endLine(),
            ';', '|', '(', ')' => r.endCommand(),
            '&' => if (r.peek(1) == '>') r.endWord() else r.endCommand(),
            '<', '>' => r.redirection(c),
            '#' => if (r.begun) r.add(c) else {
                while (r.peek(1) != 0 and r.peek(1) != '\n') r.i += 1;
            },
            '*', '?', '[', ']', '{', '}', ',' => r.put(c),
            '~' => if (r.begun) r.add(c) else r.put(c),
            else => r.add(c),
        }
    }

    fn inQuotes(r: *Reader, c: u8) void {
        switch (c) {
            '"' => r.quotes = false,
            '\\' => {
                const next = r.peek(1);
                if (std.mem.findScalar(u8, "$`\"\\\n", next) == null or next == 0) return r.add(c);
                r.i += 1;
                if (next != '\n') r.add(next);
            },
            '$' => r.dollar(),
            '`' => r.backticks(),
            else => r.add(c),
        }
    }

    fn dollar(r: *Reader) void {
        const next = r.peek(1);
        if (next == '(') {
            const from = r.i + 2;
            r.i = closing(r.text, from, '(', ')');
            const inner = r.text[from..@min(r.i, r.text.len)];
            const is_number = inner.len > 1 and inner[0] == '(' and closing(inner, 1, '(', ')') == inner.len - 1;
            if (is_number) {
                r.substitutions(inner);
                return r.add('0');
            }
            readAt(r.report, inner, r.depth + 1);
            return r.unknownPart();
        }
        if (next == '{') {
            const from = r.i + 2;
            r.i = closing(r.text, from, '{', '}');
            return r.variable(r.text[from..@min(r.i, r.text.len)]);
        }
        if (next == '"' and !r.quotes) return; // $"…" is "…"
        if (next == '\'' and !r.quotes) return r.unknownPart(); // $'…': escapes of its own; the text follows as quoted
        if (std.mem.findScalar(u8, "?#$!-", next) != null and next != 0) {
            r.i += 1;
            return r.add('0');
        }
        const from = r.i + 1;
        var end = from;
        while (end < r.text.len and (std.ascii.isAlphanumeric(r.text[end]) or r.text[end] == '_')) end += 1;
        if (end == from and next != '@' and next != '*') return r.add('$');
        r.i = @max(end, from + 1) - 1;
        r.variable(r.text[from..@max(end, from + 1)]);
    }

    fn variable(r: *Reader, name: []const u8) void {
        if (!r.begun or r.word.items.len == 0) for (folders) |folder| {
            if (std.mem.eql(u8, name, folder)) return r.put('~');
        };
        const inner = std.mem.findScalar(u8, name, '$') != null or std.mem.findScalar(u8, name, '`') != null;
        if (inner) readAt(r.report, name, r.depth + 1);
        r.unknownPart();
    }

    fn unknownPart(r: *Reader) void {
        r.is_unknown = true;
        r.put('*');
    }

    fn backticks(r: *Reader) void {
        var inner: std.ArrayList(u8) = .empty;
        r.i += 1;
        while (r.i < r.text.len and r.text[r.i] != '`') : (r.i += 1) {
            if (r.text[r.i] == '\\' and r.i + 1 < r.text.len) r.i += 1;
            inner.append(allocator, r.text[r.i]) catch unreachable;
        }
        readAt(r.report, inner.items, r.depth + 1);
        r.unknownPart();
    }

    fn redirection(r: *Reader, c: u8) void {
        r.endWord();
        if (c == '<' and r.peek(1) == '<' and r.peek(2) != '<') return r.document();
        while (std.mem.findScalar(u8, "<>&|", r.peek(1)) != null and r.peek(1) != 0) r.i += 1;
        r.redirected = r.peek(1) != '(';
    }

    /// Reads what ends a here-document, behind <<.
    fn document(r: *Reader) void {
        r.i += 2;
        if (r.peek(0) == '-') r.i += 1;
        while (r.peek(0) == ' ' or r.peek(0) == '\t') r.i += 1;
        var end: std.ArrayList(u8) = .empty;
        var quoted = false;
        while (r.i < r.text.len and std.mem.findScalar(u8, " \t\n;|&<>()", r.text[r.i]) == null) : (r.i += 1) {
            const c = r.text[r.i];
            if (c == '\'' or c == '"' or c == '\\') quoted = true else end.append(allocator, c) catch unreachable;
        }
        r.i -= 1; // run steps
        r.documents.append(allocator, .{ .end = end.items, .quoted = quoted }) catch unreachable;
    }

    /// Ends a line, behind which the here-documents stand that it asks for.
    fn endLine(r: *Reader) void {
        r.endCommand();
        for (r.documents.items) |d| {
            const from = @min(r.i + 1, r.text.len);
            var at = from;
            while (at < r.text.len) {
                const end = std.mem.findScalarPos(u8, r.text, at, '\n') orelse r.text.len;
                const line = std.mem.trimStart(u8, r.text[at..end], "\t");
                r.i = end;
                if (std.mem.eql(u8, line, d.end)) break;
                at = end + 1;
            }
            const body = r.text[from..@min(at, r.text.len)];
            r.texts.append(allocator, body) catch unreachable;
            if (!d.quoted) r.substitutions(body);
        }
        r.documents.clearRetainingCapacity();
    }

    /// Reads what runs within a text that is otherwise taken as it is.
    fn substitutions(r: *Reader, body: []const u8) void {
        var at: usize = 0;
        while (std.mem.findPos(u8, body, at, "$(")) |from| {
            const end = closing(body, from + 2, '(', ')');
            readAt(r.report, body[from + 2 .. end], r.depth + 1);
            at = @min(end + 1, body.len);
        }
        var parts = std.mem.splitScalar(u8, body, '`');
        _ = parts.next();
        while (parts.next()) |inner| {
            readAt(r.report, inner, r.depth + 1);
            _ = parts.next() orelse break;
        }
    }

    fn endCommand(r: *Reader) void {
        r.endWord();
        r.command = "";
        r.redirected = false;
    }

    fn endWord(r: *Reader) void {
        defer {
            r.word = .empty;
            r.begun = false;
            r.is_text = false;
            r.is_unknown = false;
        }
        if (!r.begun) return;
        const text = r.word.items;
        const was_redirected = r.redirected;
        r.redirected = false;
        const plain = unescape(text);
        if (r.is_text) r.texts.append(allocator, plain) catch unreachable;
        if (was_redirected) return r.tell(text);
        if (r.command.len == 0) {
            if (isAssignment(plain)) return if (!r.is_unknown) r.tell(text);
            if (oneOf(&keywords, plain) or std.mem.eql(u8, text, "{")) return;
            r.command = if (r.is_unknown) "?" else plain;
            const name = baseName(plain);
            r.runs = r.runs or r.is_unknown or oneOf(&runners, name) or std.mem.startsWith(u8, name, "python");
            return r.tell(text);
        }
        if (oneOf(&runners, baseName(plain)) or std.mem.startsWith(u8, baseName(plain), "python")) r.runs = true;
        if (!oneOf(&speakers, r.command)) return r.tell(text);
        if (!r.is_unknown) r.spoken.append(allocator, text) catch unreachable;
    }

    fn tell(r: *Reader, text: []const u8) void {
        if (r.is_unknown) r.report.unknown(r.report.context, unescape(text)) else r.report.word(r.report.context, text);
    }
};

/// Where what opens before from is closed, or the end of the text.
fn closing(text: []const u8, from: usize, open: u8, close: u8) usize {
    var depth: usize = 1;
    var i = from;
    var quote: u8 = 0;
    while (i < text.len) : (i += 1) {
        const c = text[i];
        if (c == '\\' and quote != '\'') {
            i += 1;
        } else if (quote != 0) {
            if (c == quote) quote = 0;
        } else if (c == '\'' or c == '"') {
            quote = c;
        } else if (c == open) {
            depth += 1;
        } else if (c == close) {
            depth -= 1;
            if (depth == 0) return i;
        }
    }
    return text.len;
}

fn unescape(text: []const u8) []const u8 {
    var plain: std.ArrayList(u8) = .empty;
    var i: usize = 0;
    while (i < text.len) : (i += 1) {
        if (text[i] == '\\' and i + 1 < text.len) i += 1;
        plain.append(allocator, text[i]) catch unreachable;
    }
    return plain.items;
}

fn isAssignment(word: []const u8) bool {
    const at = std.mem.findScalar(u8, word, '=') orelse return false;
    if (at == 0 or std.ascii.isDigit(word[0])) return false;
    for (word[0..at]) |c| if (!std.ascii.isAlphanumeric(c) and c != '_') return false;
    return true;
}

fn baseName(word: []const u8) []const u8 {
    const at = std.mem.findScalarLast(u8, word, '/') orelse return word;
    return word[at + 1 ..];
}

fn oneOf(words: []const []const u8, word: []const u8) bool {
    for (words) |w| if (std.mem.eql(u8, w, word)) return true;
    return false;
}
