//! The guest SDK for Zig: with it, a hook or a tool for Wharf is a plain function.
//!
//!     const std = @import("std");
//!     const wharf = @import("wharf");
//!
//!     comptime {
//!         wharf.hooks(.{ .before_execute_tool = judge });
//!     }
//!
//!     fn judge(call: wharf.BeforeExecuteTool) wharf.Verdict {
//!         if (std.mem.find(u8, call.argument("command"), "git push") != null)
//!             return .deny("pushing is the user's");
//!         return .none;
//!     }
//!
//! "wharf ext build" compiles the folder's main.zig (or its only .zig file) for
//! wasm32-freestanding and embeds extension.toml, which declares hooks and tools.
//!
//! Memory: what `allocator` hands out, and what the functions here return, is good
//! until the handler returns. What must last for the session goes into a global
//! variable, what must outlast it into `kvSet`. Where memory is used up the guest
//! traps, which is a failed call.
//!
//! A handler may return an error: that is a failure of the hook, or an error
//! result of the tool. Of what the host did not do, `Error`, the message is
//! the host's own; `problem` makes one with yours.

const std = @import("std");
const builtin = @import("builtin");

const is_guest = builtin.cpu.arch == .wasm32;

// ---- Memory ----

/// Memory for the time of a call. It is never refused: where there is no more, the
/// guest traps. Off Wasm, where handlers are tested by `zig test`, nothing is freed.
pub const allocator: std.mem.Allocator = if (is_guest) .{ .ptr = undefined, .vtable = &Arena.vtable } else std.heap.page_allocator;

/// One region at the end of the memory, which is taken back as a whole.
const Arena = struct {
    var base: usize = 0;
    var top: usize = 0;
    var end: usize = 0;

    const vtable: std.mem.Allocator.VTable = .{ .alloc = alloc, .resize = resize, .remap = remap, .free = free };

    /// Room for so many bytes, or null.
    fn take(length: usize, alignment: usize) ?usize {
        const at = std.mem.alignForward(usize, top, alignment);
        if (length > std.math.maxInt(usize) - at - 65535) return null;
        if (at + length <= end) {
            top = at + length;
            return at;
        }
        const more = (@max(at + length - end, length) + 65535) / 65536;
        const pages = @wasmMemoryGrow(0, more);
        if (pages < 0) return null;
        const begin = @as(usize, @intCast(pages)) * 65536;
        if (begin != end) { // somebody else has asked for memory: go on behind it
            base = begin;
            top = begin;
        }
        end = begin + more * 65536;
        return take(length, alignment);
    }

    fn alloc(_: *anyopaque, length: usize, alignment: std.mem.Alignment, _: usize) ?[*]u8 {
        return @ptrFromInt(take(length, alignment.toByteUnits()) orelse @panic("out of memory"));
    }

    fn resize(_: *anyopaque, memory: []u8, _: std.mem.Alignment, length: usize, _: usize) bool {
        const at = @intFromPtr(memory.ptr);
        if (at + memory.len != top) return length <= memory.len;
        if (length > end - at) return false;
        top = at + length;
        return true;
    }

    fn remap(context: *anyopaque, memory: []u8, alignment: std.mem.Alignment, length: usize, from: usize) ?[*]u8 {
        return if (resize(context, memory, alignment, length, from)) memory.ptr else null;
    }

    fn free(_: *anyopaque, memory: []u8, _: std.mem.Alignment, _: usize) void {
        const at = @intFromPtr(memory.ptr);
        if (at + memory.len == top) top = at;
    }
};

fn exportAlloc(length: usize) callconv(.c) usize {
    Arena.top = Arena.base;
    return Arena.take(@max(length, 1), 8) orelse 0;
}

comptime {
    if (is_guest) @export(&exportAlloc, .{ .name = "wharf_v1_alloc" });
}

/// Puts the reason of a trap into the session's log. "wharf ext build" sees to it that
/// it is the program's.
pub const panic = std.debug.FullPanic(struct {
    fn call(message: []const u8, _: ?usize) noreturn {
        import.log(@backingInt(Level.err), message.ptr, message.len);
        @trap();
    }
}.call);

// ---- Verdicts ----

/// What a hook answers, where its answer counts.
pub const Verdict = struct {
    decision: ?Decision = null,
    /// Reaches the model.
    reason: ?[]const u8 = null,
    replace: ?Replacement = null,
    /// The model is told.
    context: ?[]const u8 = null,
    /// With `continue`: what the model goes on with.
    message: ?[]const u8 = null,
    /// The hook failed; what follows is the manifest's on_failure.
    @"error": ?[]const u8 = null,

    /// No opinion.
    pub const none: Verdict = .{};

    fn isNone(verdict: Verdict) bool {
        inline for (comptime std.meta.fieldNames(Verdict)) |name| {
            if (@field(verdict, name) != null) return false;
        }
        return true;
    }

    /// A call may run. It skips a question to the user only where the user granted
    /// the extension `approve`.
    pub fn allow(reason: []const u8) Verdict {
        return .{ .decision = .allow, .reason = reason };
    }

    /// A tool call is refused.
    pub fn deny(reason: []const u8) Verdict {
        return .{ .decision = .deny, .reason = reason };
    }

    /// The user is to be asked about a tool call.
    pub fn ask(reason: []const u8) Verdict {
        return .{ .decision = .ask, .reason = reason };
    }

    /// A prompt is stopped, or the model gets reason in the place of a result.
    pub fn block(reason: []const u8) Verdict {
        return .{ .decision = .block, .reason = reason };
    }

    /// A request that failed is sent again.
    pub fn retry(reason: []const u8) Verdict {
        return .{ .decision = .retry, .reason = reason };
    }

    /// A request that failed is not sent again.
    pub fn giveUp(reason: []const u8) Verdict {
        return .{ .decision = .fail, .reason = reason };
    }

    /// The model goes on with a message where a turn is about to end.
    pub fn goOn(message: []const u8) Verdict {
        return .{ .decision = .@"continue", .message = message };
    }

    /// The model is told something besides.
    pub fn addContext(text: []const u8) Verdict {
        return .{ .context = text };
    }

    /// The hook could not judge.
    pub fn fail(text: []const u8) Verdict {
        return .{ .@"error" = text };
    }

    /// Another text stands in the place of a prompt or final answer.
    pub fn replaceText(text: []const u8) Verdict {
        return .{ .replace = .{ .text = text } };
    }

    /// The model gets another content of a result.
    pub fn replaceContent(content: []const u8) Verdict {
        return .{ .replace = .{ .content = content } };
    }

    /// A tool call gets other arguments: a value whose JSON is an object. They are
    /// checked and judged like the model's own.
    pub fn replaceArguments(arguments: anytype) Verdict {
        return .{ .replace = .{ .arguments = .of(arguments) } };
    }

    /// A tool call is answered in the tool's place.
    pub fn answerInPlace(content: []const u8) Verdict {
        return .{ .replace = .{ .result = .{ .content = content } } };
    }

    /// A request is sent with other parameters: a value whose JSON is an object.
    pub fn replaceParameters(parameters: anytype) Verdict {
        return .{ .replace = .{ .parameters = .of(parameters) } };
    }

    /// Tools are left out of a request.
    pub fn hideTools(names: []const []const u8) Verdict {
        return .{ .replace = .{ .hide_tools = names } };
    }

    /// A request is answered in the model's place.
    pub fn answerForModel(text: []const u8) Verdict {
        return .{ .replace = .{ .response = .{ .text = text } } };
    }
};

/// A decision; a point takes some of them.
pub const Decision = enum { allow, deny, ask, block, @"continue", retry, fail };

/// What a verdict puts in the place of what there is; a point takes some of it.
pub const Replacement = struct {
    text: ?[]const u8 = null,
    content: ?[]const u8 = null,
    arguments: ?Json = null,
    result: ?struct { content: []const u8 } = null,
    parameters: ?Json = null,
    hide_tools: ?[]const []const u8 = null,
    response: ?struct { text: []const u8 } = null,
};

// ---- JSON ----

/// A JSON value of any kind, as its text.
pub const Json = struct {
    raw: []const u8 = "null",

    /// The JSON of a value of Zig; `.{}` is an empty object.
    pub fn of(value: anytype) Json {
        return .{ .raw = if (@TypeOf(value) == @TypeOf(.{})) "{}" else encode(value) };
    }

    /// The value of a key, or null if this is no object or has no such key. Of a key
    /// that is there twice it is the last, as for most readers of JSON.
    pub fn get(json: Json, key: []const u8) ?Json {
        var found: ?Json = null;
        var all = json.members() catch return null;
        while (all.next() catch return null) |member| {
            if (std.mem.eql(u8, member.key, key)) found = member.value;
        }
        return found;
    }

    /// The text of a string, or null if this is none.
    pub fn text(json: Json) ?[]const u8 {
        return json.as([]const u8) catch null;
    }

    /// Whether the value is null.
    pub fn isNull(json: Json) bool {
        return std.mem.eql(u8, json.raw, "null");
    }

    /// The value as a type of Zig: a bool, a number, a `[]const u8`, an enum, a slice, an
    /// optional, `Json` itself, or a struct, which gets the keys of its fields. A field
    /// with a default may be absent; keys without a field are passed over.
    pub fn as(json: Json, comptime T: type) error{UnexpectedValue}!T {
        if (T == Json) return json;
        if (T == []const u8) return json.decodeString();
        return switch (@typeInfo(T)) {
            .bool => if (std.mem.eql(u8, json.raw, "true")) true else if (std.mem.eql(u8, json.raw, "false")) false else error.UnexpectedValue,
            .int => std.fmt.parseInt(T, json.raw, 10) catch error.UnexpectedValue,
            .float => @floatCast(try json.decodeNumber()),
            .optional => |optional| if (json.isNull()) null else try json.as(optional.child),
            .@"enum" => std.meta.stringToEnum(T, try json.decodeString()) orelse error.UnexpectedValue,
            .pointer => |pointer| json.decodeList(pointer.child),
            .@"struct" => json.decodeStruct(T),
            else => @compileError(@typeName(T) ++ " cannot be read from JSON"),
        };
    }

    fn decodeString(json: Json) error{UnexpectedValue}![]const u8 {
        var scanner: std.json.Scanner = .initCompleteInput(allocator, json.raw);
        return switch (scanner.nextAlloc(allocator, .alloc_if_needed) catch return error.UnexpectedValue) {
            inline .string, .allocated_string => |decoded| decoded,
            else => error.UnexpectedValue,
        };
    }

    /// A number to some 15 digits. The standard library's way is exact, and brings 20 KB along.
    fn decodeNumber(json: Json) error{UnexpectedValue}!f64 {
        var scanner: std.json.Scanner = .initCompleteInput(allocator, json.raw);
        const written = switch (scanner.next() catch return error.UnexpectedValue) {
            .number => |number| number,
            else => return error.UnexpectedValue,
        };
        const e = std.mem.findAny(u8, written, "eE") orelse written.len;
        var digits: u64 = 0;
        var power: i64 = 0;
        var fraction = false;
        for (written[0..e]) |c| switch (c) {
            '.' => fraction = true,
            '0'...'9' => if (digits < 100_000_000_000_000_000) {
                digits = digits * 10 + (c - '0');
                power -= @intFromBool(fraction);
            } else {
                power += @intFromBool(!fraction);
            },
            else => {}, // a sign
        };
        if (e < written.len) {
            const behind = std.mem.trimStart(u8, written[e + 1 ..], "+");
            power +|= std.fmt.parseInt(i32, behind, 10) catch if (behind[0] == '-') -100_000 else 100_000;
        }
        var number: f64 = @floatFromInt(digits);
        while (power > 0 and number > 0 and number < std.math.inf(f64)) : (power -= 1) number *= 10;
        while (power < 0 and number > 0) : (power += 1) number /= 10;
        return if (written[0] == '-') -number else number;
    }

    fn decodeList(json: Json, comptime Item: type) error{UnexpectedValue}![]const Item {
        var list: std.ArrayList(Item) = .empty;
        var all = try json.items();
        while (try all.next()) |item| list.append(allocator, try item.as(Item)) catch unreachable; // see allocator
        return list.items;
    }

    fn decodeStruct(json: Json, comptime T: type) error{UnexpectedValue}!T {
        const names = comptime std.meta.fieldNames(T);
        var values: [names.len]?Json = @splat(null);
        var all = try json.members();
        while (try all.next()) |member| {
            inline for (names, &values) |name, *value| {
                if (std.mem.eql(u8, name, member.key)) value.* = member.value;
            }
        }
        var result: T = undefined;
        inline for (names, &values) |name, value| {
            const Field = @FieldType(T, name);
            if (value) |v| {
                @field(result, name) = try v.as(Field);
            } else if (comptime defaultOf(T, name)) |default| {
                @field(result, name) = default;
            } else if (@typeInfo(Field) == .optional) {
                @field(result, name) = null;
            } else return error.UnexpectedValue;
        }
        return result;
    }

    /// The items of a list.
    pub fn items(json: Json) error{UnexpectedValue}!Items {
        return .{ .scanner = try json.enter(.array_begin) };
    }

    /// The members of an object.
    pub fn members(json: Json) error{UnexpectedValue}!Members {
        return .{ .scanner = try json.enter(.object_begin) };
    }

    fn enter(json: Json, begin: std.json.TokenType) error{UnexpectedValue}!std.json.Scanner {
        var scanner: std.json.Scanner = .initCompleteInput(allocator, json.raw);
        if ((scanner.peekNextTokenType() catch return error.UnexpectedValue) != begin) return error.UnexpectedValue;
        _ = scanner.next() catch return error.UnexpectedValue;
        return scanner;
    }

    pub const Items = struct {
        scanner: std.json.Scanner,

        pub fn next(all: *Items) error{UnexpectedValue}!?Json {
            if ((all.scanner.peekNextTokenType() catch return error.UnexpectedValue) == .array_end) return null;
            return try skip(&all.scanner);
        }
    };

    pub const Members = struct {
        scanner: std.json.Scanner,

        pub fn next(all: *Members) error{UnexpectedValue}!?Member {
            const key = switch (all.scanner.nextAlloc(allocator, .alloc_if_needed) catch return error.UnexpectedValue) {
                inline .string, .allocated_string => |name| name,
                else => return null,
            };
            return .{ .key = key, .value = try skip(&all.scanner) };
        }
    };

    pub const Member = struct { key: []const u8, value: Json };

    fn skip(scanner: *std.json.Scanner) error{UnexpectedValue}!Json {
        _ = scanner.peekNextTokenType() catch return error.UnexpectedValue;
        const start = scanner.cursor;
        scanner.skipValue() catch return error.UnexpectedValue;
        return .{ .raw = scanner.input[start..scanner.cursor] };
    }

    pub fn jsonStringify(json: Json, to: anytype) !void {
        try to.beginWriteRaw();
        try to.writer.writeAll(json.raw);
        to.endWriteRaw();
    }
};

/// The default of a field, or null if it has none.
fn defaultOf(comptime T: type, comptime name: []const u8) ?@FieldType(T, name) {
    const info = @typeInfo(T).@"struct";
    for (info.field_names, info.field_attrs) |field, attributes| {
        if (std.mem.eql(u8, field, name)) return attributes.defaultValue(@FieldType(T, name));
    }
    unreachable;
}

fn encode(value: anytype) []const u8 {
    return std.json.Stringify.valueAlloc(allocator, value, .{ .emit_null_optional_fields = false }) catch unreachable; // see allocator
}

/// Makes a text, like `std.fmt.allocPrint`.
pub fn print(comptime format: []const u8, args: anytype) []const u8 {
    return std.fmt.allocPrint(allocator, format, args) catch unreachable; // see allocator
}

/// Makes a text of bytes: what is no UTF-8, which no answer may hold, becomes U+FFFD.
pub fn toText(bytes: []const u8) []const u8 {
    if (std.unicode.utf8ValidateSlice(bytes)) return bytes;
    return print("{f}", .{std.unicode.fmtUtf8(bytes)});
}

// ---- The host: what it does for a guest ----

const import = if (is_guest) struct {
    extern "wharf_v1" fn call(op: [*]const u8, op_length: usize, request: [*]const u8, request_length: usize) u64;
    extern "wharf_v1" fn read(to: [*]u8) void;
    extern "wharf_v1" fn log(level: u32, text: [*]const u8, length: usize) void;
} else struct { // for tests off Wasm: there is no host
    fn call(_: [*]const u8, _: usize, _: [*]const u8, _: usize) u64 {
        return 5 << 32;
    }
    fn read(_: [*]u8) void {}
    fn log(_: u32, _: [*]const u8, _: usize) void {}
};

/// How grave a line of the log is.
pub const Level = enum(u32) { debug, info, warning, err };

/// Writes a line to the session's log.
pub fn log(level: Level, comptime format: []const u8, args: anytype) void {
    const text = print(format, args);
    import.log(@backingInt(level), text.ptr, text.len);
}

/// What the host did not do; `lastMessage` says why, and what to do about it.
pub const Error = error{
    /// The manifest does not ask for it, or the user did not grant it.
    NotGranted,
    /// It was granted, and refused by another extension, the permission rules or the sandbox.
    Denied,
    /// A request that the operation does not take.
    BadRequest,
    /// It was tried and did not work.
    Failed,
    OverLimit,
    /// This host does not have the operation.
    UnknownOperation,
    /// The value there is of another type than asked for.
    UnexpectedValue,
};

var last_message: []const u8 = "";

/// The message of the last `Error`, until the handler returns.
pub fn lastMessage() []const u8 {
    return last_message;
}

/// An error with a message of one's own, which `lastMessage` then is:
/// `return wharf.problem("there is no such column");`
pub fn problem(message: []const u8) error{Failed} {
    last_message = message;
    return error.Failed;
}

/// Runs a host operation by its name, as ABI.md has it: request is a value whose JSON is
/// an object. The functions below do so for those that there are.
pub fn operate(comptime Response: type, op: []const u8, request: anytype) Error!Response {
    const given = Json.of(request).raw;
    const result = import.call(op.ptr, op.len, given.ptr, given.len);
    const response = allocator.alloc(u8, @as(u32, @truncate(result))) catch unreachable; // see allocator
    if (response.len > 0) import.read(response.ptr);
    const json: Json = .{ .raw = response };
    const status = result >> 32;
    if (status == 0) return json.as(Response) catch unexpected(op);
    const refusal = json.as(Refusal) catch Refusal{};
    last_message = refusal.message;
    return switch (status) {
        1 => if (std.mem.eql(u8, refusal.code, "DENIED")) error.Denied else error.NotGranted,
        2 => error.BadRequest,
        3 => error.Failed,
        4 => error.OverLimit,
        else => error.UnknownOperation,
    };
}

const Refusal = struct { code: []const u8 = "", message: []const u8 = "" };

fn unexpected(what: []const u8) Error {
    last_message = print("{s}: the value is of another type than asked for", .{what});
    return error.UnexpectedValue;
}

fn Value(comptime T: type) type {
    return struct { value: ?T = null };
}

/// A value of the user's configuration, from [extensions.NAME.config]; null if absent.
pub fn config(comptime T: type, key: []const u8) Error!?T {
    const found = try operate(Value(Json), "config.get", .{ .key = key });
    return if (found.value) |value| value.as(T) catch unexpected(print("config.get \"{s}\"", .{key})) else null;
}

/// What `kvSet` kept; null if there is nothing. The manifest must ask for kv, and the
/// user grant it.
pub fn kvGet(comptime T: type, key: []const u8) Error!?T {
    const found = try operate(Value(Json), "kv.get", .{ .key = key });
    return if (found.value) |value| value.as(T) catch unexpected(print("kv.get \"{s}\"", .{key})) else null;
}

/// Keeps a value that JSON can hold, for this and later sessions.
pub fn kvSet(key: []const u8, value: anytype) Error!void {
    _ = try operate(Json, "kv.set", .{ .key = key, .value = value });
}

/// Takes a key away; it is no error if there was none.
pub fn kvDelete(key: []const u8) Error!void {
    _ = try operate(Json, "kv.delete", .{ .key = key });
}

/// The keys that begin with a prefix, sorted.
pub fn kvList(prefix: []const u8) Error![]const []const u8 {
    return (try operate(struct { keys: []const []const u8 }, "kv.list", .{ .prefix = prefix })).keys;
}

/// A request that the host makes for the extension.
pub const HttpRequest = struct {
    method: []const u8 = "GET",
    url: []const u8,
    /// An object of texts: `.of(.{ .Accept = "text/plain" })`.
    headers: ?Json = null,
    body: []const u8 = "",
    /// Names of secrets that the manifest binds to the URL's host.
    secrets: []const []const u8 = &.{},
};

/// The answer to an `HttpRequest`.
pub const HttpResponse = struct {
    status: i64,
    /// An object of texts, by name in lower case.
    headers: Json,
    body: []const u8,
    /// Of the last hop, where there were redirects.
    url: []const u8,
};

/// Makes a request. The manifest must ask for http, and the user grant it; a status such
/// as 404 is no error.
pub fn http(request: HttpRequest) Error!HttpResponse {
    const got = try operate(struct {
        status: i64 = 0,
        headers: Json = .{},
        body: []const u8 = "",
        body_base64: ?[]const u8 = null,
        url: []const u8 = "",
    }, "http.fetch", .{
        .method = request.method,
        .url = request.url,
        .headers = request.headers,
        .body_base64 = if (request.body.len > 0) toBase64(request.body) else null,
        .secrets = request.secrets,
    });
    return .{ .status = got.status, .headers = got.headers, .body = try fromBase64("http.fetch", got.body_base64, got.body), .url = got.url };
}

fn toBase64(bytes: []const u8) ?[]const u8 {
    const encoder = std.base64.standard.Encoder;
    return encoder.encode(allocator.alloc(u8, encoder.calcSize(bytes.len)) catch unreachable, bytes); // see allocator
}

fn fromBase64(op: []const u8, encoded: ?[]const u8, text: []const u8) Error![]const u8 {
    const decoder = std.base64.standard.Decoder;
    const size = decoder.calcSizeForSlice(encoded orelse return text) catch return unexpected(op);
    const bytes = allocator.alloc(u8, size) catch unreachable; // see allocator
    decoder.decode(bytes, encoded.?) catch return unexpected(op);
    return bytes;
}

/// Reads a file whole. Paths are relative to the workspace, here and below; the manifest
/// must ask for fs, and the user grant it.
pub fn readFile(path: []const u8) Error![]const u8 {
    var all: std.ArrayList(u8) = .empty;
    while (true) {
        const part = try readFileAt(path, @intCast(all.items.len), 0);
        all.appendSlice(allocator, part.content) catch unreachable; // see allocator
        if (part.content.len == 0 or all.items.len >= part.size) return all.items;
    }
}

/// A part of a file, and how large the file is.
pub const Part = struct { content: []const u8, size: i64 };

/// Reads up to limit bytes of a file, 0 for as many as one call gives.
pub fn readFileAt(path: []const u8, offset: i64, limit: i64) Error!Part {
    const got = try operate(struct { content: []const u8 = "", content_base64: ?[]const u8 = null, size: i64 = 0 }, "fs.read", .{ .path = path, .offset = offset, .limit = limit });
    return .{ .content = try fromBase64("fs.read", got.content_base64, got.content), .size = got.size };
}

/// A name in a folder; kind is file, folder, link or other.
pub const Entry = struct { name: []const u8, kind: []const u8 };

/// Lists a folder, sorted by name.
pub fn listDir(path: []const u8) Error![]const Entry {
    return (try operate(struct { entries: []const Entry }, "fs.list", .{ .path = path })).entries;
}

/// Describes a file or folder: mode is such as -rw-r--r--, mtime such as 2026-11-30T09:00:00Z.
pub const FileInfo = struct { size: i64, mode: []const u8, mtime: []const u8 };

/// Describes what a path leads to.
pub fn statFile(path: []const u8) Error!FileInfo {
    return operate(FileInfo, "fs.stat", .{ .path = path });
}

/// Puts a text in the place of a file, whole or not at all, and makes the folders above it.
pub fn writeFile(path: []const u8, content: []const u8) Error!void {
    _ = try operate(Json, "fs.write", .{ .path = path, .content = content });
}

/// The result of a tool call.
pub const ToolResult = struct { content: []const u8 = "", is_error: bool = false, code: []const u8 = "" };

/// Calls a tool of the session with arguments, a value whose JSON is an object. It is judged
/// like a call of the model's. A failure of the tool's own is a result with is_error. The
/// manifest must ask for the tool under tools, and the user grant it.
pub fn callTool(name: []const u8, arguments: anytype) Error!ToolResult {
    return operate(ToolResult, "tool.call", .{ .name = name, .arguments = Json.of(arguments) });
}

/// How a command ended; exit is 0 if it did what it should.
pub const Output = struct { exit: i64, stdout: []const u8, stderr: []const u8 };

/// Runs one simple command in the session's sandbox: no pipes, variables or globs. 0 for
/// timeout_ms is the limit of the tool exec. The manifest must ask for exec, and the user
/// grant it.
pub fn exec(command: []const u8, timeout_ms: i64) Error!Output {
    return operate(Output, "exec.run", .{ .command = command, .timeout_ms = timeout_ms });
}

/// The session that a guest runs in.
pub const Session = struct { id: []const u8, cwd: []const u8, model: []const u8, turn: i64 };

/// Describes the session. The manifest must ask for session, and the user grant it.
pub fn sessionInfo() Error!Session {
    return operate(Session, "session.info", .{});
}

/// A message as the model gets to see it.
pub const Message = struct {
    /// user, assistant or tool
    role: []const u8,
    content: []const u8 = "",
    /// Of the assistant; arguments are as the model wrote them, not necessarily JSON.
    calls: []const struct { call_id: []const u8, name: []const u8, arguments: []const u8 } = &.{},
    /// The call that a tool's message answers.
    call_id: []const u8 = "",
    /// Of a tool's message.
    is_error: bool = false,
};

/// The last messages of the session, 0 for all, the oldest first; where there is no room for
/// so many, fewer. The manifest must ask for session, and the user grant it.
pub fn messages(last: i64) Error![]const Message {
    return (try operate(struct { messages: []const Message }, "session.messages", .{ .last = last })).messages;
}

/// Counts tokens.
pub const Usage = struct {
    input_tokens: i64 = 0,
    output_tokens: i64 = 0,
    /// The part of input_tokens that came out of a cache.
    cache_read_input_tokens: i64 = 0,
    /// The part of output_tokens that was reasoning.
    reasoning_tokens: i64 = 0,
};

/// What the model said to `complete`, and what that used.
pub const Completion = struct { text: []const u8, usage: Usage = .{} };

/// Asks the session's model one question. max_tokens is of the answer; 0 is 1024. The manifest
/// must ask for llm, and the user grant it.
pub fn complete(prompt: []const u8, max_tokens: i64) Error!Completion {
    return operate(Completion, "llm.complete", .{ .prompt = prompt, .max_tokens = max_tokens });
}

/// A variable of Wharf's environment; null if it is not set. The manifest must ask for it under
/// env, and the user grant it.
pub fn env(name: []const u8) Error!?[]const u8 {
    return (try operate(Value([]const u8), "env.get", .{ .name = name })).value;
}

/// Writes an event of the extension's own to the session's log. The manifest must ask for events,
/// and the user grant it.
pub fn emit(name: []const u8, data: anytype) Error!void {
    _ = try operate(Json, "event.emit", .{ .name = name, .data = data });
}

// ---- Tools ----

/// A tool's result for the model. A tool may also return a text.
pub const Result = struct {
    content: ?[]const u8 = null,
    /// In its place: MCP content blocks.
    blocks: ?Json = null,
    /// For programs; its JSON is the content where there is none.
    structured: ?Json = null,
    /// The call failed, and content says why.
    is_error: bool = false,

    pub fn jsonStringify(result: Result, to: anytype) !void {
        try to.write(.{
            .content = result.blocks orelse if (result.content) |text| Json.of(text) else if (result.structured == null) Json.of("") else null,
            .structured = result.structured,
            .is_error = if (result.is_error) true else null,
        });
    }
};

/// Registers the tools of the manifest, once: each field is named as one, and is the function
/// that runs it. It takes a struct with the arguments, which meet the input schema, and returns
/// a text, a `Result`, or `Json`, which is the answer as it is; also with an error.
pub fn tools(comptime all: anytype) void {
    const Handler = struct {
        fn run(at: [*]const u8, length: usize) callconv(.c) u64 {
            beginCall(at, length);
            const call = (Json{ .raw = payload }).as(struct { name: []const u8, arguments: Json }) catch
                return failure("the payload is no tool call");
            inline for (comptime std.meta.fieldNames(@TypeOf(all))) |name| {
                if (std.mem.eql(u8, name, call.name)) return runTool(@field(all, name), call.arguments);
            }
            return failure(print("there is no tool {s} in the code: register it by wharf.tools", .{call.name}));
        }
    };
    @export(&Handler.run, .{ .name = "call_tool" });
}

fn runTool(comptime run: anytype, arguments: Json) u64 {
    const Args = @typeInfo(@TypeOf(run)).@"fn".param_types[0].?;
    const result = unwrap(run(arguments.as(Args) catch return failure("the arguments are of other types than the tool takes"))) catch |err| return failure(reasonOf(err));
    return switch (@TypeOf(result)) {
        Json, Result => answer(result),
        else => answer(Result{ .content = result }),
    };
}

// ---- Hooks ----

/// Handles hook points: each field is named as one, and is the function that handles it. It takes
/// the point's payload, or a text at the points with plain text. Where the answer counts it
/// returns a `Verdict`, else nothing; also with an error.
pub fn hooks(comptime handlers: anytype) void {
    for (std.meta.fieldNames(@TypeOf(handlers))) |name| {
        if (!@hasDecl(points, name)) @compileError("there is no hook point " ++ name ++ ": one of a later release than this SDK is handled by wharf.anyHook");
        exportHook(name, @field(points, name), @field(handlers, name));
    }
}

/// Handles a point by its name, such as one of a later release. The function takes the payload
/// as the host gave it, and returns a `Verdict`, nothing, or `Json`, which is the answer as it is.
pub fn anyHook(comptime name: []const u8, comptime handler: anytype) void {
    exportHook(name, .{ .Payload = []const u8, .judges = true }, handler);
}

/// The payload of the handler that is running, as the host gave it.
pub var payload: []const u8 = "";

fn beginCall(at: [*]const u8, length: usize) void {
    if (length == 0) Arena.top = Arena.base; // the host asked for no room
    payload = at[0..length];
    last_message = "";
}

const Point = struct { Payload: type, judges: bool };

fn exportHook(comptime name: []const u8, comptime point: Point, comptime handler: anytype) void {
    const Handler = struct {
        fn run(at: [*]const u8, length: usize) callconv(.c) u64 {
            beginCall(at, length);
            return judge(point, handler);
        }
    };
    @export(&Handler.run, .{ .name = name });
}

fn judge(comptime point: Point, comptime handler: anytype) u64 {
    const given = if (point.Payload == []const u8) payload else (Json{ .raw = payload }).as(point.Payload) catch
        return failure("the payload is not as this SDK knows it");
    const said = unwrap(handler(given)) catch |err| return failure(reasonOf(err));
    if (@TypeOf(said) == void) return 0;
    if (!point.judges) @compileError("nothing can be answered at this point: return void");
    return if (@TypeOf(said) == Verdict and said.isNone()) 0 else answer(said);
}

/// What a handler returned: its value, or its error, if it can have one.
fn unwrap(returned: anytype) anyerror!Returned(@TypeOf(returned)) {
    return returned;
}

fn Returned(comptime T: type) type {
    return switch (@typeInfo(T)) {
        .error_union => |info| info.payload,
        else => T,
    };
}

/// What the model or the log is told of an error: the host's own message, if it is the host's.
fn reasonOf(err: anyerror) []const u8 {
    inline for (comptime std.meta.fieldNames(Error)) |name| {
        if (err == @field(anyerror, name) and last_message.len > 0) return last_message;
    }
    return @errorName(err);
}

fn failure(text: []const u8) u64 {
    return answer(.{ .@"error" = text });
}

fn answer(value: anytype) u64 {
    const text = if (@TypeOf(value) == Json) value.raw else encode(value);
    return if (text.len == 0) 0 else @as(u64, @intFromPtr(text.ptr)) << 32 | text.len;
}

/// A tool call, in a list of them.
pub const ToolCall = struct {
    call_id: []const u8 = "",
    tool: []const u8 = "",
    arguments: Json = .{},

    /// An argument if it is a text, or "".
    pub fn argument(call: ToolCall, name: []const u8) []const u8 {
        return textOf(call.arguments, name);
    }
};

/// A tool call with its result, in a list of them.
pub const DoneCall = struct {
    call_id: []const u8 = "",
    tool: []const u8 = "",
    arguments: Json = .{},
    result: ToolResult = .{},
};

/// What a turn may use up; 0 is not limited.
pub const Budget = struct { tokens: i64 = 0, cost: f64 = 0, time_ms: i64 = 0 };

fn textOf(object: Json, name: []const u8) []const u8 {
    return (object.get(name) orelse return "").text() orelse "";
}

// generated: hook points
/// session_start: a session began or was resumed.
/// It may answer `addContext`.
pub const SessionStart = struct {
    session_id: []const u8 = "",
    turn: i64 = 0,
    step: i64 = 0,
    /// new, resume or fork
    source: []const u8 = "",
};

/// user_prompt_submit: a prompt arrived, before the model sees it.
/// It may answer `block`, `replaceText`, `addContext`.
pub const UserPromptSubmit = struct {
    session_id: []const u8 = "",
    turn: i64 = 0,
    step: i64 = 0,
    /// the prompt
    text: []const u8 = "",
};

/// before_run: a turn is about to ask the model for the first time.
/// It may answer `block`, `addContext`.
pub const BeforeRun = struct {
    session_id: []const u8 = "",
    turn: i64 = 0,
    step: i64 = 0,
    /// the prompt
    text: []const u8 = "",
};

/// before_iteration: a step begins.
/// It may answer `block`, `addContext`.
pub const BeforeIteration = struct {
    session_id: []const u8 = "",
    turn: i64 = 0,
    step: i64 = 0,
    /// steps that were taken
    steps: i64 = 0,
    /// steps that there may be
    max_steps: i64 = 0,
    /// tokens that the turn used: input_tokens, output_tokens, cache_read_input_tokens, reasoning_tokens
    usage: Usage = .{},
    /// what the turn cost so far; 0 where there are no prices
    cost: f64 = 0,
    /// what is limited of tokens, cost and time_ms
    budget: Budget = .{},
};

/// before_request: a request is about to be sent to the model.
/// It may answer `replaceParameters`, `hideTools`, `answerForModel`.
pub const BeforeRequest = struct {
    session_id: []const u8 = "",
    turn: i64 = 0,
    step: i64 = 0,
    /// the model, by the server's name for it
    model: []const u8 = "",
    /// of the request: an object, or null
    parameters: Json = .{},
    /// the names of the tools on offer
    tools: []const []const u8 = &.{},
};

/// on_request_error: a request to the model failed.
/// It may answer `retry`, `giveUp`.
pub const OnRequestError = struct {
    session_id: []const u8 = "",
    turn: i64 = 0,
    step: i64 = 0,
    /// of the failure: unreachable, timeout, auth, invalid, rate_limit, quota, server, malformed, overflow or script
    class: []const u8 = "",
    /// counts from 1
    attempt: i64 = 0,
    /// what the server asks to wait; 0 if it does not say
    retry_after_ms: i64 = 0,
    /// what happened, and why
    @"error": []const u8 = "",
};

/// emit_reasoning_end: the reasoning of a reply is whole.
pub const EmitReasoningEnd = struct {
    session_id: []const u8 = "",
    turn: i64 = 0,
    step: i64 = 0,
    /// whether the turn asks the model again
    resuming: bool = false,
};

/// on_stream_end: the text of a reply is whole.
pub const OnStreamEnd = struct {
    session_id: []const u8 = "",
    turn: i64 = 0,
    step: i64 = 0,
    /// whether the turn asks the model again
    resuming: bool = false,
};

/// on_provider_tool_event: a tool that the provider itself runs reported something.
pub const OnProviderToolEvent = struct {
    session_id: []const u8 = "",
    turn: i64 = 0,
    step: i64 = 0,
    /// as the provider sent it
    event: Json = .{},
};

/// before_execute_tools: a reply's tool calls are about to be judged and run.
/// It may answer `block`.
pub const BeforeExecuteTools = struct {
    session_id: []const u8 = "",
    turn: i64 = 0,
    step: i64 = 0,
    /// each with call_id, tool and arguments
    calls: []const ToolCall = &.{},
};

/// before_execute_tool: a tool call is about to be judged and run.
/// It may answer `allow`, `deny`, `ask`, `replaceArguments`, `answerInPlace`, `addContext`.
pub const BeforeExecuteTool = struct {
    session_id: []const u8 = "",
    turn: i64 = 0,
    step: i64 = 0,
    /// the call's name
    call_id: []const u8 = "",
    /// the tool's name
    tool: []const u8 = "",
    /// of the call
    arguments: Json = .{},

    /// An argument if it is a text, or "".
    pub fn argument(call: @This(), name: []const u8) []const u8 {
        return textOf(call.arguments, name);
    }
};

/// permission_request: the user is about to be asked about a call.
/// It may answer `allow`, `deny`.
pub const PermissionRequest = struct {
    session_id: []const u8 = "",
    turn: i64 = 0,
    step: i64 = 0,
    /// the call's name
    call_id: []const u8 = "",
    /// the tool's name
    tool: []const u8 = "",
    /// of the call
    arguments: Json = .{},
    /// by which the user is asked
    rule: []const u8 = "",

    /// An argument if it is a text, or "".
    pub fn argument(call: @This(), name: []const u8) []const u8 {
        return textOf(call.arguments, name);
    }
};

/// after_execute_tool: a tool call has its result, before the model sees it.
/// It may answer `block`, `replaceContent`, `addContext`.
pub const AfterExecuteTool = struct {
    session_id: []const u8 = "",
    turn: i64 = 0,
    step: i64 = 0,
    /// the call's name
    call_id: []const u8 = "",
    /// the tool's name
    tool: []const u8 = "",
    /// of the call
    arguments: Json = .{},
    /// content, is_error, and a code if it failed
    result: ToolResult = .{},

    /// An argument if it is a text, or "".
    pub fn argument(call: @This(), name: []const u8) []const u8 {
        return textOf(call.arguments, name);
    }
};

/// on_execute_tool_error: a tool call failed, before the model sees how.
/// It may answer `block`, `replaceContent`, `addContext`.
pub const OnExecuteToolError = struct {
    session_id: []const u8 = "",
    turn: i64 = 0,
    step: i64 = 0,
    /// the call's name
    call_id: []const u8 = "",
    /// the tool's name
    tool: []const u8 = "",
    /// of the call
    arguments: Json = .{},
    /// what happened, and why
    @"error": []const u8 = "",

    /// An argument if it is a text, or "".
    pub fn argument(call: @This(), name: []const u8) []const u8 {
        return textOf(call.arguments, name);
    }
};

/// after_iteration: a step is over.
pub const AfterIteration = struct {
    session_id: []const u8 = "",
    turn: i64 = 0,
    step: i64 = 0,
    /// each with call_id, tool, arguments and result
    calls: []const DoneCall = &.{},
};

/// subagent_start: a subagent is about to begin.
/// It may answer `block`, `addContext`.
pub const SubagentStart = struct {
    session_id: []const u8 = "",
    turn: i64 = 0,
    step: i64 = 0,
    /// what the subagent is to do
    task: []const u8 = "",
};

/// subagent_stop: a subagent is about to end.
/// It may answer `goOn`.
pub const SubagentStop = struct {
    session_id: []const u8 = "",
    turn: i64 = 0,
    step: i64 = 0,
    /// what the subagent found
    result: []const u8 = "",
};

/// before_compact: the history is about to be summarized.
/// It may answer `block`.
pub const BeforeCompact = struct {
    session_id: []const u8 = "",
    turn: i64 = 0,
    step: i64 = 0,
    /// messages that the summary will stand for
    messages: i64 = 0,
    /// tokens of the whole history, about
    tokens: i64 = 0,
};

/// after_compact: the history was summarized.
pub const AfterCompact = struct {
    session_id: []const u8 = "",
    turn: i64 = 0,
    step: i64 = 0,
    /// what stands for the older messages now
    summary: []const u8 = "",
};

/// notification: the user is told something: a question about a call, a retry, another model.
pub const Notification = struct {
    session_id: []const u8 = "",
    turn: i64 = 0,
    step: i64 = 0,
    /// question, retry or fallback
    kind: []const u8 = "",
    /// what the user is told
    text: []const u8 = "",
};

/// turn_stopping: the model gave what looks like its final answer.
/// It may answer `goOn`.
pub const TurnStopping = struct {
    session_id: []const u8 = "",
    turn: i64 = 0,
    step: i64 = 0,
    /// what looks like the final answer
    text: []const u8 = "",
};

/// finalize_content: the final text is known, before anybody sees it.
/// It may answer `replaceText`.
pub const FinalizeContent = struct {
    session_id: []const u8 = "",
    turn: i64 = 0,
    step: i64 = 0,
    /// the final answer
    text: []const u8 = "",
};

/// after_run: the turn has its answer.
pub const AfterRun = struct {
    session_id: []const u8 = "",
    turn: i64 = 0,
    step: i64 = 0,
    /// the answer
    text: []const u8 = "",
    /// tokens that the turn used: input_tokens, output_tokens, cache_read_input_tokens, reasoning_tokens
    usage: Usage = .{},
};

/// on_error: the turn ends without an answer.
pub const OnError = struct {
    session_id: []const u8 = "",
    turn: i64 = 0,
    step: i64 = 0,
    /// what happened, and why
    @"error": []const u8 = "",
};

/// on_finally: the turn is over, however it ended.
pub const OnFinally = struct {
    session_id: []const u8 = "",
    turn: i64 = 0,
    step: i64 = 0,
    /// why the turn ended: completed, max_steps, …
    reason: []const u8 = "",
    /// the answer, or what there was of it
    text: []const u8 = "",
};

/// session_end: the session is left.
pub const SessionEnd = struct {
    session_id: []const u8 = "",
    turn: i64 = 0,
    step: i64 = 0,
    /// why the session is left
    reason: []const u8 = "",
};

const points = struct {
    pub const session_start: Point = .{ .Payload = SessionStart, .judges = true };
    pub const user_prompt_submit: Point = .{ .Payload = UserPromptSubmit, .judges = true };
    pub const before_run: Point = .{ .Payload = BeforeRun, .judges = true };
    pub const before_iteration: Point = .{ .Payload = BeforeIteration, .judges = true };
    pub const before_request: Point = .{ .Payload = BeforeRequest, .judges = true };
    pub const on_request_error: Point = .{ .Payload = OnRequestError, .judges = true };
    pub const emit_reasoning: Point = .{ .Payload = []const u8, .judges = false };
    pub const emit_reasoning_end: Point = .{ .Payload = EmitReasoningEnd, .judges = false };
    pub const on_stream: Point = .{ .Payload = []const u8, .judges = false };
    pub const on_stream_end: Point = .{ .Payload = OnStreamEnd, .judges = false };
    pub const on_provider_tool_event: Point = .{ .Payload = OnProviderToolEvent, .judges = false };
    pub const before_execute_tools: Point = .{ .Payload = BeforeExecuteTools, .judges = true };
    pub const before_execute_tool: Point = .{ .Payload = BeforeExecuteTool, .judges = true };
    pub const permission_request: Point = .{ .Payload = PermissionRequest, .judges = true };
    pub const after_execute_tool: Point = .{ .Payload = AfterExecuteTool, .judges = true };
    pub const on_execute_tool_error: Point = .{ .Payload = OnExecuteToolError, .judges = true };
    pub const after_iteration: Point = .{ .Payload = AfterIteration, .judges = false };
    pub const subagent_start: Point = .{ .Payload = SubagentStart, .judges = true };
    pub const subagent_stop: Point = .{ .Payload = SubagentStop, .judges = true };
    pub const before_compact: Point = .{ .Payload = BeforeCompact, .judges = true };
    pub const after_compact: Point = .{ .Payload = AfterCompact, .judges = false };
    pub const notification: Point = .{ .Payload = Notification, .judges = false };
    pub const turn_stopping: Point = .{ .Payload = TurnStopping, .judges = true };
    pub const finalize_content: Point = .{ .Payload = FinalizeContent, .judges = true };
    pub const after_run: Point = .{ .Payload = AfterRun, .judges = false };
    pub const on_error: Point = .{ .Payload = OnError, .judges = false };
    pub const on_finally: Point = .{ .Payload = OnFinally, .judges = false };
    pub const session_end: Point = .{ .Payload = SessionEnd, .judges = false };
};
// end
