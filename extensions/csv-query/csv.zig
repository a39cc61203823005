//! Reads and writes CSV as RFC 4180 has it.

const std = @import("std");
const wharf = @import("wharf");
const allocator = wharf.allocator;

/// A row's fields.
pub const Row = []const []const u8;

/// Names of columns, and rows with as many fields each.
pub const Table = struct {
    columns: Row,
    rows: []Row,

    /// Where a column is.
    pub fn column(table: Table, name: []const u8) !usize {
        for (table.columns, 0..) |c, i| if (std.mem.eql(u8, c, name)) return i;
        const shown = table.columns[0..@min(table.columns.len, 30)];
        const list = std.mem.join(allocator, ", ", shown) catch unreachable;
        const more = if (shown.len < table.columns.len) ", …" else "";
        return wharf.problem(wharf.print("there is no column \"{s}\": there are {s}{s}", .{ wharf.toText(name), wharf.toText(list), more }));
    }
};

const most_fields = 2_000_000;

/// Reads a text. Without a header, the columns are c1, c2 and so on.
pub fn parse(text: []const u8, delimiter: u8, has_header: bool) !Table {
    var reader: Reader = .{ .text = if (std.mem.startsWith(u8, text, "\xef\xbb\xbf")) text[3..] else text, .delimiter = delimiter };
    const first = try reader.row() orelse return wharf.problem("the CSV is empty");
    var rows: std.ArrayList(Row) = .empty;
    var columns = first;
    if (!has_header) {
        columns = try numbered(first.len);
        rows.append(allocator, first) catch unreachable;
    }
    for (columns, 0..) |name, i| for (columns[0..i]) |other| if (std.mem.eql(u8, name, other))
        return wharf.problem(wharf.print("two columns are named \"{s}\": say \"header\": false, and call them c1, c2, …", .{wharf.toText(name)}));
    while (try reader.row()) |row| {
        if (row.len != columns.len)
            return wharf.problem(wharf.print("line {d}: it has {d} fields, and the first row {d}", .{ reader.begun, row.len, columns.len }));
        rows.append(allocator, row) catch unreachable;
    }
    return .{ .columns = columns, .rows = rows.items };
}

fn numbered(count: usize) !Row {
    const names = allocator.alloc([]const u8, count) catch unreachable;
    for (names, 1..) |*name, i| name.* = wharf.print("c{d}", .{i});
    return names;
}

const Reader = struct {
    text: []const u8,
    delimiter: u8,
    at: usize = 0,
    line: usize = 1,
    begun: usize = 1, // the line of the row
    fields: usize = 0,

    /// The next row that is not empty, or null at the end.
    fn row(reader: *Reader) !?Row {
        while (reader.at < reader.text.len and (reader.peek() == '\n' or reader.peek() == '\r')) reader.newline();
        if (reader.at >= reader.text.len) return null;
        reader.begun = reader.line;
        var fields: std.ArrayList([]const u8) = .empty;
        while (true) {
            reader.fields += 1;
            if (reader.fields > most_fields or fields.items.len == 1000)
                return wharf.problem(wharf.print("line {d}: the CSV is too large: at most 1000 columns, and 2000000 fields in all", .{reader.line}));
            fields.append(allocator, try reader.field()) catch unreachable;
            if (reader.at >= reader.text.len) break;
            if (reader.peek() != reader.delimiter) {
                reader.newline();
                break;
            }
            reader.at += 1;
        }
        return fields.items;
    }

    fn peek(reader: *Reader) u8 {
        return reader.text[reader.at];
    }

    fn newline(reader: *Reader) void {
        if (reader.peek() == '\r' and reader.at + 1 < reader.text.len and reader.text[reader.at + 1] == '\n') reader.at += 1;
        reader.at += 1;
        reader.line += 1;
    }

    /// The field at the place, up to what ends it.
    fn field(reader: *Reader) ![]const u8 {
        if (reader.at < reader.text.len and reader.peek() == '"') return reader.quoted();
        const from = reader.at;
        while (reader.at < reader.text.len) : (reader.at += 1) {
            const c = reader.peek();
            if (c == reader.delimiter or c == '\n' or c == '\r') break;
        }
        return reader.text[from..reader.at];
    }

    fn quoted(reader: *Reader) ![]const u8 {
        reader.at += 1;
        const from = reader.at;
        var doubled = false;
        while (true) : (reader.at += 1) {
            if (reader.at >= reader.text.len)
                return wharf.problem(wharf.print("line {d}: a quote that does not end", .{reader.begun}));
            if (reader.peek() == '\n') reader.line += 1;
            if (reader.peek() != '"') continue;
            if (reader.at + 1 >= reader.text.len or reader.text[reader.at + 1] != '"') break;
            doubled = true;
            reader.at += 1;
        }
        const inner = reader.text[from..reader.at];
        reader.at += 1;
        if (reader.at < reader.text.len and reader.peek() != reader.delimiter and reader.peek() != '\n' and reader.peek() != '\r')
            return wharf.problem(wharf.print("line {d}: behind a field in quotes stands neither \"{c}\" nor the end of the line", .{ reader.line, reader.delimiter }));
        if (!doubled) return inner;
        var single: std.ArrayList(u8) = .empty;
        var i: usize = 0;
        while (i < inner.len) : (i += 1) {
            put(&single, inner[i..][0..1]);
            i += @intFromBool(inner[i] == '"'); // there are two
        }
        return single.items;
    }
};

/// Writes a text.
pub noinline fn put(out: *std.ArrayList(u8), text: []const u8) void {
    out.appendSlice(allocator, text) catch unreachable;
}

/// Writes a row with the newline at its end.
pub fn write(out: *std.ArrayList(u8), row: Row, delimiter: u8) void {
    for (row, 0..) |text, i| {
        if (i > 0) put(out, &.{delimiter});
        const is_plain = std.mem.findAny(u8, text, &.{ delimiter, '"', '\n', '\r' }) == null and !(row.len == 1 and text.len == 0);
        if (is_plain) {
            put(out, text);
            continue;
        }
        put(out, "\"");
        for (text) |c| put(out, if (c == '"') "\"\"" else &.{c});
        put(out, "\"");
    }
    put(out, "\n");
}
