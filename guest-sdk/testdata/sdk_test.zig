//! Tests of the SDK for Zig without a host.

const std = @import("std");
const wharf = @import("wharf");
const expect = std.testing.expect;
const expectEqualStrings = std.testing.expectEqualStrings;

comptime {
    wharf.hooks(.{ .before_execute_tool = judge, .on_stream = hear });
    wharf.tools(.{ .shout = shout });
}

fn judge(call: wharf.BeforeExecuteTool) wharf.Verdict {
    return if (call.argument("command").len > 3) .deny("it is too long") else .none;
}

fn hear(_: []const u8) void {}

fn shout(arguments: struct { text: []const u8 }) ![]const u8 {
    try wharf.kvSet("said", arguments.text);
    return std.ascii.allocUpperString(wharf.allocator, arguments.text);
}

test "a handler is a plain function" {
    try expectEqualStrings("it is too long", judge(.{ .arguments = .of(.{ .command = "make" }) }).reason.?);
    try expect(judge(.{}).decision == null);
}

test "an operation without a host is an error" {
    try std.testing.expectError(error.UnknownOperation, shout(.{ .text = "a" }));
    try std.testing.expectError(error.Failed, @as(wharf.Error!void, wharf.problem("no such thing")));
    try expectEqualStrings("no such thing", wharf.lastMessage());
}

test "a verdict says what it is made of" {
    for ([_]struct { wharf.Verdict, []const u8 }{
        .{ .none, "{}" },
        .{ .ask("why?"), "{\"decision\":\"ask\",\"reason\":\"why?\"}" },
        .{ .goOn("go"), "{\"decision\":\"continue\",\"message\":\"go\"}" },
        .{ .giveUp("no"), "{\"decision\":\"fail\",\"reason\":\"no\"}" },
        .{ .replaceText("a\"b"), "{\"replace\":{\"text\":\"a\\\"b\"}}" },
        .{ .replaceArguments(.{ .n = 1 }), "{\"replace\":{\"arguments\":{\"n\":1}}}" },
        .{ .replaceArguments(.{}), "{\"replace\":{\"arguments\":{}}}" },
        .{ .answerInPlace("x"), "{\"replace\":{\"result\":{\"content\":\"x\"}}}" },
        .{ .hideTools(&.{ "a", "b" }), "{\"replace\":{\"hide_tools\":[\"a\",\"b\"]}}" },
        .{ .answerForModel("x"), "{\"replace\":{\"response\":{\"text\":\"x\"}}}" },
        .{ .fail("x"), "{\"error\":\"x\"}" },
    }) |case| try expectEqualStrings(case[1], wharf.Json.of(case[0]).raw);
}

test "a result says what it is made of" {
    for ([_]struct { wharf.Result, []const u8 }{
        .{ .{}, "{\"content\":\"\"}" },
        .{ .{ .content = "a", .is_error = true }, "{\"content\":\"a\",\"is_error\":true}" },
        .{ .{ .structured = .of(.{ .n = 1 }) }, "{\"structured\":{\"n\":1}}" },
        .{ .{ .blocks = .{ .raw = "[]" }, .structured = .{ .raw = "1" } }, "{\"content\":[],\"structured\":1}" },
    }) |case| try expectEqualStrings(case[1], wharf.Json.of(case[0]).raw);
}

test "a value is read as a type" {
    const Value = struct { n: u8, f: f64 = 0.5, list: []const []const u8 = &.{}, maybe: ?bool, word: enum { a, b } = .a, any: wharf.Json = .{} };
    const value = try (wharf.Json{ .raw = "{\"n\":7,\"list\":[\"x\",\"\\u00e4\"],\"word\":\"b\",\"any\":[1],\"else\":{}}" }).as(Value);
    try expect(value.n == 7 and value.f == 0.5 and value.maybe == null and value.word == .b);
    try expectEqualStrings("ä", value.list[1]);
    try expectEqualStrings("[1]", value.any.raw);
    for ([_][]const u8{ "{}", "{\"n\":256}", "{\"n\":\"7\"}", "{\"n\":7,\"word\":\"c\"}", "{\"n\":7,\"list\":null}", "[]", "", "{\"n\":7" }) |raw| {
        try std.testing.expectError(error.UnexpectedValue, (wharf.Json{ .raw = raw }).as(Value));
    }
}

test "bytes become text" {
    try expectEqualStrings("ä", wharf.toText("ä"));
    try expectEqualStrings("a\u{fffd}b", wharf.toText("a\xffb"));
}
