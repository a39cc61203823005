//! Patterns of paths, and what they match. They are those of .gitignore: a pattern
//! without a slash is for a name at any depth, one with a slash is for a path from the
//! workspace on; ** stands for folders of any depth, * and ? for what is no slash, [ ] for
//! one of some characters. ! takes back what an earlier pattern protects. What lies
//! below something protected is protected.

const std = @import("std");
const wharf = @import("wharf");
const allocator = wharf.allocator;

/// One character, or what stands for some.
pub const Token = union(enum) {
    char: u8,
    any,
    star,
    /// What is between [ and ].
    set: []const u8,

    fn meets(a: Token, b: Token) bool {
        return switch (a) {
            .any, .star => true,
            .char => |c| switch (b) {
                .char => |d| c == d,
                .set => |set| in(set, c),
                .any, .star => true,
            },
            .set => |set| switch (b) {
                .char => |c| in(set, c),
                else => true, // perhaps
            },
        };
    }
};

/// Whether a character is in a set such as a-z_, or !a-z.
fn in(set: []const u8, c: u8) bool {
    const negated = set.len > 0 and (set[0] == '!' or set[0] == '^');
    const members = set[@intFromBool(negated)..];
    var i: usize = 0;
    while (i < members.len) : (i += 1) {
        const ranged = i + 2 < members.len and members[i + 1] == '-';
        const last = if (ranged) members[i + 2] else members[i];
        if (members[i] <= c and c <= last) return !negated;
        if (ranged) i += 2;
    }
    return negated;
}

/// A name in a path, or the pattern of one.
pub const Name = []const Token;

/// Reads a name. A backslash takes away what the next character means; with
/// `literal`, none means anything.
pub fn parseName(text: []const u8, literal: bool) Name {
    var tokens: std.ArrayList(Token) = .empty;
    var i: usize = 0;
    while (i < text.len) : (i += 1) {
        const token: Token = if (literal) .{ .char = text[i] } else switch (text[i]) {
            '*' => .star,
            '?' => .any,
            '[' => set: {
                const end = std.mem.findScalarPos(u8, text, @min(i + 2, text.len), ']') orelse break :set .{ .char = '[' };
                defer i = end;
                break :set .{ .set = text[i + 1 .. end] };
            },
            '\\' => escaped: {
                i += @intFromBool(i + 1 < text.len);
                break :escaped .{ .char = text[i] };
            },
            else => |c| .{ .char = c },
        };
        tokens.append(allocator, token) catch unreachable;
    }
    return tokens.items;
}

fn isPlain(name: Name) bool {
    for (name) |token| if (token != .char) return false;
    return true;
}

fn isText(name: Name, text: []const u8) bool {
    if (name.len != text.len) return false;
    for (name, text) |token, c| if (token != .char or token.char != c) return false;
    return true;
}

/// Whether there is a name that both stand for. A * at the beginning of b does not
/// stand for a dot, as in a shell; a name is at most 255 bytes long.
fn overlap(a: Name, b: Name) bool {
    if (a.len > 255 or b.len > 255) return false;
    if (a.len > 0 and b.len > 0 and a[0] == .char and a[0].char == '.' and (b[0] == .star or b[0] == .any)) return false;
    if (differ(a, b, 0, 0) or (a.len > 0 and b.len > 0 and differ(a, b, a.len - 1, b.len - 1))) return false; // most do
    var rows: [2][257]bool = undefined; // of i and i + 1: whether the rest of a and that of b from j on overlap
    var i = a.len + 1;
    while (i > 0) {
        i -= 1;
        const row = &rows[i % 2];
        const next = &rows[(i + 1) % 2];
        if (i == a.len) @memset(next[0 .. b.len + 1], false);
        var j = b.len + 1;
        while (j > 0) {
            j -= 1;
            const behind = j < b.len and row[j + 1];
            row[j] = if (i == a.len and j == b.len)
                true
            else if (i < a.len and a[i] == .star)
                next[j] or behind
            else if (j < b.len and b[j] == .star)
                behind or (i < a.len and next[j])
            else
                i < a.len and j < b.len and a[i].meets(b[j]) and next[j + 1];
        }
    }
    return rows[0][0];
}

/// Whether two names have characters at these places that no name can have both.
fn differ(a: Name, b: Name, i: usize, j: usize) bool {
    return i < a.len and j < b.len and a[i] == .char and b[j] == .char and a[i].char != b[j].char;
}

/// A path as names, without ., .. and empty ones.
pub const Path = struct {
    names: []const Name,
    /// Where it begins is not known: it is absolute, or leaves the workspace.
    floating: bool,

    pub fn parse(text: []const u8, literal: bool) Path {
        var names: std.ArrayList(Name) = .empty;
        var floating = text.len > 0 and (text[0] == '/' or text[0] == '~');
        var parts = std.mem.splitScalar(u8, text, '/');
        while (parts.next()) |part| {
            const name = parseName(part, literal);
            if (name.len == 0 or isText(name, ".")) continue;
            if (isText(name, "..")) {
                if (names.pop() == null) floating = true;
            } else names.append(allocator, name) catch unreachable;
        }
        return .{ .names = names.items, .floating = floating };
    }
};

/// A pattern of protected paths.
pub const Pattern = struct {
    text: []const u8,
    names: []const Name,
    anchored: bool,
    negated: bool,

    pub fn parse(text: []const u8) ?Pattern {
        const negated = std.mem.startsWith(u8, text, "!");
        const body = std.mem.trimEnd(u8, text[@intFromBool(negated)..], "/");
        var names: std.ArrayList(Name) = .empty;
        var parts = std.mem.tokenizeScalar(u8, body, '/');
        while (parts.next()) |part| names.append(allocator, parseName(part, false)) catch unreachable;
        if (names.items.len == 0) return null;
        return .{ .text = text, .names = names.items, .anchored = std.mem.findScalar(u8, body, '/') != null, .negated = negated };
    }

    /// Whether the pattern may be for exactly this path.
    fn covers(pattern: Pattern, path: []const Name, floating: bool) bool {
        if (!pattern.anchored) return overlap(pattern.names[0], path[path.len - 1]);
        if (!floating) return coversFrom(pattern.names, path);
        for (0..path.len) |from| if (coversFrom(pattern.names, path[from..])) return true;
        return false;
    }
};

fn coversFrom(pattern: []const Name, path: []const Name) bool {
    var p = pattern;
    var rest = path;
    while (p.len > 0) : (p = p[1..]) {
        if (p[0].len == 2 and p[0][0] == .star and p[0][1] == .star) {
            for (0..rest.len + 1) |skipped| if (coversFrom(p[1..], rest[skipped..])) return true;
            return false;
        }
        if (rest.len == 0 or !overlap(p[0], rest[0])) return false;
        rest = rest[1..];
    }
    return rest.len == 0;
}

/// Whether a path is protected, and by what. One with * and the like may stand for many.
pub const Protected = struct { pattern: []const u8, sure: bool };

pub fn protected(patterns: []const Pattern, path: Path) ?Protected {
    for (1..path.names.len + 1) |length| {
        const part = path.names[0..length];
        const plain = for (part) |name| {
            if (!isPlain(name)) break false;
        } else true;
        var by: ?[]const u8 = null;
        for (patterns) |pattern| {
            if (pattern.negated and (by == null or !plain)) continue;
            if (pattern.covers(part, path.floating)) by = if (pattern.negated) null else by orelse pattern.text;
        }
        if (by) |text| return .{ .pattern = text, .sure = plain };
    }
    return null;
}
