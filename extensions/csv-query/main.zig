//! csv-query: a tool that filters, groups, sorts and shows the rows of a CSV text or
//! file. csv.zig reads and writes them, decimal.zig counts.

const std = @import("std");
const wharf = @import("wharf");
const csv = @import("csv.zig");
const Decimal = @import("decimal.zig").Decimal;
const allocator = wharf.allocator;

comptime {
    wharf.tools(.{ .csv_query = run });
}

const Query = struct {
    csv: ?[]const u8,
    file: ?[]const u8,
    delimiter: []const u8 = ",",
    header: bool = true,
    where: []const Condition = &.{},
    group_by: []const []const u8 = &.{},
    aggregates: []const Aggregate = &.{},
    select: ?[]const []const u8,
    sort: []const Key = &.{},
    offset: u32 = 0,
    limit: u32 = 50,
    format: enum { table, csv } = .table,
};

const Condition = struct {
    column: []const u8,
    op: enum { @"=", @"!=", @"<", @"<=", @">", @">=", contains, starts, ends, in },
    value: wharf.Json,
};

const Aggregate = struct {
    @"fn": enum { count, distinct, sum, avg, min, max },
    column: ?[]const u8,
    as: ?[]const u8,
};

const Key = struct { by: []const u8, desc: bool = false };

const most_bytes = 8 << 20; // of a file
const most_output = 256 << 10;

fn run(query: Query) ![]const u8 {
    if (query.delimiter.len != 1) return wharf.problem("delimiter: it is one of , ; | and a tab");
    const table = try csv.parse(try source(query), query.delimiter[0], query.header);
    const all = table.rows.len;
    const matching = try filter(table, query.where);
    const result = if (query.group_by.len + query.aggregates.len > 0) try group(matching, query) else matching;
    try sort(result, query.sort);
    return show(result, query, matching.rows.len, all);
}

fn source(query: Query) ![]const u8 {
    if ((query.csv == null) == (query.file == null)) return wharf.problem("give either csv or file");
    if (query.csv) |text| return text;
    const size = (try wharf.statFile(query.file.?)).size;
    if (size > most_bytes) return wharf.problem(wharf.print("the file has {d} bytes, and at most {d} are read", .{ size, most_bytes }));
    return wharf.readFile(query.file.?);
}

/// How two fields stand to each other: numbers by what they are worth and before
/// texts, texts by their bytes.
fn order(a: []const u8, b: []const u8) std.math.Order {
    const x = Decimal.parse(a);
    const y = Decimal.parse(b);
    if (x != null and y != null) return x.?.order(y.?);
    if (x != null) return .lt;
    if (y != null) return .gt;
    return std.mem.order(u8, a, b);
}

/// The text of a text or number.
fn textOf(value: wharf.Json) ![]const u8 {
    if (value.text()) |text| return text;
    if (Decimal.parse(value.raw) != null) return value.raw;
    return wharf.problem(wharf.print("value {s}: it is a text, or a number without exponent", .{value.raw}));
}

/// The rows that meet all conditions.
fn filter(table: csv.Table, conditions: []const Condition) !csv.Table {
    const Test = struct { at: usize, condition: Condition, values: []const []const u8 };
    var tests: std.ArrayList(Test) = .empty;
    for (conditions) |condition| {
        var values: std.ArrayList([]const u8) = .empty;
        if (condition.op == .in) {
            var list = condition.value.items() catch return wharf.problem("value: for in, it is a list");
            while (try list.next()) |item| values.append(allocator, try textOf(item)) catch unreachable;
        } else values.append(allocator, try textOf(condition.value)) catch unreachable;
        tests.append(allocator, .{ .at = try table.column(condition.column), .condition = condition, .values = values.items }) catch unreachable;
    }
    var rows: std.ArrayList(csv.Row) = .empty;
    next: for (table.rows) |row| {
        for (tests.items) |t| if (!meets(row[t.at], t.condition, t.values)) continue :next;
        rows.append(allocator, row) catch unreachable;
    }
    return .{ .columns = table.columns, .rows = rows.items };
}

fn meets(field: []const u8, condition: Condition, values: []const []const u8) bool {
    if (condition.op == .in) {
        for (values) |value| if (order(field, value) == .eq) return true;
        return false;
    }
    const value = values[0];
    return switch (condition.op) {
        .@"=" => order(field, value) == .eq,
        .@"!=" => order(field, value) != .eq,
        .@"<" => field.len > 0 and order(field, value) == .lt,
        .@"<=" => field.len > 0 and order(field, value) != .gt,
        .@">" => field.len > 0 and order(field, value) == .gt,
        .@">=" => field.len > 0 and order(field, value) != .lt,
        .contains => std.mem.find(u8, field, value) != null,
        .starts => std.mem.startsWith(u8, field, value),
        .ends => std.mem.endsWith(u8, field, value),
        .in => unreachable,
    };
}

/// One row for each group of rows, in the order of their first ones.
fn group(table: csv.Table, query: Query) !csv.Table {
    const by = allocator.alloc(usize, query.group_by.len) catch unreachable;
    var columns: std.ArrayList([]const u8) = .empty;
    for (query.group_by, by) |name, *at| {
        at.* = try table.column(name);
        columns.append(allocator, name) catch unreachable;
    }
    const over = allocator.alloc(usize, query.aggregates.len) catch unreachable;
    for (query.aggregates, over) |a, *at| {
        if (a.column == null and a.@"fn" != .count) return wharf.problem(wharf.print("aggregates: {s} needs a column", .{@tagName(a.@"fn")}));
        at.* = if (a.column) |name| try table.column(name) else 0;
        columns.append(allocator, a.as orelse wharf.print("{s}({s})", .{ @tagName(a.@"fn"), a.column orelse "" })) catch unreachable;
    }
    const groups = try gather(table, by);
    const rows = allocator.alloc(csv.Row, groups.len) catch unreachable;
    for (groups, rows) |members, *row| {
        const fields = allocator.alloc([]const u8, columns.items.len) catch unreachable;
        for (by, fields[0..by.len]) |at, *field| field.* = members[0][at];
        for (query.aggregates, over, fields[by.len..]) |a, at, *field| field.* = try aggregate(a, at, members);
        row.* = fields;
    }
    return .{ .columns = columns.items, .rows = rows };
}

/// The rows with the same fields in some columns; without columns all, also none.
fn gather(table: csv.Table, by: []const usize) ![]const []const csv.Row {
    var groups: std.ArrayList(std.ArrayList(csv.Row)) = .empty;
    if (by.len == 0) groups.append(allocator, .empty) catch unreachable;
    var known: std.StringHashMapUnmanaged(usize) = .empty;
    for (table.rows) |row| {
        var key: []const u8 = "";
        for (by) |at| key = wharf.print("{s}{d}:{s}", .{ key, row[at].len, row[at] });
        const entry = known.getOrPut(allocator, key) catch unreachable;
        if (!entry.found_existing) {
            entry.value_ptr.* = if (by.len == 0) 0 else groups.items.len;
            if (by.len > 0) groups.append(allocator, .empty) catch unreachable;
        }
        groups.items[entry.value_ptr.*].append(allocator, row) catch unreachable;
    }
    const all = allocator.alloc([]const csv.Row, groups.items.len) catch unreachable;
    for (groups.items, all) |g, *rows| rows.* = g.items;
    return all;
}

fn aggregate(a: Aggregate, at: usize, rows: []const csv.Row) ![]const u8 {
    return switch (a.@"fn") {
        .count => counted: {
            var n: usize = 0;
            for (rows) |row| n += @intFromBool(a.column == null or row[at].len > 0);
            break :counted wharf.print("{d}", .{n});
        },
        .distinct => distinct: {
            var seen: std.StringHashMapUnmanaged(usize) = .empty;
            for (rows) |row| if (row[at].len > 0) seen.put(allocator, row[at], 0) catch unreachable;
            break :distinct wharf.print("{d}", .{seen.count()});
        },
        .min, .max => extreme: {
            var best: []const u8 = "";
            for (rows) |row| {
                const is_better = best.len == 0 or order(row[at], best) == if (a.@"fn" == .min) std.math.Order.lt else std.math.Order.gt;
                if (row[at].len > 0 and is_better) best = row[at];
            }
            break :extreme best;
        },
        .sum, .avg => total(a, at, rows),
    };
}

/// The sum or mean of the fields that are not empty.
fn total(a: Aggregate, at: usize, rows: []const csv.Row) ![]const u8 {
    var sum: Decimal = .{ .digits = 0, .places = 0 };
    var n: u32 = 0;
    for (rows) |row| {
        if (row[at].len == 0) continue;
        const number = Decimal.parse(row[at]) orelse
            return wharf.problem(wharf.print("{s}({s}): \"{s}\" is no number of up to 18 digits: leave it out by where", .{ @tagName(a.@"fn"), a.column.?, wharf.toText(row[at]) }));
        sum = sum.add(number) orelse return wharf.problem("the sum is too large");
        n += 1;
    }
    if (a.@"fn" == .sum) return sum.write();
    if (n == 0) return "";
    return (sum.divide(n) orelse return wharf.problem("the sum is too large")).write();
}

/// Sorts the rows by some columns; what is the same stays in its order.
fn sort(table: csv.Table, keys: []const Key) !void {
    const rules = allocator.alloc(Rule, keys.len) catch unreachable;
    for (keys, rules) |key, *rule| rule.* = .{ .at = try table.column(key.by), .desc = key.desc };
    if (keys.len == 0) return;
    const places = allocator.alloc(Placed, table.rows.len) catch unreachable;
    for (table.rows, places, 0..) |row, *place, i| place.* = .{ .row = row, .i = i };
    std.sort.heap(Placed, places, rules, Placed.before);
    for (table.rows, places) |*row, place| row.* = place.row;
}

const Rule = struct { at: usize, desc: bool };

/// A row and where it stood.
const Placed = struct {
    row: csv.Row,
    i: usize,

    fn before(rules: []const Rule, a: Placed, b: Placed) bool {
        for (rules) |rule| switch (order(a.row[rule.at], b.row[rule.at])) {
            .lt => return !rule.desc,
            .gt => return rule.desc,
            .eq => {},
        };
        return a.i < b.i;
    }
};

/// Writes what is asked for of the result.
fn show(table: csv.Table, query: Query, matching: usize, all: usize) ![]const u8 {
    const names = query.select orelse table.columns;
    const at = allocator.alloc(usize, names.len) catch unreachable;
    for (names, at) |name, *i| i.* = try table.column(name);
    const from = @min(query.offset, table.rows.len);
    const rows = table.rows[from..@min(from + query.limit, table.rows.len)];
    var out: std.ArrayList(u8) = .empty;
    writeRow(&out, names, query);
    if (query.format == .table) {
        for (names) |_| csv.put(&out, "| --- ");
        csv.put(&out, "|\n");
    }
    const fields = allocator.alloc([]const u8, names.len) catch unreachable;
    var shown: usize = 0;
    for (rows) |row| {
        const before = out.items.len;
        for (at, fields) |i, *field| field.* = row[i];
        writeRow(&out, fields, query);
        if (out.items.len > most_output) {
            out.shrinkRetainingCapacity(before);
            break;
        }
        shown += 1;
    }
    if (query.format == .csv) return wharf.toText(out.items);
    const found = if (table.rows.len == matching) "" else wharf.print(" of {d} groups", .{table.rows.len});
    const cut = if (shown < rows.len) "; there was no room for more" else "";
    return wharf.print("{s}\n{d} row{s}{s}, of {d} that match, of {d} in all{s}", .{ wharf.toText(out.items), shown, if (shown == 1) "" else "s", found, matching, all, cut });
}

fn writeRow(out: *std.ArrayList(u8), row: csv.Row, query: Query) void {
    if (query.format == .csv) return csv.write(out, row, query.delimiter[0]);
    for (row) |field| {
        csv.put(out, "| ");
        for (field) |c| csv.put(out, switch (c) {
            '|' => "\\|",
            '\n' => "\\n",
            '\r' => "",
            else => &.{c},
        });
        csv.put(out, " ");
    }
    csv.put(out, "|\n");
}
