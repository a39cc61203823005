//! Decimal numbers, which add up exactly.

const std = @import("std");
const wharf = @import("wharf");

/// digits × 10^-places.
pub const Decimal = struct {
    digits: i128,
    places: u8,

    /// Reads [+-]digits[.digits] of up to 18 digits; null if the text is none.
    pub fn parse(text: []const u8) ?Decimal {
        const trimmed = std.mem.trim(u8, text, " ");
        const signed = trimmed.len > 0 and (trimmed[0] == '-' or trimmed[0] == '+');
        const body = trimmed[@intFromBool(signed)..];
        var d: Decimal = .{ .digits = 0, .places = 0 };
        var count: usize = 0;
        var point = false;
        for (body) |c| switch (c) {
            '0'...'9' => {
                d.digits = d.digits * 10 + (c - '0');
                d.places += @intFromBool(point);
                count += 1;
                if (count > 18) return null;
            },
            '.' => {
                if (point) return null;
                point = true;
            },
            else => return null,
        };
        if (count == 0 or (body.len > 0 and body[body.len - 1] == '.')) return null;
        if (signed and trimmed[0] == '-') d.digits = -d.digits;
        return d;
    }

    /// The same number with so many places, which are no fewer; null if it is too large.
    fn with(d: Decimal, places: u8) ?i128 {
        var digits = d.digits;
        for (d.places..places) |_| digits = std.math.mul(i128, digits, 10) catch return null;
        return digits;
    }

    pub fn order(a: Decimal, b: Decimal) std.math.Order {
        const places = @max(a.places, b.places); // of up to 18 digits each, this is never too large
        return std.math.order(a.with(places).?, b.with(places).?);
    }

    pub fn add(a: Decimal, b: Decimal) ?Decimal {
        const places = @max(a.places, b.places);
        const sum = std.math.add(i128, a.with(places) orelse return null, b.with(places) orelse return null) catch return null;
        return .{ .digits = sum, .places = places };
    }

    /// The number divided by n, to six more places, rounded half away from nothing.
    pub fn divide(a: Decimal, n: u32) ?Decimal {
        const digits = a.with(a.places + 7) orelse return null;
        const tenth = @divTrunc(digits, n);
        return .{ .digits = @divTrunc(tenth + @as(i128, if (tenth < 0) -5 else 5), 10), .places = a.places + 6 };
    }

    /// The number without zeros at its end that say nothing.
    pub fn write(a: Decimal) []const u8 {
        var digits = a.digits;
        var places = a.places;
        while (places > 0 and @rem(digits, 10) == 0) {
            digits = @divTrunc(digits, 10);
            places -= 1;
        }
        const sign = if (digits < 0) "-" else "";
        const all = wharf.print("{d}", .{@abs(digits)});
        if (places == 0) return wharf.print("{s}{s}", .{ sign, all });
        const zeros = "0000000000000000000000000000000000000000";
        const padded = if (all.len > places) all else wharf.print("{s}{s}", .{ zeros[0 .. places + 1 - all.len], all });
        return wharf.print("{s}{s}.{s}", .{ sign, padded[0 .. padded.len - places], padded[padded.len - places ..] });
    }
};
