/* A hook for benchmarks: it looks at the first 16 bytes of the payload and has
 * no opinion, or denies where the payload ends in '!'. */
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

static u8 buffer[65536];
static const char verdict[] = "{\"decision\":\"deny\",\"reason\":\"this command is not allowed here\"}";

__attribute__((export_name("wharf_v1_alloc"))) u32 alloc(u32 length) { return length <= sizeof buffer ? (u32)buffer : 0; }

__attribute__((export_name("before_execute_tool"))) u64 hook(const u8 *at, u32 length)
{
	u32 sum = 0;
	for (u32 i = 0; i < 16 && i < length; i++)
		sum += at[i];
	if (sum && length && at[length - 1] != '!')
		return 0;
	return (u64)(u32)verdict << 32 | (sizeof verdict - 1);
}
