// The date, which the host gives by the one function of WASI that this uses.

// @ts-ignore: a decorator of AssemblyScript's
@external("wasi_snapshot_preview1", "clock_time_get")
declare function clockTimeGet(clock: i32, precision: u64, time: usize): i32;

/** Today, as 2026-11-30. */
export function today(): string {
  const time = new StaticArray<u64>(1);
  if (clockTimeGet(0, 1_000_000_000, changetype<usize>(time)) != 0) return "";
  return new Date(<i64>(time[0] / 1_000_000)).toISOString().substring(0, 10);
}
