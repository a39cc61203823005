//! The time, which the host gives by the one function of WASI that this uses.

/// The time as 2026-11-30T09:00:00Z; empty where there is none.
pub fn now() -> String {
    match seconds() {
        Some(seconds) => format(seconds),
        None => String::new(),
    }
}

#[cfg(target_arch = "wasm32")]
fn seconds() -> Option<u64> {
    #[link(wasm_import_module = "wasi_snapshot_preview1")]
    extern "C" {
        fn clock_time_get(clock: u32, precision: u64, time: *mut u64) -> u32;
    }
    let mut nanoseconds = 0;
    // The host writes the eight bytes of the time, and nothing else.
    let errno = unsafe { clock_time_get(0, 1_000_000_000, &mut nanoseconds) };
    (errno == 0).then(|| nanoseconds / 1_000_000_000)
}

#[cfg(not(target_arch = "wasm32"))]
fn seconds() -> Option<u64> {
    None
}

fn format(seconds: u64) -> String {
    let (day, second) = (seconds / 86_400, seconds % 86_400);
    // Days are counted from 1 March of the year 0, after which a leap day is the last of its year.
    let day = day + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + 400 * era + u64::from(month <= 2);
    let date = of_year - (153 * shifted + 2) / 5 + 1;
    format!("{year:04}-{month:02}-{date:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}
