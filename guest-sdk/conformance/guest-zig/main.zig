//! Obeys the scripts of the conformance vectors with the SDK for Zig. The last
//! answer of a script counts.

const std = @import("std");
const wharf = @import("wharf");
const Json = wharf.Json;

comptime {
    // Of some of these points the functions take no answer, and the vectors try what
    // one does.
    for (.{
        .{ "session_start", wharf.SessionStart },
        .{ "user_prompt_submit", wharf.UserPromptSubmit },
        .{ "before_run", wharf.BeforeRun },
        .{ "before_iteration", wharf.BeforeIteration },
        .{ "before_request", wharf.BeforeRequest },
        .{ "on_request_error", wharf.OnRequestError },
        .{ "emit_reasoning", []const u8 },
        .{ "emit_reasoning_end", wharf.EmitReasoningEnd },
        .{ "on_stream", []const u8 },
        .{ "on_stream_end", wharf.OnStreamEnd },
        .{ "on_provider_tool_event", wharf.OnProviderToolEvent },
        .{ "before_execute_tools", wharf.BeforeExecuteTools },
        .{ "before_execute_tool", wharf.BeforeExecuteTool },
        .{ "permission_request", wharf.PermissionRequest },
        .{ "after_execute_tool", wharf.AfterExecuteTool },
        .{ "on_execute_tool_error", wharf.OnExecuteToolError },
        .{ "after_iteration", wharf.AfterIteration },
        .{ "subagent_start", wharf.SubagentStart },
        .{ "subagent_stop", wharf.SubagentStop },
        .{ "before_compact", wharf.BeforeCompact },
        .{ "after_compact", wharf.AfterCompact },
        .{ "notification", wharf.Notification },
        .{ "turn_stopping", wharf.TurnStopping },
        .{ "finalize_content", wharf.FinalizeContent },
        .{ "after_run", wharf.AfterRun },
        .{ "on_error", wharf.OnError },
        .{ "on_finally", wharf.OnFinally },
        .{ "session_end", wharf.SessionEnd },
    }) |point| wharf.anyHook(point[0], obeyAt(point[1]));
    wharf.tools(.{ .do = work });
}

/// A handler of a point with payloads of a type.
fn obeyAt(comptime Payload: type) fn ([]const u8) anyerror!Json {
    return struct {
        fn handle(payload: []const u8) anyerror!Json {
            if (Payload == []const u8) return obey(payload);
            return obey((try (Json{ .raw = payload }).as(Payload)).session_id);
        }
    }.handle;
}

fn obey(script: []const u8) Json {
    var answer: []const u8 = "";
    var lines = std.mem.splitScalar(u8, script, '\n');
    while (lines.next()) |line| {
        const verb, const rest = cut(line);
        switch (std.meta.stringToEnum(enum { answer, log, operate, read, spin, none }, verb) orelse @trap()) {
            .answer => answer = rest,
            .log => {
                const level, const text = cut(rest);
                switch (std.meta.stringToEnum(enum { debug, info, warning, @"error" }, level).?) {
                    .@"error" => wharf.log(.err, "{s}", .{text}),
                    inline else => |l| wharf.log(@field(wharf.Level, @tagName(l)), "{s}", .{text}),
                }
            },
            .operate => operate(rest),
            .read => wharf.log(.info, "{s}", .{member(rest).raw}),
            .spin => while (true) std.mem.doNotOptimizeAway(rest),
            .none => {},
        }
    }
    return .{ .raw = answer };
}

/// Runs an operation and logs its status and response.
fn operate(line: []const u8) void {
    const op, const request = cut(line);
    if (wharf.operate(Json, op, Json{ .raw = request })) |response| {
        wharf.log(.info, "0 {s}", .{response.raw});
    } else |err| {
        const status: u8, const code = switch (err) {
            error.NotGranted => .{ 1, "NOT_GRANTED" },
            error.Denied => .{ 1, "DENIED" },
            error.BadRequest => .{ 2, "BAD_REQUEST" },
            error.Failed => .{ 3, "FAILED" },
            error.OverLimit => .{ 4, "OVER_LIMIT" },
            error.UnknownOperation => .{ 5, "UNKNOWN_OPERATION" },
            error.UnexpectedValue => .{ 9, "" },
        };
        wharf.log(.info, "{d} {s}", .{ status, Json.of(.{ .code = code, .message = wharf.lastMessage() }).raw });
    }
}

/// The value of one key of what the host gave.
fn member(key: []const u8) Json {
    return (Json{ .raw = wharf.payload }).get(key).?;
}

fn work(arguments: struct { do: []const u8 }) wharf.Json {
    const verb, const rest = cut(arguments.do);
    if (std.mem.eql(u8, verb, "read")) return .of(wharf.Result{ .content = member(rest).raw });
    return obey(arguments.do);
}

/// What stands before the first blank of a text, and behind it.
fn cut(text: []const u8) struct { []const u8, []const u8 } {
    const at = std.mem.findScalar(u8, text, ' ') orelse return .{ text, "" };
    return .{ text[0..at], text[at + 1 ..] };
}
