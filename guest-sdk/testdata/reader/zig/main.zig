//! Tells what the SDK reads of a JSON text.

const wharf = @import("wharf");

comptime {
    wharf.tools(.{ .read = read });
}

fn read(arguments: struct { json: []const u8 }) []const u8 {
    const value: wharf.Json = (wharf.Json{ .raw = arguments.json }).get("k") orelse .{ .raw = "" };
    const number = value.as(f64) catch 0;
    return wharf.Json.of(.{
        .raw = value.raw,
        .text = value.text(),
        .integer = value.as(i64) catch 0,
        .bits = @as(i64, @bitCast(number)),
        .items = count(value) catch 0,
        .bool = value.as(bool) catch false,
    }).raw;
}

/// How many items a list has, or keys and values an object.
fn count(value: wharf.Json) !u32 {
    var n: u32 = 0;
    if (value.items()) |found| {
        var items = found;
        while (try items.next()) |_| n += 1;
    } else |_| {
        var members = try value.members();
        while (try members.next()) |_| n += 2;
    }
    return n;
}
