//! protect-paths: denies what would touch protected paths, and has the user asked
//! where that cannot be told. glob.zig knows what is protected, shell.zig reads
//! commands.

const std = @import("std");
const wharf = @import("wharf");
const glob = @import("glob.zig");
const shell = @import("shell.zig");
const allocator = wharf.allocator;

comptime {
    wharf.hooks(.{ .before_execute_tool = judge });
}

/// What is protected unless the user says otherwise.
const usual = [_][]const u8{
    ".env",    ".env.*",      "!.env.example", "!.env.sample",  "!.env.template",    ".git/",          ".ssh/",     ".gnupg/",
    ".netrc",  ".npmrc",      ".pypirc",       "id_rsa",        "id_ed25519",        "*.pem",          "*.key",     "*.p12",
    "*.pfx",   "*.keystore",  "go.sum",        "Cargo.lock",    "package-lock.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock",
    "uv.lock", "poetry.lock", "Pipfile.lock",  "composer.lock", "Gemfile.lock",      "flake.lock",     "mix.lock",
};

fn judge(call: wharf.BeforeExecuteTool) !wharf.Verdict {
    var found: Found = .{ .patterns = try readPatterns() };
    if (is(call.tool, "exec") or is(call.tool, "write_stdin")) {
        try found.commands(call.arguments);
    } else if (is(call.tool, "apply_patch")) {
        found.patch(call.arguments);
    } else {
        const path = call.arguments.get("path") orelse return wharf.problem("the call has no path");
        found.path(path.text() orelse return wharf.problem("the call's path is no text"), true);
    }
    return found.verdict();
}

fn is(a: []const u8, b: []const u8) bool {
    return std.mem.eql(u8, a, b);
}

fn readPatterns() ![]const glob.Pattern {
    const texts = try wharf.config([]const []const u8, "paths") orelse &usual;
    var patterns: std.ArrayList(glob.Pattern) = .empty;
    for (texts) |text| {
        const pattern = glob.Pattern.parse(text) orelse return wharf.problem(wharf.print("the configuration of protect-paths is wrong: \"{s}\" names nothing", .{text}));
        patterns.append(allocator, pattern) catch unreachable;
    }
    return patterns.items;
}

/// What was found in a call.
const Found = struct {
    patterns: []const glob.Pattern,
    denied: ?[]const u8 = null,
    asked: ?[]const u8 = null,

    fn verdict(found: Found) wharf.Verdict {
        if (found.denied) |reason| return .deny(reason);
        if (found.asked) |reason| return .ask(reason);
        return .none;
    }

    /// Notes what a path is. With `literal`, no character of it means anything.
    fn path(found: *Found, text: []const u8, literal: bool) void {
        const by = glob.protected(found.patterns, .parse(text, literal)) orelse return;
        const shown = wharf.toText(if (literal) text else plain(text));
        if (by.sure) {
            if (found.denied == null) found.denied = wharf.print("\"{s}\" is protected by \"{s}\": leave it as it is, or tell the user what to change there", .{ shown, by.pattern });
        } else if (found.asked == null) {
            found.asked = wharf.print("\"{s}\" may stand for a path that \"{s}\" protects", .{ shown, by.pattern });
        }
    }

    /// Notes what the strings among the arguments would run.
    fn commands(found: *Found, arguments: wharf.Json) !void {
        if (arguments.text()) |command| {
            shell.read(.{ .context = found, .word = seeWord, .unknown = seeUnknown }, command);
        } else if (arguments.items()) |list| {
            var all = list;
            while (try all.next()) |item| try found.commands(item);
        } else |_| if (arguments.members()) |object| {
            var all = object;
            while (try all.next()) |member| try found.commands(member.value);
        } else |_| {}
    }

    /// Notes what the files are that a patch names.
    fn patch(found: *Found, arguments: wharf.Json) void {
        const marks = [_][]const u8{ "*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ", "+++ b/", "--- a/", "+++ ", "--- ", "rename from ", "rename to ", "copy to " };
        var files: usize = 0;
        for ([_][]const u8{ "patch", "input", "diff" }) |key| {
            var lines = std.mem.tokenizeAny(u8, (arguments.get(key) orelse continue).text() orelse continue, "\r\n");
            while (lines.next()) |line| {
                for (marks) |mark| if (std.mem.startsWith(u8, line, mark)) {
                    files += 1;
                    const behind = line[mark.len..]; // in a diff, a date stands behind a tab
                    found.path(std.mem.trim(u8, behind[0 .. std.mem.findScalar(u8, behind, '\t') orelse behind.len], " \""), true);
                };
            }
        }
        if (files == 0) found.asked = "the patch names no file that protect-paths can read";
    }
};

fn seeWord(context: *anyopaque, text: []const u8) void {
    const found: *Found = @ptrCast(@alignCast(context));
    var words: std.ArrayList([]const u8) = .empty;
    if (!expand(text, &words)) return seeUnknown(context, plain(text));
    for (words.items) |word| {
        found.path(word, false);
        // What stands behind --option=, host:, @ and the like, or an option's letter.
        for (word, 0..) |c, i| {
            if (std.mem.findScalar(u8, "=:,@", c) != null) found.path(word[i + 1 ..], false);
        }
        if (word.len > 3 and word[0] == '\\' and word[1] == '-' and std.ascii.isAlphabetic(word[2])) found.path(word[3..], false);
    }
}

fn seeUnknown(context: *anyopaque, text: []const u8) void {
    const found: *Found = @ptrCast(@alignCast(context));
    if (found.asked == null) found.asked = wharf.print("what \"{s}\" stands for is only known when the command runs, and it may name a protected path", .{wharf.toText(text[0..@min(text.len, 80)])});
}

/// A longer word is not looked into: no path is so long.
const longest = 4096;

/// Writes a word's braces out. It reports whether there are few enough.
fn expand(word: []const u8, words: *std.ArrayList([]const u8)) bool {
    if (words.items.len >= 64 or word.len > longest) return false;
    const braces = findBraces(word) orelse {
        words.append(allocator, word) catch unreachable;
        return true;
    };
    const inner = word[braces.open + 1 .. braces.close];
    if (std.mem.find(u8, inner, "\\.\\.") != null) return expand(wharf.print("{s}*{s}", .{ word[0..braces.open], word[braces.close + 1 ..] }), words); // {1..5}
    var depth: usize = 0;
    var from: usize = 0;
    var i: usize = 0;
    while (i <= inner.len) : (i += 1) {
        if (i < inner.len and inner[i] == '\\') {
            i += 1;
            continue;
        }
        if (i < inner.len and inner[i] == '{') depth += 1;
        if (i < inner.len and inner[i] == '}') depth -= 1;
        if (i < inner.len and (inner[i] != ',' or depth > 0)) continue;
        const part = wharf.print("{s}{s}{s}", .{ word[0..braces.open], inner[from..i], word[braces.close + 1 ..] });
        if (!expand(part, words)) return false;
        from = i + 1;
    }
    return true;
}

/// The first { of a word that makes several of it, and its }.
fn findBraces(word: []const u8) ?struct { open: usize, close: usize } {
    var open: usize = 0;
    while (open < word.len) : (open += 1) {
        if (word[open] == '\\') {
            open += 1;
            continue;
        }
        if (word[open] != '{') continue;
        var depth: usize = 0;
        var several = false;
        var i = open;
        while (i < word.len) : (i += 1) switch (word[i]) {
            '\\' => {
                several = several or (depth == 1 and std.mem.startsWith(u8, word[i..], "\\.\\."));
                i += 1;
            },
            '{' => depth += 1,
            ',' => several = several or depth == 1,
            '}' => {
                depth -= 1;
                if (depth > 0) continue;
                if (several) return .{ .open = open, .close = i };
                break;
            },
            else => {},
        };
    }
    return null;
}

/// A word without its backslashes.
fn plain(word: []const u8) []const u8 {
    const out = allocator.alloc(u8, word.len) catch unreachable;
    var n: usize = 0;
    var i: usize = 0;
    while (i < word.len) : (i += 1) {
        if (word[i] == '\\' and i + 1 < word.len) i += 1;
        out[n] = word[i];
        n += 1;
    }
    return out[0..n];
}
