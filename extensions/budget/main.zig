//! budget: stops the agent when a budget of tokens, tool calls or cost is used up,
//! and warns it before. The README says how it is configured.

const std = @import("std");
const wharf = @import("wharf");

comptime {
    wharf.hooks(.{
        .session_start = start,
        .before_iteration = beforeStep,
        .before_execute_tool = beforeCall,
        .after_run = afterTurn,
    });
}

/// What was used. Amounts are whole numbers: a cost is counted in millionths.
const Used = struct {
    tokens: i64 = 0,
    calls: i64 = 0,
    cost: i64 = 0,

    fn plus(a: Used, b: Used) Used {
        return .{ .tokens = a.tokens +| b.tokens, .calls = a.calls +| b.calls, .cost = a.cost +| b.cost };
    }
};

const million = 1_000_000;

/// A cost in millionths, rounded up.
fn millionths(cost: f64) i64 {
    return @trunc(std.math.clamp(@ceil(cost * million), 0, 1e15));
}

/// What is known of the session. It is kept by kv, so that it outlasts the instance.
const State = struct {
    /// The turn that is running, or ran last, and what it used.
    turn: i64 = 0,
    now: Used = .{},
    /// What earlier turns used.
    before: Used = .{},
    /// What the model was warned of: a bit for each of `Config.keys`.
    warned: u8 = 0,
};

var state: State = .{};
var session: []const u8 = ""; // whose the state is
var session_room: [256]u8 = undefined;

/// An amount in words.
fn amount(key: []const u8, n: i64) []const u8 {
    if (std.mem.eql(u8, key, "cost")) return wharf.print("a cost of {d}.{d:0>4}", .{ @divTrunc(n, million), @as(u64, @intCast(@divTrunc(@rem(n, million), 100))) });
    return wharf.print("{d} {s}{s}", .{ n, if (std.mem.eql(u8, key, "calls")) "tool call" else "token", if (n == 1) "" else "s" });
}

/// What the user configured, checked.
const Config = struct {
    per_turn: bool,
    warn_at: f64,
    limits: [3]?i64,

    const keys = [3][]const u8{ "tokens", "calls", "cost" };

    fn read() !Config {
        const per = try wharf.config([]const u8, "per") orelse "session";
        var c: Config = .{
            .per_turn = std.mem.eql(u8, per, "turn"),
            .warn_at = try wharf.config(f64, "warn_at") orelse 0.8,
            .limits = undefined,
        };
        if (!c.per_turn and !std.mem.eql(u8, per, "session")) return refuse("per: it is \"session\" or \"turn\"");
        if (!(c.warn_at > 0 and c.warn_at <= 1)) return refuse("warn_at: it is a share of more than 0 and up to 1");
        for (keys, &c.limits) |key, *limit| {
            const most = try wharf.config(f64, key) orelse {
                limit.* = null;
                continue;
            };
            if (!(most >= 0 and most <= 1e9)) return refuse(wharf.print("{s}: it is 0 or more, and up to 1000000000", .{key}));
            limit.* = if (std.mem.eql(u8, key, "cost")) millionths(most) else @trunc(most);
        }
        return c;
    }

    fn isLimited(c: Config) bool {
        for (c.limits) |limit| if (limit != null) return true;
        return false;
    }
};

fn refuse(text: []const u8) error{Failed} {
    return wharf.problem(wharf.print("the configuration of budget is wrong: {s}", .{text}));
}

fn start(payload: wharf.SessionStart) !wharf.Verdict {
    try enter(payload.session_id, payload.turn);
    if ((try Config.read()).isLimited()) return .none;
    wharf.log(.warning, "no limit is set: set tokens, calls or cost under [extensions.budget.config]", .{});
    return .none;
}

fn beforeStep(payload: wharf.BeforeIteration) !wharf.Verdict {
    try enter(payload.session_id, payload.turn);
    state.now.tokens = payload.usage.input_tokens +| payload.usage.output_tokens;
    state.now.cost = millionths(payload.cost);
    const verdict = try judge(false);
    try save();
    return verdict;
}

fn beforeCall(payload: wharf.BeforeExecuteTool) !wharf.Verdict {
    try enter(payload.session_id, payload.turn);
    const verdict = try judge(true);
    if (verdict.decision == null) state.now.calls +|= 1;
    try save();
    return verdict;
}

fn afterTurn(payload: wharf.AfterRun) !void {
    try enter(payload.session_id, payload.turn);
    state.now.tokens = payload.usage.input_tokens +| payload.usage.output_tokens;
    try save();
}

/// Says no where a limit is reached, and warns once where one is near. A tool call is
/// only judged by the limit on calls: what a step costs is known when the next begins.
fn judge(is_call: bool) !wharf.Verdict {
    const c = try Config.read();
    const used = if (c.per_turn) state.now else state.before.plus(state.now);
    var warning: ?[]const u8 = null;
    for (Config.keys, c.limits, [3]i64{ used.tokens, used.calls, used.cost }, 0..) |key, limit, n, i| {
        const most = limit orelse continue;
        const bit = @as(u8, 1) << @intCast(i);
        if (is_call and !std.mem.eql(u8, key, "calls")) continue;
        if (n >= most) return stop(key, most, n, c.per_turn, is_call);
        if (@as(f64, @floatFromInt(n)) < c.warn_at * @as(f64, @floatFromInt(most)) or state.warned & bit != 0) continue;
        state.warned |= bit;
        warning = wharf.print("{s}{s}the budget of {s} for this {s} is nearly used up ({s}): come to an end, and say what is left to do", .{
            warning orelse "", if (warning == null) "" else "\n", amount(key, most), scope(c.per_turn), amount(key, n),
        });
    }
    return if (warning) |text| .addContext(text) else .none;
}

fn stop(key: []const u8, most: i64, n: i64, per_turn: bool, is_call: bool) wharf.Verdict {
    const reason = wharf.print("the budget of {s} for this {s} is used up: it used {s}", .{ amount(key, most), scope(per_turn), amount(key, n) });
    wharf.log(.warning, "{s}", .{reason});
    return if (is_call) .deny(reason) else .block(reason);
}

fn scope(per_turn: bool) []const u8 {
    return if (per_turn) "turn" else "session";
}

/// Brings the state to a session and turn.
fn enter(id: []const u8, turn: i64) !void {
    if (!std.mem.eql(u8, id, session)) {
        state = try load(id);
        const length = @min(id.len, session_room.len);
        @memcpy(session_room[0..length], id[0..length]);
        session = session_room[0..length];
    }
    if (turn == state.turn) return;
    state.before = state.before.plus(state.now);
    state.now = .{};
    state.turn = turn;
    if ((try Config.read()).per_turn) state.warned = 0;
}

/// What was kept of a session. Without the grant for kv, nothing is.
fn load(id: []const u8) !State {
    return (wharf.kvGet(State, id) catch |err| if (err == error.NotGranted) null else return err) orelse .{};
}

fn save() !void {
    const id = session;
    if (id.len == 0 or !(try Config.read()).isLimited()) return;
    wharf.kvSet(id, state) catch |err| switch (err) {
        error.NotGranted => {},
        error.OverLimit => { // sessions of long ago are in the way
            for (try wharf.kvList("")) |key| {
                if (!std.mem.eql(u8, key, id)) try wharf.kvDelete(key);
            }
            try wharf.kvSet(id, state);
        },
        else => return err,
    };
}
