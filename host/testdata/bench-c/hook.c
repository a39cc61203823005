/* Hooks for benchmarks. One looks at the first 16 bytes of the payload, and has no
 * opinion unless the session's id, which begins with the last of them, begins with
 * a d. The other looks at the pieces of an answer. */
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

static u8 buffer[65536];
static u8 *large;
static u32 room;
static const char verdict[] = "{\"decision\":\"deny\",\"reason\":\"this command is not allowed here\"}";

/* What does not fit in the buffer gets memory of its own, once. */
__attribute__((export_name("wharf_v1_alloc"))) u32 alloc(u32 length)
{
	if (length <= sizeof buffer)
		return (u32)buffer;
	if (length > room) {
		u32 pages = (length + 65535) / 65536, at = __builtin_wasm_memory_grow(0, pages);
		if (at == (u32)-1)
			return 0;
		large = (u8 *)(at * 65536);
		room = pages * 65536;
	}
	return (u32)large;
}

static u32 sum(const u8 *at, u32 length)
{
	u32 sum = 0;
	for (u32 i = 0; i < 16 && i < length; i++)
		sum += at[i];
	return sum;
}

__attribute__((export_name("before_execute_tool"))) u64 judge(const u8 *at, u32 length)
{
	if (!sum(at, length) || at[15] != 'd')
		return 0;
	return (u64)(u32)verdict << 32 | (sizeof verdict - 1);
}

__attribute__((export_name("on_stream"))) u64 watch(const u8 *at, u32 length)
{
	return sum(at, length) ? 0 : (u64)(u32)verdict << 32;
}
