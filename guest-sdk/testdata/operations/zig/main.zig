//! Asks for each host operation once, and tells what came.

const std = @import("std");
const wharf = @import("wharf");

comptime {
    wharf.tools(.{ .tour = tour });
}

fn tour(_: wharf.Json) []const u8 {
    var told: []const u8 = "";
    inline for (comptime std.meta.declarations(stops)) |stop| {
        const came = @field(stops, stop)() catch |err| switch (@as(wharf.Error, @errorCast(err))) {
            error.NotGranted => "NOT_GRANTED",
            else => wharf.lastMessage(),
        };
        told = wharf.print("{s}{s}: {s}\n", .{ told, stop, came });
    }
    return told;
}

const stops = struct {
    pub fn config() ![]const u8 {
        return (try wharf.config(wharf.Json, "greeting") orelse wharf.Json{}).raw;
    }
    pub fn kv_set() ![]const u8 {
        try wharf.kvSet("a", .{ .n = 1 });
        return "done";
    }
    pub fn kv_get() ![]const u8 {
        return (try wharf.kvGet(wharf.Json, "a")).?.raw;
    }
    pub fn kv_list() ![]const u8 {
        return std.mem.join(wharf.allocator, ",", try wharf.kvList(""));
    }
    pub fn kv_delete() ![]const u8 {
        try wharf.kvDelete("a");
        return "done";
    }
    pub fn http() ![]const u8 {
        const response = try wharf.http(.{
            .method = "POST",
            .url = "https://api.example.com/x",
            .headers = .of(.{ .Accept = "text/plain" }),
            .body = "h\xc3\xa9",
            .secrets = &.{"TOKEN"},
        });
        const one = response.headers.get("x-one").?.text().?;
        return wharf.print("{d} {s} {s} {}", .{ response.status, response.body, response.url, std.mem.eql(u8, one, "1") });
    }
    pub fn read_file() ![]const u8 {
        return wharf.readFile("a.txt");
    }
    pub fn read_file_at() ![]const u8 {
        const part = try wharf.readFileAt("a.txt", 2, 3); // from within a letter: no text
        const at = part.content;
        return wharf.print("[{d}, {d}, {d}] of {d}", .{ at[0], at[1], at[2], part.size });
    }
    pub fn list_dir() ![]const u8 {
        const entries = try wharf.listDir(".");
        return wharf.print("{s} {s}", .{ entries[0].name, entries[0].kind });
    }
    pub fn stat_file() ![]const u8 {
        const info = try wharf.statFile("a.txt");
        return wharf.print("{d} {d} {d}", .{ info.size, info.mode.len, info.mtime.len });
    }
    pub fn write_file() ![]const u8 {
        try wharf.writeFile("b.txt", "two\n");
        return "done";
    }
    pub fn call_tool() ![]const u8 {
        const result = try wharf.callTool("grep", .{ .pattern = "x" });
        return wharf.print("{s} {}{s}", .{ result.content, result.is_error, result.code });
    }
    pub fn exec() ![]const u8 {
        const command = try wharf.exec("make all", 1500);
        return wharf.print("{d} {s} {s}", .{ command.exit, command.stdout, command.stderr });
    }
    pub fn session_info() ![]const u8 {
        const session = try wharf.sessionInfo();
        return wharf.print("{s} {s} {s} {d}", .{ session.id, session.cwd, session.model, session.turn });
    }
    pub fn messages() ![]const u8 {
        const all = try wharf.messages(1);
        return wharf.print("{s} {s}", .{ all[0].role, all[0].content });
    }
    pub fn complete() ![]const u8 {
        const said = try wharf.complete("why?", 10);
        return wharf.print("{s} {d} {d}", .{ said.text, said.usage.input_tokens, said.usage.output_tokens });
    }
    pub fn @"env and emit"() ![]const u8 {
        try wharf.emit("toured", .{ 1, 2 });
        return (try wharf.env("LANG")).?;
    }
};
