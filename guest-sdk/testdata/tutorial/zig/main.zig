const std = @import("std");
const wharf = @import("wharf");

comptime {
    wharf.hooks(.{ .before_execute_tool = judge });
}

fn judge(call: wharf.BeforeExecuteTool) !wharf.Verdict {
    const command = call.argument("command");
    if (std.mem.find(u8, command, "git push") == null) return .none; // no opinion

    if (try wharf.config([]const u8, "remote")) |remote| {
        if (std.mem.find(u8, command, remote) != null) return .none;
    }
    const reason = "pushing is the user's: say what you would push";
    const times = count() catch {
        // it has no memory, and refuses all the same
        wharf.log(.warning, "not counted: {s}", .{wharf.lastMessage()});
        return .deny(reason);
    };
    return .deny(try std.fmt.allocPrint(wharf.allocator, reason ++ " (refused {d} times)", .{times}));
}

/// Counts a refusal, in this and all earlier sessions.
fn count() !u32 {
    const times = 1 + (try wharf.kvGet(u32, "refused") orelse 0);
    try wharf.kvSet("refused", times);
    return times;
}
