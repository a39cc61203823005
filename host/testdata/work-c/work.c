/* Work for benchmarks, of the kinds that guests do. Each function does its work
 * n times over and returns a checksum. */
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define WORK(name) __attribute__((export_name(#name))) u32 name(u32 n)
#define APART __attribute__((noinline)) static

static u8 bytes[1 << 16];
static u32 words[1 << 12];
static double a[32][32], b[32][32], c[32][32];

static u32 seed;
static u32 next(void) { return seed = seed * 1664525 + 1013904223; }

static void fill(void)
{
	seed = 1;
	for (u32 i = 0; i < sizeof bytes; i++)
		bytes[i] = next() >> 24;
}

static const u32 k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

#define ROTATE(x, n) ((x) >> (n) | (x) << (32 - (n)))

static void sha256_block(u32 *h, const u8 *at)
{
	u32 w[64], v[8];
	for (int i = 0; i < 16; i++)
		w[i] = (u32)at[4 * i] << 24 | (u32)at[4 * i + 1] << 16 | (u32)at[4 * i + 2] << 8 | at[4 * i + 3];
	for (int i = 16; i < 64; i++)
		w[i] = w[i - 16] + (ROTATE(w[i - 15], 7) ^ ROTATE(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
		       (ROTATE(w[i - 2], 17) ^ ROTATE(w[i - 2], 19) ^ w[i - 2] >> 10);
	for (int i = 0; i < 8; i++)
		v[i] = h[i];
	for (int i = 0; i < 64; i++) {
		u32 e = v[4], x = v[0];
		u32 t = v[7] + (ROTATE(e, 6) ^ ROTATE(e, 11) ^ ROTATE(e, 25)) + ((e & v[5]) ^ (~e & v[6])) + k[i] + w[i];
		u32 u = (ROTATE(x, 2) ^ ROTATE(x, 13) ^ ROTATE(x, 22)) + ((x & v[1]) ^ (x & v[2]) ^ (v[1] & v[2]));
		for (int j = 7; j > 0; j--)
			v[j] = v[j - 1];
		v[4] += t;
		v[0] = t + u;
	}
	for (int i = 0; i < 8; i++)
		h[i] += v[i];
}

WORK(sha256)
{
	u32 h[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	fill();
	while (n--)
		for (u32 i = 0; i < 1 << 12; i += 64)
			sha256_block(h, bytes + i);
	return h[0];
}

WORK(fnv)
{
	u32 h = 2166136261u;
	fill();
	while (n--)
		for (u32 i = 0; i < sizeof bytes; i += 4) {
			h = (h ^ bytes[i]) * 16777619;
			h = (h ^ bytes[i + 1]) * 16777619;
			h = (h ^ bytes[i + 2]) * 16777619;
			h = (h ^ bytes[i + 3]) * 16777619;
		}
	return h;
}

WORK(sum)
{
	u32 s = 0;
	fill();
	while (n--)
#pragma clang loop unroll(disable) vectorize(disable)
		for (u32 i = 0; i < sizeof bytes; i++)
			s = s * 31 + bytes[i];
	return s;
}

static void sort(u32 *at, int low, int high)
{
	while (low < high) {
		u32 pivot = at[(low + high) / 2];
		int i = low, j = high;
		while (i <= j) {
			while (at[i] < pivot)
				i++;
			while (at[j] > pivot)
				j--;
			if (i <= j) {
				u32 t = at[i];
				at[i++] = at[j];
				at[j--] = t;
			}
		}
		sort(at, low, j);
		low = i;
	}
}

WORK(quicksort)
{
	u32 s = 0;
	seed = 7;
	while (n--) {
		for (u32 i = 0; i < sizeof words / 4; i++)
			words[i] = next();
		sort(words, 0, sizeof words / 4 - 1);
		s += words[100];
	}
	return s;
}

WORK(matmul)
{
	for (int i = 0; i < 32; i++)
		for (int j = 0; j < 32; j++)
			a[i][j] = i + j, b[i][j] = i - j;
	while (n--)
		for (int i = 0; i < 32; i++)
			for (int j = 0; j < 32; j++) {
				double s = 0;
				for (int l = 0; l < 32; l++)
					s += a[i][l] * b[l][j];
				c[i][j] = s;
			}
	return (u32)(int)c[3][5];
}

APART u32 fib_of(u32 n) { return n < 2 ? n : fib_of(n - 1) + fib_of(n - 2); }

WORK(fib)
{
	u32 s = 0;
	while (n--)
		s += fib_of(18 + (n & 1));
	return s;
}

APART u32 leaf(u32 x) { return x * 2654435761u >> 7 ^ x; }

WORK(calls)
{
	u32 s = 0;
	while (n--)
		for (u32 i = 0; i < 1 << 14; i++)
			s += leaf(s + i);
	return s;
}

static const char text[] = "{\"id\":17,\"name\":\"a \\\"quoted\\\" name\",\"tags\":[\"one\",\"two\",\"three\"],\"at\":{\"x\":1.5,\"y\":-20}}";

WORK(scan)
{
	u32 strings = 0, depth = 0, most = 0, digits = 0;
	n *= 64;
	while (n--)
		for (u32 i = 0; i < sizeof text - 1; i++)
			switch (text[i]) {
			case '"':
				strings++;
				for (i++; text[i] != '"'; i++)
					if (text[i] == '\\')
						i++;
				break;
			case '{':
			case '[':
				if (++depth > most)
					most = depth;
				break;
			case '}':
			case ']':
				depth--;
				break;
			default:
				digits += text[i] >= '0' && text[i] <= '9';
			}
	return strings * 31 + digits * 7 + most;
}

typedef u32 (*op)(u32);
APART u32 twice(u32 x) { return x * 2 + 1; }
APART u32 mix(u32 x) { return x ^ x >> 3; }
static op ops[] = {leaf, twice, mix};

WORK(indirect)
{
	u32 s = 1;
	while (n--)
		for (u32 i = 0; i < 1 << 14; i++)
			s += ops[(s >> 5) % 3](s + i);
	return s;
}

WORK(copies)
{
	fill();
	while (n--)
		for (u32 i = 0; i + 256 < sizeof bytes; i += 8)
			__builtin_memcpy(bytes + i, bytes + i + 100, 16 + (bytes[i] & 63));
	return bytes[1000];
}
